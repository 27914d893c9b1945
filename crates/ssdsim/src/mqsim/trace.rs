//! Recorded requests, as MQSim and DiskSim write them: text, a request a line.

use std::io::{BufRead, BufReader, Read};

use super::SECTOR_BYTES;
use super::fields::syntax;
use super::flow::Trace;
use crate::error::Error;

/// A recorded request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// When it comes, in nanoseconds since the first one.
    pub arrival_ns: u64,
    /// Its first byte.
    pub offset_bytes: u64,
    /// How many bytes.
    pub length_bytes: u64,
    /// Whether it reads; else it writes.
    pub is_read: bool,
}

/// Longest request, in sectors: 64 MiB.
const SECTORS_MAX: u64 = 1 << 17;

/// The requests of a trace that run, in the order of arrival and with arrival times from 0 on; `lines` are
/// those of its file.
///
/// # Errors
/// [`Error::File`] if it cannot be read; [`Error::Syntax`] with the line that is no request.
pub fn read(lines: impl Read, trace: &Trace) -> Result<Vec<Recorded>, Error> {
    let file = |source| Error::File { path: trace.path.clone(), source };
    let lines = BufReader::new(lines).lines();
    let mut requests = Vec::new();
    for (index, text) in lines.enumerate() {
        let text = text.map_err(file)?;
        if !text.trim().is_empty() {
            let request = request(&text, trace.unit_ns).ok_or_else(|| {
                syntax(
                    &trace.path.display().to_string(),
                    format!(
                        "line {}: {text:?}: expected arrival time, device, first sector, sectors (1 to {SECTORS_MAX}), and 0 for a write or 1 for a read",
                        index + 1
                    ),
                )
            })?;
            requests.push(request);
        }
    }
    // As in MQSim, the share counts only for a file that runs once.
    if trace.repeats == 1 {
        requests.truncate((requests.len() as f64 * trace.share) as usize);
    }
    let first_ns = requests.iter().map(|request| request.arrival_ns).min().unwrap_or(0);
    for request in &mut requests {
        request.arrival_ns -= first_ns;
    }
    requests.sort_by_key(|request| request.arrival_ns);
    Ok(requests)
}

fn request(text: &str, unit_ns: f64) -> Option<Recorded> {
    let mut columns = text.split_ascii_whitespace();
    let arrival = columns.next()?.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0)?;
    let _device = columns.next()?;
    let sector = whole(columns.next()?)?;
    let sectors = whole(columns.next()?).filter(|sectors| (1..=SECTORS_MAX).contains(sectors))?;
    let is_read = columns.next()? != "0";
    if columns.next().is_some() {
        return None;
    }
    Some(Recorded {
        arrival_ns: (arrival * unit_ns) as u64,
        offset_bytes: sector.checked_mul(SECTOR_BYTES)?,
        length_bytes: sectors * SECTOR_BYTES,
        is_read,
    })
}

/// A whole number as C writes it: decimal, hexadecimal after `0x`, or octal after another `0`.
fn whole(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let read = request("2.5 0 16 8 1", 1000.0).unwrap();
        assert_eq!(
            read,
            Recorded { arrival_ns: 2500, offset_bytes: 8192, length_bytes: 4096, is_read: true }
        );
        for nonsense in [
            "",
            "1 0 16 8",
            "1 0 16 8 1 2",
            "-1 0 16 8 1",
            "x 0 16 8 1",
            "1 0 16 0 1",
            "1 0 0x 8 1",
            "1 0 089 8 1",
            "1 0 +16 8 1",
            "nan 0 1 1 1",
        ] {
            assert_eq!(request(nonsense, 1.0), None, "{nonsense:?}");
        }
    }

    #[test]
    fn sectors_are_numbers_of_c_and_only_a_zero_writes() {
        let offset = |text| request(text, 1.0).unwrap().offset_bytes;
        assert_eq!(offset("0 0 0x1F 8 1"), 31 * 512);
        assert_eq!(offset("0 0 017 8 1"), 15 * 512);
        assert_eq!(offset("0 0 0 8 1"), 0);
        assert_eq!(request("0 0 16 0x10 1", 1.0).unwrap().length_bytes, 8192);
        for (word, is_read) in [("0", false), ("1", true), ("2", true), ("Read", true), ("00", true)] {
            assert_eq!(request(&format!("0 0 16 8 {word}"), 1.0).unwrap().is_read, is_read, "{word}");
        }
    }

    #[test]
    fn a_share_counts_only_for_a_trace_that_runs_once() {
        let lines = "5 0 0 8 1\r\n6 0 8 8 0\r\n\r\n7 0 16 8 1\r\n9 0 24 8 0\r\n";
        let trace = |repeats| Trace { path: "lines".into(), share: 0.5, repeats, unit_ns: 1.0 };
        let arrivals = |repeats| {
            let requests = read(lines.as_bytes(), &trace(repeats)).unwrap();
            requests.iter().map(|request| request.arrival_ns).collect::<Vec<_>>()
        };
        assert_eq!(arrivals(1), [0, 1]);
        assert_eq!(arrivals(2), [0, 1, 2, 4]);
    }
}
