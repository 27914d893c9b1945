mod crash;
mod damage;
mod explored;
mod groups;
mod moved;
mod stale;

use std::sync::Arc;

use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::layout::{LogExtent, Placement};

pub(super) const BLOCK_BYTES: u64 = 512;
pub(super) const RING_BYTES: u64 = 256 * BLOCK_BYTES;
/// The log with both copies of the durable mark.
const LOG: std::ops::Range<u64> = 4096..4096 + RING_BYTES + 2 * BLOCK_BYTES;
/// Place of the log's first record.
pub(super) const RING_START: u64 = LOG.start + BLOCK_BYTES;

/// Place of the log.
const PLACE: LogExtent = LogExtent { start_bytes: LOG.start, bytes: LOG.end - LOG.start };

/// A layout with a log of `log_bytes`.
pub(crate) fn layout_of(log_bytes: u64) -> Layout {
    let log = LogExtent { bytes: log_bytes, ..PLACE };
    Layout { log, log_at_creation: log, log_bytes_max: log_bytes, ..layout() }
}

pub(crate) fn layout() -> Layout {
    Layout {
        sector_bytes: 512,
        unit_bytes: 1 << 16,
        segment_bytes: 1 << 20,
        segments_start_bytes: 1 << 20,
        pack_bytes: 4096,
        first_segment_bytes: 0,
        log: PLACE,
        log_at_creation: PLACE,
        log_bytes_max: PLACE.bytes,
        log_block_bytes: BLOCK_BYTES as u32,
        placement: Placement::OutOfPlace,
        sync_method: SyncMethod::Dsync,
        read_ahead_bytes: 0,
        in_flight: 1,
        half_bandwidth_bytes: 0,
        node_bytes: 4096,
    }
}

/// A small flash drive with a volatile cache.
pub(super) fn volatile_device(seed: u64) -> Arc<SimDevice> {
    let config = SimConfig::from_toml(include_str!("drive.toml"), "drive.toml").unwrap();
    Arc::new(SimDevice::new(&config, "sim:volatile", seed).unwrap())
}

pub(crate) fn device(seed: u64) -> Arc<SimDevice> {
    Arc::new(SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", seed).unwrap())
}

/// Workers that never work.
pub(super) fn nobody() -> Executor {
    Executor::new(vec![Arc::default()])
}

pub(crate) const NEW: LogCheckpoint =
    LogCheckpoint { store: 0x5707e, tail: Lsn(0), durable: Lsn(0), timestamp: Timestamp(0), closed: false };

pub(super) type ReplayedRecords = Vec<(Lsn, Timestamp, Vec<u8>)>;

pub(super) fn open(
    device: &Arc<SimDevice>,
    layout: &Layout,
    checkpoint: LogCheckpoint,
) -> Result<(Log, ReplayedRecords), Error> {
    open_on(&Devices::new(Arc::clone(device) as _, None), layout, checkpoint)
}

pub(super) fn open_on(
    devices: &Devices,
    layout: &Layout,
    checkpoint: LogCheckpoint,
) -> Result<(Log, ReplayedRecords), Error> {
    let (mut seen, devices) = (Vec::new(), devices.clone());
    let mut replay = |lsn: Lsn, timestamp: Timestamp, record: &[u8]| {
        seen.push((lsn, timestamp, record.to_vec()));
        Ok(())
    };
    Log::scan(layout, &devices, checkpoint, &mut |_, _, _| Ok(()))?;
    let log = Log::open(layout, devices, nobody(), Poison::default(), checkpoint, &mut replay)?;
    Ok((log, seen))
}

#[test]
fn records_come_back_over_many_laps_and_openings() {
    let mut random = Pcg64::seed_from_u64(1);
    let device = device(1);
    let (mut log, seen) = open(&device, &layout(), NEW).unwrap();
    assert_eq!(seen, []);
    let mut kept: ReplayedRecords = Vec::new();
    let mut checkpoint = NEW;
    for round in 0..3000 {
        let length = [0, 1, 30, 200, 460, 463, 464, 1000, 4000][random.random_range(0..9)];
        let record: Vec<u8> = (0..length).map(|_| random.random()).collect();
        let logged = log.append(&record).unwrap();
        assert_eq!(logged.timestamp, Timestamp(round + 1));
        kept.push((logged.start, logged.timestamp, record));
        if random.random_range(0..3) == 0 {
            log.wait(logged.end, Durability::Sync).unwrap();
        }
        if log.fill() > 0.5 {
            log.wait(logged.end, Durability::Sync).unwrap();
            let cut = random.random_range(0..=kept.len());
            kept.drain(..cut);
            checkpoint.tail = kept.first().map_or(log.end(), |record| record.0);
            checkpoint.timestamp = kept.first().map_or(logged.timestamp, |record| Timestamp(record.1.0 - 1));
            log.truncate(checkpoint.tail);
        }
        if random.random_range(0..50) == 0 {
            log.wait(log.end(), Durability::Sync).unwrap();
            drop(log);
            let (again, seen) = open(&device, &layout(), checkpoint).unwrap();
            assert_eq!(seen, kept, "after {round}");
            assert!(!again.recovered().torn);
            log = again;
        }
    }
    assert!(log.end().0 > 10 * RING_BYTES);
}

#[test]
fn a_record_longer_than_its_share_is_refused() {
    let (log, _) = open(&device(1), &layout(), NEW).unwrap();
    let limit = log.record_limit_bytes() as usize;
    log.append(&vec![1; limit]).unwrap();
    let error = log.append(&vec![1; limit + 1]).unwrap_err();
    assert!(matches!(error, Error::BatchLength { .. }), "{error}");
}
