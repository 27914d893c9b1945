//! The buffers of an instance, which are read in rounds.

use std::fs::File;
use std::io::{self, Read};

use super::Instance;
use super::ring;
use crate::Error;

/// The largest page of a ring buffer, in bytes.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// The buffers of all processors.
pub struct Rings {
    files: Vec<File>,
    page: Vec<u8>,
}

impl Rings {
    pub fn of(instance: &Instance) -> Result<Self, String> {
        Ok(Self { files: instance.rings()?, page: vec![0; PAGE_BYTES_MAX] })
    }

    /// Hands all events that there are to `take`, with their times: those of a processor in their order.
    /// The round of a buffer ends after an event of `until_ns` or later: it would never end while events come
    /// faster than they are taken out. Returns the number of events that are known to be lost.
    pub fn read(&mut self, until_ns: u64, mut take: impl FnMut(u64, &[u8])) -> Result<u64, Error> {
        let mut lost = 0;
        for ring in &mut self.files {
            loop {
                match ring.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let found = ring::parse(self.page.get(..length).unwrap_or_default());
                        lost += found.lost + u64::from(!found.is_whole);
                        let is_late = found.events.last().is_some_and(|(time, _)| *time >= until_ns);
                        found.events.into_iter().for_each(|(time, event)| take(time, event));
                        if is_late {
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(Error::os("read the kernel's trace")(error)),
                }
            }
        }
        Ok(lost)
    }
}
