//! Growth of the log's ring.
//!
//! A longer ring means fewer checkpoints, and a page that changes several times between two checkpoints is
//! written once. But its room is lost to records. So a store begins with a short ring. After a checkpoint
//! that was made because the log was long, the ring becomes up to sixteen times as long:
//! 1. without further reason, as long as it is a small part of the live bytes, or a few MiB;
//! 2. up to some more MiB, if the ring was more than half full when the checkpoint was complete, because
//!    commits would soon have had to wait for the checkpoint;
//! 3. up to the same MiB, or up to twice the live bytes, if the checkpoint wrote much more pages than log,
//!    because with more time between checkpoints the pages would be written less often.
//!
//! The MiB of all three are limited by a multiple of the live bytes: few records take little room.
//!
//! A record that is too long for the ring makes it as long as the record needs, after any checkpoint.

use crate::layout::LogExtent;

/// Largest growth of a ring by one move.
const STEP_FACTOR: u64 = 16;

/// Length of a ring without further reason: this, or this part of the live bytes. A shorter one moves soon.
pub(crate) const FREE_BYTES: u64 = 4 << 20;
const FREE_DIVISOR: u64 = 8;

/// Longest ring of a backup's target.
const COPY_BYTES: u64 = 16 << 20;

/// Length of a ring that is more than half full when a checkpoint is complete, or whose checkpoints write
/// many pages.
const FAST_BYTES: u64 = 64 << 20;
const FAST_FROM: f64 = 0.5;

/// `FREE_BYTES` and `FAST_BYTES` are limited by these multiples of the live bytes; the former is at least
/// `FREE_BYTES_MIN`.
const FREE_FACTOR: u64 = 8;
const FAST_FACTOR: u64 = 4;
const FREE_BYTES_MIN: u64 = 1 << 20;

/// Bytes of pages written for each byte of the log that make a longer ring worth its room.
const WRITTEN_PER_LOGGED: u64 = 2;

/// How the log was used until a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogUse {
    /// The log's place, and its maximal length.
    pub place: LogExtent,
    pub bytes_max: u64,
    /// Length of the place that a waiting record needs; 0 if none waits.
    pub wanted_bytes: u64,
    /// Whether the checkpoint was made for the log's sake.
    pub is_long: bool,
    /// Bytes of the log, and of changed pages that were written, since the last one.
    pub logged_bytes: u64,
    pub written_bytes: u64,
    /// Fraction of the ring in use when the checkpoint was complete.
    pub fill: f64,
    /// Bytes of all pages and tables, and of records in memory that are in neither.
    pub live_bytes: u64,
    /// Whether the store is the target of a backup: the place is given up in the end, and segments after it
    /// are not moved.
    pub is_copy: bool,
}

impl LogUse {
    /// The length to grow to, if that is more than the present one.
    pub fn target_bytes(&self) -> Option<u64> {
        let Self { place, bytes_max, live_bytes, .. } = *self;
        let free = live_bytes.saturating_mul(FREE_FACTOR).clamp(FREE_BYTES_MIN, FREE_BYTES);
        let fast = live_bytes.saturating_mul(FAST_FACTOR).min(FAST_BYTES);
        let mut most = free.max(live_bytes / FREE_DIVISOR);
        if self.is_copy {
            most = most.min(COPY_BYTES);
        } else if self.written_bytes > WRITTEN_PER_LOGGED * self.logged_bytes {
            most = most.max(fast).max(live_bytes.saturating_mul(2));
        } else if self.fill > FAST_FROM {
            most = most.max(fast);
        }
        let longer = (STEP_FACTOR * place.bytes).min(most).min(bytes_max);
        // Less than a doubling is not worth a move.
        let longer = if self.is_long && longer >= 2 * place.bytes { longer } else { 0 };
        let target = longer.max(self.wanted_bytes);
        (target > place.bytes).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn log_use(ring_bytes: u64, live_bytes: u64) -> LogUse {
        LogUse {
            place: LogExtent { start_bytes: 0, bytes: ring_bytes },
            bytes_max: 256 * MIB,
            wanted_bytes: 0,
            is_long: true,
            logged_bytes: ring_bytes / 3,
            written_bytes: ring_bytes / 3,
            fill: 0.4,
            live_bytes,
            is_copy: false,
        }
    }

    #[test]
    fn a_log_grows_with_its_store_and_for_what_that_spares() {
        let small = log_use(256 << 10, MIB);
        assert_eq!(small.target_bytes(), Some(4 * MIB));
        assert_eq!(LogUse { is_long: false, ..small }.target_bytes(), None);
        assert_eq!(log_use(256 << 10, 4000).target_bytes(), Some(MIB), "few records take little room");
        assert_eq!(LogUse { fill: 0.9, ..log_use(MIB, MIB) }.target_bytes(), Some(4 * MIB));
        let next = log_use(4 * MIB, 16 * MIB);
        assert_eq!(next.target_bytes(), None);
        assert_eq!(log_use(4 * MIB, 1 << 30).target_bytes(), Some(64 * MIB));
        assert_eq!(LogUse { fill: 0.6, ..next }.target_bytes(), Some(64 * MIB));
        let pays = |log_use: LogUse| LogUse { written_bytes: 3 * log_use.logged_bytes, ..log_use };
        assert_eq!(pays(next).target_bytes(), Some(64 * MIB));
        assert_eq!(pays(log_use(64 * MIB, 200 * MIB)).target_bytes(), Some(256 * MIB));
        assert_eq!(pays(log_use(256 * MIB, 1 << 40)).target_bytes(), None);
        let copy = LogUse { is_copy: true, fill: 0.9, ..pays(next) };
        assert_eq!(
            (copy.target_bytes(), LogUse { live_bytes: 1 << 30, ..copy }.target_bytes()),
            (None, Some(16 * MIB))
        );
        assert_eq!(pays(log_use(200 * MIB, 1 << 40)).target_bytes(), None, "for so little it does not move");
    }

    #[test]
    fn a_log_grows_for_a_record_that_waits() {
        let waits = LogUse { wanted_bytes: 80 * MIB, is_long: false, ..log_use(4 * MIB, 0) };
        assert_eq!(waits.target_bytes(), Some(80 * MIB));
        assert_eq!(LogUse { wanted_bytes: 3 * MIB, ..waits }.target_bytes(), None);
    }
}
