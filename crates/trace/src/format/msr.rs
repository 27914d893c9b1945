//! CSV of the MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, with times
//! in units of 100 ns since 1601, and offsets and sizes in bytes.

use super::Line;
use crate::{Address, Layer, Names, Operation, Request};

const EXPECTED: &str = "Timestamp,Hostname,DiskNumber,Read or Write,Offset,Size,ResponseTime";

/// Reads lines; times count from the first one on.
#[derive(Default)]
pub(crate) struct Csv {
    first_time: Option<u64>,
}

struct Fields<'a> {
    time: u64,
    host: &'a str,
    disk: u32,
    operation: Operation,
    offset_bytes: u64,
    length_bytes: u64,
    response_time: u64,
}

pub(crate) fn is_line(text: &str) -> bool {
    is_header(text) || fields(text).is_some()
}

fn is_header(text: &str) -> bool {
    text.to_ascii_lowercase().starts_with("timestamp,hostname,disknumber,type,offset,size")
}

fn fields(text: &str) -> Option<Fields<'_>> {
    let mut columns = text.split(',').map(str::trim);
    let fields = Fields {
        time: columns.next()?.parse().ok()?,
        host: columns.next()?,
        disk: columns.next()?.parse().ok()?,
        operation: match columns.next()? {
            "Read" => Operation::Read,
            "Write" => Operation::Write,
            _ => return None,
        },
        offset_bytes: columns.next()?.parse().ok()?,
        length_bytes: columns.next()?.parse().ok()?,
        response_time: columns.next()?.parse().ok()?,
    };
    columns.next().is_none().then_some(fields)
}

impl Csv {
    pub(crate) fn line(&mut self, text: &str, names: &mut Names) -> Line {
        let Some(fields) = fields(text) else {
            let is_header = self.first_time.is_none() && is_header(text);
            return if is_header { Line::Other } else { Line::Wrong(EXPECTED) };
        };
        let first_time = *self.first_time.get_or_insert(fields.time);
        let name = names.id(&format!("{}.{}", fields.host, fields.disk));
        Line::Request(Request {
            time_ns: fields.time.saturating_sub(first_time).saturating_mul(100),
            layer: Layer::Drive,
            operation: fields.operation,
            on_device: Some(Address { name, offset_bytes: fields.offset_bytes }),
            in_file: None,
            length_bytes: fields.length_bytes,
            process: None,
            latency_ns: Some(fields.response_time.saturating_mul(100)),
        })
    }
}
