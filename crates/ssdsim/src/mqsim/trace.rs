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

/// The share of a trace that runs, in the order of arrival and with arrival times from 0 on; `lines` are
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
                        "line {}: {text:?}: expected arrival time, device, first sector, sectors (1 to {SECTORS_MAX}), and 1 for a read or 0 for a write",
                        index + 1
                    ),
                )
            })?;
            requests.push(request);
        }
    }
    let kept = (requests.len() as f64 * trace.share) as usize;
    requests.truncate(kept);
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
    let sector = columns.next()?.parse::<u64>().ok()?;
    let sectors =
        columns.next()?.parse::<u64>().ok().filter(|sectors| (1..=SECTORS_MAX).contains(sectors))?;
    let is_read = match columns.next()? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(Recorded {
        arrival_ns: (arrival * unit_ns) as u64,
        offset_bytes: sector.checked_mul(SECTOR_BYTES)?,
        length_bytes: sectors * SECTOR_BYTES,
        is_read,
    })
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
        for nonsense in
            ["", "1 0 16 8", "1 0 16 8 2", "-1 0 16 8 1", "x 0 16 8 1", "1 0 16 0 1", "nan 0 1 1 1"]
        {
            assert_eq!(request(nonsense, 1.0), None, "{nonsense:?}");
        }
    }
}
