//! How large a store must be so that its pages take a given share of it.

use std::sync::atomic::AtomicBool;

use super::drive::fill;
use super::options::{BenchOptions, CacheSize, DurabilityName};
use super::target::Place;

/// Records of the store in memory by which it is found what one takes.
const TRIAL_RECORDS: u64 = 50_000;

/// Of a device on which records take little: a store needs some segments whatever it holds.
const DEVICE_BYTES_MIN: u64 = 64 << 20;

/// The log takes at most so much, and this part of what the pages have.
const LOG_BYTES_MAX: u64 = 256 << 20;
const LOG_PART: u64 = 8;

/// In front of everything, and what rounding takes.
const FRONT_BYTES: u64 = 2 << 20;

const ALIGN_BYTES: u64 = 1 << 20;

/// What a store of fixed size is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub device_bytes: u64,
    pub log_bytes: u64,
}

impl Size {
    /// For the records of `options` in a store of which whole pages take `share`. In steps of `step_bytes`.
    pub fn for_share(
        options: &BenchOptions,
        share: f64,
        step_bytes: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let bytes = bytes_per_record(options, interrupt)? * options.records as f64;
        Ok(Self::new((bytes / share) as u64, options.log_size, step_bytes))
    }

    fn new(segments_bytes: u64, log_bytes: Option<u64>, step_bytes: u64) -> Self {
        let segments_bytes = segments_bytes.max(DEVICE_BYTES_MIN);
        let log_bytes = log_bytes
            .unwrap_or_else(|| (segments_bytes / LOG_PART).min(LOG_BYTES_MAX).next_multiple_of(ALIGN_BYTES));
        let device_bytes = segments_bytes + log_bytes + FRONT_BYTES;
        Self { device_bytes: device_bytes.next_multiple_of(ALIGN_BYTES * step_bytes.max(1)), log_bytes }
    }
}

/// Bytes of whole pages for each record.
fn bytes_per_record(options: &BenchOptions, interrupt: &AtomicBool) -> anyhow::Result<f64> {
    let trial = BenchOptions {
        target: "mem".into(),
        records: options.records.min(TRIAL_RECORDS),
        cache: CacheSize::Bytes(64 << 20),
        workers: Some(1),
        durability: DurabilityName::None,
        in_place: false,
        log: None,
        log_size: None,
        pin: false,
        ..options.clone()
    };
    let mut store = Place::of(&trial)?.create(&trial)?;
    let driven = fill(&mut store, trial.fill_order, &trial, interrupt, &mut |_| ())?;
    if driven.interrupted {
        return Err(flashgrain_profile::Error::Interrupted.into());
    }
    store.run(|db| db.checkpoint())?;
    let bytes = store.stats().cache.pages * trial.node_bytes();
    store.close()?;
    Ok(bytes as f64 / trial.records as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_what_they_need_beside_the_log() {
        for bytes in [1_u64 << 20, 1 << 30, 1 << 34] {
            let size = Size::new(bytes, None, 8);
            assert!(size.device_bytes >= bytes + size.log_bytes + FRONT_BYTES && size.log_bytes > 0);
            assert!(size.log_bytes <= LOG_BYTES_MAX && size.device_bytes.is_multiple_of(8 << 20));
            // What a store allows on a device of its own size.
            assert!(size.log_bytes <= size.device_bytes / LOG_PART);
        }
        assert_eq!(Size::new(1 << 30, Some(1 << 20), 1).log_bytes, 1 << 20);
    }
}
