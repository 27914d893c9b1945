//! The output of `blkparse` with its default line format: `MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS
//! [SECTOR + SECTORS] [[PROCESS]]`. Requests are the records of action `D`, issued to the driver.

use super::{Line, sectors};
use crate::{Address, Layer, Names, Operation, Request};

const EXPECTED: &str = "major,minor cpu sequence seconds pid action and RWBS, then sector + sectors";

struct Event<'a> {
    device: &'a str,
    time_ns: u64,
    process: u32,
    action: &'a str,
    rest: std::str::SplitAsciiWhitespace<'a>,
}

pub(crate) fn is_line(text: &str) -> bool {
    event(text).is_some()
}

fn event(text: &str) -> Option<Event<'_>> {
    let mut columns = text.split_ascii_whitespace();
    let device = columns.next()?;
    let (major, minor) = device.split_once(',')?;
    let _numbers: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let _cpu: u32 = columns.next()?.parse().ok()?;
    let _sequence: u64 = columns.next()?.parse().ok()?;
    let time_ns = nanoseconds(columns.next()?)?;
    let process = columns.next()?.parse().ok()?;
    Some(Event { device, time_ns, process, action: columns.next()?, rest: columns })
}

/// Seconds with nine digits after the point.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_fraction = fraction.len() == 9 && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let fraction: u64 = is_fraction.then(|| fraction.parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

pub(crate) fn line(text: &str, names: &mut Names) -> Line {
    let Some(event) = event(text) else {
        let is_summary = text.starts_with("CPU") || text.starts_with("Total (");
        return if is_summary { Line::End } else { Line::Wrong(EXPECTED) };
    };
    if event.action != "D" {
        return Line::Other;
    }
    request(event, names).unwrap_or(Line::Wrong(EXPECTED))
}

fn request(event: Event<'_>, names: &mut Names) -> Option<Line> {
    let mut rest = event.rest;
    let flags = rest.next()?;
    let (sector, length) = match rest.next() {
        Some(sector) if !sector.starts_with('[') => {
            let sector: u64 = sector.parse().ok()?;
            let is_range = rest.next()? == "+";
            (sector, is_range.then(|| rest.next())??.parse::<u64>().ok()?)
        }
        _ => (0, 0),
    };
    let operation = match flags {
        _ if flags.contains('D') => Operation::Discard,
        _ if flags.contains('R') => Operation::Read,
        _ if flags.contains('W') && length > 0 => Operation::Write,
        _ if flags.contains('F') => Operation::Flush,
        _ => return Some(Line::Other),
    };
    Some(Line::Request(Request {
        time_ns: event.time_ns,
        layer: Layer::Drive,
        operation,
        on_device: Some(Address { name: names.id(event.device), offset_bytes: sectors(sector)? }),
        in_file: None,
        length_bytes: sectors(length)?,
        process: Some(event.process),
        latency_ns: None,
    }))
}
