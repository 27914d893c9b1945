//! From offsets in files to addresses on drives, for a whole trace after its recording.

use std::io::{BufRead, Write};
use std::path::Path;

use flashgrain_trace::{Address, Loss, Losses, Names, Reader, Request, TraceWriter};

use crate::Error;
use crate::places::{Owners, Place, Places};

/// Counts of the requests by their fate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placed {
    /// Requests in the trace.
    pub requests: u64,
    /// Requests to files whose address on a drive is known.
    pub mapped: u64,
    /// The recorder's own writes, which were left out.
    pub own: u64,
}

/// Copies a trace to `to`: system calls with addresses on drives, and block requests with files, where they
/// are known; without requests to the place of the file `own`. `losses` are those that the recording has
/// counted.
pub fn place<R: BufRead, W: Write>(
    mut from: Reader<R>,
    to: W,
    own: &Path,
    places: &mut Places,
    losses: &mut Losses,
) -> Result<Placed, Error> {
    let writing = || Error::os("write the trace");
    let mut writer = TraceWriter::new(to).map_err(writing())?;
    let own = Place::of(own);
    let owners = Owners::of(places);
    let mut names = Names::default();
    let mut placed = Placed::default();
    let mut number = 0;
    while let Some(request) = from.next() {
        let mut request = request?;
        number += 1;
        if own.as_ref().is_some_and(|own| is_in(own, &request, from.names())) {
            placed.own += 1;
            continue;
        }
        if let Some(file) = request.in_file {
            let name = from.names().text(file.name);
            request.in_file = Some(Address { name: names.id(name), ..file });
            if request.length_bytes > 0 {
                request.on_device = address(places, name, number, file.offset_bytes, &mut names);
                match request.on_device {
                    Some(_) => placed.mapped += 1,
                    None => losses.add(Loss::Unmapped, 1),
                }
            }
        } else if let Some(device) = request.on_device {
            let name = from.names().text(device.name);
            request.on_device = Some(Address { name: names.id(name), ..device });
            let owner = name.parse().ok().and_then(|drive| owners.at(drive, device.offset_bytes));
            request.in_file = owner
                .filter(|_| request.length_bytes > 0)
                .map(|(name, offset_bytes)| Address { name: names.id(name), offset_bytes });
        }
        writer.request(&request, &names).map_err(writing())?;
        placed.requests += 1;
    }
    for note in from.notes() {
        writer.note(note).map_err(writing())?;
    }
    writer.finish(losses).map_err(writing())?;
    Ok(placed)
}

/// Whether a block request is to the place of a file.
fn is_in(own: &Place, request: &Request, names: &Names) -> bool {
    let device = request.on_device.filter(|_| request.in_file.is_none());
    device.is_some_and(|device| {
        own.holds(device.offset_bytes, request.length_bytes)
            && own.drive().to_string() == names.text(device.name)
    })
}

/// The address on its drive of a byte of a file. A file that was never flushed is looked up now.
fn address(
    places: &mut Places,
    name: &str,
    number: u64,
    offset_bytes: u64,
    names: &mut Names,
) -> Option<Address> {
    if places.of(name, number).is_none() {
        places.look(name, u64::MAX);
    }
    let place = places.of(name, number)?;
    Some(Address { offset_bytes: place.address(offset_bytes)?, name: names.id(&place.drive().to_string()) })
}
