//! How large a store must be so that its pages take a given share of it.

use std::sync::atomic::AtomicBool;

use flashgrain_profile::Error;

use super::filling;
use crate::fill::fill;
use crate::store::{Options, Room, StoreLocation, StoreOptions};

/// Records of the store in memory that measures the room of one record.
const TRIAL_RECORDS: u64 = 50_000;

/// Of a device on which records take little: a store needs some segments whatever it holds.
const DEVICE_BYTES_MIN: u64 = 64 << 20;

/// Bytes of the log, at most; it also takes at most this part of the room for pages.
const LOG_BYTES_MAX: u64 = 256 << 20;
const LOG_DIVISOR: u64 = 8;

/// Room in front of everything, and loss by rounding.
const FRONT_BYTES: u64 = 2 << 20;

const ALIGN_BYTES: u64 = 1 << 20;

/// Room for the records of `options` in a store whose whole pages take `share` of it, in steps of
/// `step_bytes`.
pub(super) fn for_share(
    options: &Options,
    share: f64,
    step_bytes: u64,
    interrupt: &AtomicBool,
) -> anyhow::Result<Room> {
    let bytes = bytes_per_record(options, interrupt)? * options.records.count as f64;
    Ok(room((bytes / share) as u64, options.store.log_bytes, step_bytes))
}

fn room(segments_bytes: u64, log_bytes: Option<u64>, step_bytes: u64) -> Room {
    let segments_bytes = segments_bytes.max(DEVICE_BYTES_MIN);
    let log_bytes = log_bytes
        .unwrap_or_else(|| (segments_bytes / LOG_DIVISOR).min(LOG_BYTES_MAX).next_multiple_of(ALIGN_BYTES));
    let device_bytes = segments_bytes + log_bytes + FRONT_BYTES;
    Room { device_bytes: device_bytes.next_multiple_of(ALIGN_BYTES * step_bytes.max(1)), log_bytes }
}

/// Bytes of whole pages for each record.
fn bytes_per_record(options: &Options, interrupt: &AtomicBool) -> anyhow::Result<f64> {
    let trial = options.in_memory(TRIAL_RECORDS);
    let store = StoreOptions { cache_bytes: 64 << 20, log_bytes: None, pin: false, ..trial.store.clone() };
    let trial = Options { store, ..trial };
    let mut store = StoreLocation::of(&trial)?.create(&trial.store)?;
    let filled = fill(&mut store, &filling(&trial, trial.fill_order), interrupt, &mut |_| ())?;
    if filled.is_interrupted {
        return Err(Error::Interrupted.into());
    }
    store.run(|db| db.checkpoint())?;
    let bytes = store.stats().cache.pages * trial.store.page_bytes();
    store.close()?;
    Ok(bytes as f64 / trial.records.count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_what_they_need_beside_the_log() {
        for bytes in [1_u64 << 20, 1 << 30, 1 << 34] {
            let room = super::room(bytes, None, 8);
            assert!(room.device_bytes >= bytes + room.log_bytes + FRONT_BYTES && room.log_bytes > 0);
            assert!(room.log_bytes <= LOG_BYTES_MAX && room.device_bytes.is_multiple_of(8 << 20));
            // A store takes a log of this size on a device of the room's size.
            assert!(room.log_bytes <= room.device_bytes / LOG_DIVISOR);
        }
        assert_eq!(super::room(1 << 30, Some(1 << 20), 1).log_bytes, 1 << 20);
    }
}
