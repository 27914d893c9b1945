//! Writing a region once from its start to its end, so that later reads find data on the drive and not holes.

use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_model::Workload;

use super::{Load, Measured, Pattern, Region, Stop, Sync, run};
use crate::Error;

/// Size of the writes (hidden-parameters paper, Experiment 2): drives place them like bulk data.
pub(crate) const REQUEST_BYTES: u64 = 512 << 10;

/// Writes in flight.
pub(crate) const CONCURRENCY: u64 = 8;

/// Writes every byte of `region` once, in order.
///
/// # Errors
/// As [`run`], and [`Error::Interrupted`].
pub fn lay_out(device: &dyn Device, region: Region, interrupt: &AtomicBool) -> Result<(), Error> {
    let whole = region.length_bytes / REQUEST_BYTES;
    let tail_bytes = region.length_bytes % REQUEST_BYTES;
    let offsets = (0..whole).map(|index| region.offset_bytes + index * REQUEST_BYTES).collect();
    write(device, region, REQUEST_BYTES, offsets, interrupt)?;
    let tail = region.offset_bytes + whole * REQUEST_BYTES;
    write(device, region, tail_bytes, if tail_bytes > 0 { vec![tail] } else { Vec::new() }, interrupt)
}

fn write(
    device: &dyn Device,
    region: Region,
    request_bytes: u64,
    offsets: Vec<u64>,
    interrupt: &AtomicBool,
) -> Result<(), Error> {
    if offsets.is_empty() {
        return Ok(());
    }
    let load = writes_in_order(region, request_bytes, offsets, CONCURRENCY);
    let Measured { interrupted, .. } = run(device, &load, interrupt)?;
    if interrupted { Err(Error::Interrupted) } else { Ok(()) }
}

/// One write of `request_bytes` at each of `offsets`, in order, `concurrency` at a time.
pub(crate) fn writes_in_order(
    region: Region,
    request_bytes: u64,
    offsets: Vec<u64>,
    concurrency: u64,
) -> Load {
    let requests = offsets.len() as u64;
    Load {
        workload: Workload {
            read_share: 0.0,
            request_bytes: request_bytes as f64,
            random_share: 0.0,
            concurrency: requests.clamp(1, concurrency) as f64,
        },
        pattern: Pattern::List(offsets),
        region,
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.0,
        stop: Stop { after_requests: Some(requests), ..Stop::default() },
        seed: 0,
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_device::{FileDevice, OpenOptions};

    use super::*;

    #[test]
    fn every_byte_of_the_region_is_written_and_none_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let length = (3 << 20) + 20480;
        std::fs::write(&path, vec![0; length]).unwrap();
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let paths = std::slice::from_ref(&path);
        let device = FileDevice::existing(paths, paths, &options).unwrap();
        let region = Region { offset_bytes: 8192, length_bytes: length as u64 - 16384 };
        lay_out(&device, region, &AtomicBool::new(false)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[..8192].iter().chain(&bytes[length - 8192..]).all(|byte| *byte == 0));
        // The data are random: a block of 64 zeros means that it was not written.
        assert!(bytes[8192..length - 8192].chunks(64).all(|chunk| chunk.iter().any(|byte| *byte != 0)));
    }

    #[test]
    fn an_interrupt_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let device =
            FileDevice::scratch(&[folder.path().to_owned()], 8 << 20, &OpenOptions::default()).unwrap();
        let region = Region { offset_bytes: 0, length_bytes: 8 << 20 };
        let result = lay_out(&device, region, &AtomicBool::new(true));
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    }
}
