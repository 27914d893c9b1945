//! Traces of MQSim and DiskSim: text, a request a line: arrival time, device, first sector, sectors, and 1
//! for a read or 0 for a write. MQSim takes its times in the unit that its workload file names, nanoseconds
//! unless it says otherwise; the trace itself does not say, and nanoseconds are assumed.

use super::{Line, sectors};
use crate::{Address, Layer, Names, Operation, Request};

const EXPECTED: &str = "arrival time, device, first sector, sectors, and 1 for a read or 0 for a write";

/// Reads lines; times count from the first one on.
#[derive(Default)]
pub(crate) struct Requests {
    first_time: Option<f64>,
}

struct Fields<'a> {
    time: f64,
    device: &'a str,
    sector: u64,
    sectors: u64,
    operation: Operation,
}

pub(crate) fn is_line(text: &str) -> bool {
    fields(text).is_some()
}

fn fields(text: &str) -> Option<Fields<'_>> {
    let mut columns = text.split_ascii_whitespace();
    let time = columns.next()?.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0)?;
    let device = columns.next().filter(|device| device.parse::<u32>().is_ok())?;
    let (sector, sectors) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
    let operation = match columns.next()? {
        "0" => Operation::Write,
        "1" => Operation::Read,
        _ => return None,
    };
    columns.next().is_none().then_some(Fields { time, device, sector, sectors, operation })
}

impl Requests {
    pub fn line(&mut self, text: &str, names: &mut Names) -> Line {
        self.request(text, names).map_or(Line::Wrong(EXPECTED), Line::Request)
    }

    fn request(&mut self, text: &str, names: &mut Names) -> Option<Request> {
        let fields = fields(text)?;
        let first = *self.first_time.get_or_insert(fields.time);
        Some(Request {
            time_ns: (fields.time - first).max(0.0) as u64,
            layer: Layer::Drive,
            operation: fields.operation,
            on_device: Some(Address {
                name: names.id(&format!("device {}", fields.device)),
                offset_bytes: sectors(fields.sector)?,
            }),
            in_file: None,
            length_bytes: sectors(fields.sectors)?,
            process: None,
            latency_ns: None,
        })
    }
}
