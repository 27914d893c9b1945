//! Iologs of `fio`: `NAME ACTION` and `NAME ACTION OFFSET LENGTH`; version 3 has a time in milliseconds
//! before. Version 2 has no times but waits, in microseconds.

use super::Line;
use crate::{Address, Layer, Names, Operation, Request};

const EXPECTED: &str = "a file, then add, open or close, or an action with offset and length";
const EXPECTED_TIMED: &str =
    "milliseconds, a file, then add, open or close, or an action with offset and length";

/// Reads lines; knows how long a log of version 2 has waited.
pub(crate) struct Iolog {
    is_timed: bool,
    waited_ns: u64,
}

impl Iolog {
    pub(crate) fn new(is_timed: bool) -> Self {
        Self { is_timed, waited_ns: 0 }
    }

    pub(crate) fn line(&mut self, text: &str, names: &mut Names) -> Line {
        if text.starts_with("fio version ") {
            return Line::Other;
        }
        let expected = if self.is_timed { EXPECTED_TIMED } else { EXPECTED };
        self.fields(text, names).unwrap_or(Line::Wrong(expected))
    }

    fn fields(&mut self, text: &str, names: &mut Names) -> Option<Line> {
        let mut columns = text.split_ascii_whitespace();
        let time_ns = match self.is_timed {
            true => columns.next()?.parse::<u64>().ok()?.checked_mul(1_000_000)?,
            false => self.waited_ns,
        };
        let file = columns.next()?;
        let operation = match columns.next()? {
            "add" | "open" | "close" => return columns.next().is_none().then_some(Line::Other),
            "wait" if !self.is_timed => {
                let wait_us: u64 = columns.next()?.parse().ok()?;
                self.waited_ns = self.waited_ns.saturating_add(wait_us.saturating_mul(1000));
                return Some(Line::Other);
            }
            "read" => Operation::Read,
            "write" => Operation::Write,
            "sync" | "datasync" => Operation::Flush,
            "trim" => Operation::Discard,
            _ => return None,
        };
        let offset_bytes = columns.next()?.parse().ok()?;
        let length_bytes: u64 = columns.next()?.parse().ok()?;
        if columns.next().is_some() {
            return None;
        }
        let address = Some(Address { name: names.id(file), offset_bytes });
        let is_device = file.starts_with("/dev/");
        Some(Line::Request(Request {
            time_ns,
            layer: if is_device { Layer::Drive } else { Layer::File },
            operation,
            on_device: address.filter(|_| is_device),
            in_file: address.filter(|_| !is_device),
            length_bytes: if operation == Operation::Flush { 0 } else { length_bytes },
            process: None,
            latency_ns: None,
        }))
    }
}
