//! Events of block requests, by the layouts that the kernel tells (`events/block/*/format`).

use flashgrain_trace::Operation;

use crate::drives::Drive;
use crate::tracefs::{Field, field, id};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A request was handed to the driver of a drive.
    Issue(Event),
    /// A request was completed.
    Complete(Event),
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The process; not that of the request where the event is a completion.
    pub process: u32,
    /// The drive.
    pub drive: Drive,
    /// The operation of the request.
    pub operation: Operation,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// How many there are.
    pub sectors: u64,
}

/// Where the fields of an event are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    id: u64,
    process: Field,
    drive: Field,
    sector: Field,
    sectors: Field,
    flags: Field,
}

/// The layouts of both events, and where any event has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    pub issue: Layout,
    pub complete: Layout,
    id: Field,
}

impl Layouts {
    /// From the texts that the kernel has of both; `None` if one lacks a field.
    pub fn of(issue: &str, complete: &str) -> Option<Self> {
        let id = field(issue, "common_type")?;
        Some(Self { issue: Layout::of(issue)?, complete: Layout::of(complete)?, id })
    }

    /// The meaning of an event. `None` if it is of another kind, or if its request moves nothing, such as one
    /// that asks for a status.
    pub fn said(&self, event: &[u8]) -> Option<Said> {
        let id = self.id.number(event)?;
        if id == self.issue.id {
            self.issue.event(event).map(Said::Issue)
        } else if id == self.complete.id {
            self.complete.event(event).map(Said::Complete)
        } else {
            None
        }
    }
}

impl Layout {
    fn of(format: &str) -> Option<Self> {
        Some(Self {
            id: id(format)?,
            process: field(format, "common_pid")?,
            drive: field(format, "dev")?,
            sector: field(format, "sector")?,
            sectors: field(format, "nr_sector")?,
            flags: field(format, "rwbs")?,
        })
    }

    fn event(&self, event: &[u8]) -> Option<Event> {
        let number = self.drive.number(event)?;
        let drive = Drive { major: (number >> 20) as u32, minor: (number & 0xf_ffff) as u32 };
        let sectors = self.sectors.number(event)?;
        let flags = self.flags.bytes(event)?;
        let has = |flag: u8| flags.iter().take_while(|byte| **byte != 0).any(|byte| *byte == flag);
        let operation = match () {
            () if has(b'D') => Operation::Discard,
            () if has(b'R') => Operation::Read,
            // An empty write is the request that asked for a flush; the flush itself is another request.
            () if has(b'W') => Operation::Write,
            () if has(b'F') => Operation::Flush,
            () => return None,
        };
        let process = self.process.number(event)? as u32;
        Some(Event { process, drive, operation, sector: self.sector.number(event)?, sectors })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const DRIVE: Drive = Drive { major: 254, minor: 3 };

    fn format(id: u32) -> String {
        format!(
            "name: block_rq\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
             \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n"
        )
    }

    fn event(id: u16, sectors: u32, flags: &[u8]) -> Vec<u8> {
        let mut event = vec![0; 44];
        event[..2].copy_from_slice(&id.to_ne_bytes());
        event[4..8].copy_from_slice(&77_u32.to_ne_bytes());
        event[8..12].copy_from_slice(&(254_u32 << 20 | 3).to_ne_bytes());
        event[16..24].copy_from_slice(&1234_u64.to_ne_bytes());
        event[24..28].copy_from_slice(&sectors.to_ne_bytes());
        event[34..34 + flags.len()].copy_from_slice(flags);
        event
    }

    #[test]
    fn the_kernel_tells_where_the_fields_are() {
        let layouts = Layouts::of(&format(10), &format(11)).unwrap();
        let expected =
            |operation, sectors| Event { process: 77, drive: DRIVE, operation, sector: 1234, sectors };
        assert_eq!(layouts.said(&event(10, 8, b"WS")), Some(Said::Issue(expected(Operation::Write, 8))));
        assert_eq!(layouts.said(&event(11, 8, b"RA")), Some(Said::Complete(expected(Operation::Read, 8))));
        assert_eq!(layouts.said(&event(11, 0, b"FF")), Some(Said::Complete(expected(Operation::Flush, 0))));
        assert_eq!(layouts.said(&event(11, 0, b"WS")), Some(Said::Complete(expected(Operation::Write, 0))));
        assert_eq!(layouts.said(&event(10, 8, b"DS")), Some(Said::Issue(expected(Operation::Discard, 8))));
        assert_eq!(layouts.said(&event(10, 0, b"N")), None);
        assert_eq!(layouts.said(&event(12, 8, b"W")), None);
        assert_eq!(layouts.said(&event(10, 8, b"W")[..20]), None);
        assert_eq!(Layouts::of("", &format(1)), None);
    }
}
