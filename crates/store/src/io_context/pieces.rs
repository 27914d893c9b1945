//! Reading a long range in pieces, several of them in flight, for callers that have nothing else to do
//! meanwhile, such as the opening of a store.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use flashgrain_device::{Arena, Op, Request};

use super::context::IoContext;
use super::devices::{Devices, Role};
use super::failed::Failed;
use crate::Error;

/// Pieces in flight at most.
const DEPTH: usize = 8;

/// Pieces that are being read, in order. The I/O context comes first: it is dropped first, and waits for the
/// requests in flight then.
struct InFlight {
    context: IoContext,
    pieces: VecDeque<Piece>,
    spare: Vec<Arena>,
}

struct Piece {
    memory: Arena,
    request: u32,
    place: u64,
    length_bytes: u32,
}

impl InFlight {
    fn ask(&mut self, device: usize, place: u64, length_bytes: u32) -> Result<(), Failed> {
        let fits = self.spare.pop().filter(|memory| memory.len_bytes() >= length_bytes as usize);
        let memory = fits.map_or_else(|| Arena::new(length_bytes as usize), Ok)?;
        let (op, memory_start) = (Op::Read, memory.as_ptr());
        let request = Request { op, offset_bytes: place, length_bytes, memory: memory_start, tag: 0 };
        // SAFETY: the arena is that long and aligned to a page; it stays in `pieces` until its answer is
        // taken, or until the I/O context is gone, which waits for it.
        let number = unsafe { self.context.submit(device, request) }?;
        if let Some(request) = number {
            self.pieces.push_back(Piece { memory, request, place, length_bytes });
        }
        Ok(())
    }

    /// The first piece that was asked for, when it is there.
    fn first(&mut self) -> Result<Option<Piece>, Failed> {
        let Some(piece) = self.pieces.pop_front() else { return Ok(None) };
        self.context.wait_for(piece.request).map_err(Failed::Errno)?;
        Ok(Some(piece))
    }
}

/// Reads pieces (first byte, length) one after another and shows each to `look`, with its first byte, until
/// that breaks off. The number of pieces in flight grows as it goes on. It waits on the calling thread, even
/// in a task.
///
/// # Errors
/// [`Error::Io`], and those of `look`.
pub(crate) fn read_pieces<T>(
    devices: &Devices,
    role: Role,
    pieces: impl IntoIterator<Item = (u64, u32)>,
    mut look: impl FnMut(u64, &[u8]) -> Result<ControlFlow<T>, Error>,
) -> Result<Option<T>, Error> {
    let context = IoContext::open(devices, DEPTH as u32)?;
    let mut in_flight = InFlight { context, pieces: VecDeque::new(), spare: Vec::new() };
    let failed = |failed: Failed| failed.error("read the log");
    let (mut pieces, mut wanted) = (pieces.into_iter(), 1);
    loop {
        while in_flight.pieces.len() < wanted
            && let Some((place, length_bytes)) = pieces.next()
        {
            in_flight.ask(devices.index(role), place, length_bytes).map_err(failed)?;
        }
        let Some(mut piece) = in_flight.first().map_err(failed)? else { return Ok(None) };
        let bytes = piece.memory.bytes_mut();
        if let ControlFlow::Break(result) =
            look(piece.place, bytes.get(..piece.length_bytes as usize).unwrap_or_default())?
        {
            return Ok(Some(result));
        }
        in_flight.spare.push(piece.memory);
        wanted = (wanted * 2).min(DEPTH);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::super::{Block, now};
    use super::*;

    #[test]
    fn pieces_come_in_order_and_side_by_side() {
        let config = SimConfig::named("905p").unwrap();
        let devices = Devices::new(Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap()), None);
        let mut block = Block::new(4096).unwrap();
        for place in 0..64_u64 {
            block.bytes().fill(place as u8);
            block.write(&devices, Role::Data, place * 4096).unwrap();
        }
        let began = now(&devices);
        block.read(&devices, Role::Data, 0).unwrap();
        let one = now(&devices).since(began);
        let mut seen = Vec::new();
        let began = now(&devices);
        let read = |pieces: u64, seen: &mut Vec<u8>| {
            read_pieces(
                &devices,
                Role::Data,
                (0..pieces).map(|place| (place * 4096, 4096)),
                |place, bytes| {
                    assert!(bytes.iter().all(|byte| u64::from(*byte) == place / 4096));
                    seen.push(bytes[0]);
                    Ok(if place / 4096 == 50 { ControlFlow::Break(place) } else { ControlFlow::Continue(()) })
                },
            )
        };
        assert_eq!(read(40, &mut seen).unwrap(), None);
        let all = now(&devices).since(began);
        assert_eq!(seen, (0..40).collect::<Vec<u8>>());
        assert_eq!(read(64, &mut seen).unwrap(), Some(50 * 4096));
        // Simulated time: one after another they would take forty times one.
        assert!(all.0 < 20 * one.0, "{all:?} for 40, {one:?} for one");
    }
}
