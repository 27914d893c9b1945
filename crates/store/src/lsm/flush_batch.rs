//! How many frozen memtables a flush merges.
//!
//! Several become one run, without the versions that newer ones among them replace, if the tree's options
//! allow that: small memtables are cheap to insert into, and few runs of level 0 are cheap to read (Jia,
//! Chen, "From Flash to 3D XPoint", §VI, "Memtable"). It pays where keys are written again soon. So flushes
//! of one memtable and of several are compared now and then, by the share of their versions that they keep.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Of these flushes the first is of one memtable, and the second of several, whichever was better before.
const FLUSHES_PER_COMPARISON: u32 = 16;

/// Several are merged if that keeps at most this share of the bytes that flushes of one memtable keep.
const KEPT_FRACTION_MAX: f64 = 7.0 / 8.0;

/// See the module.
pub(super) struct FlushBatch {
    most: usize,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Flushes since the last comparison began.
    flushes: u32,
    /// Share of their versions that the last flush of one memtable kept.
    kept_alone: f64,
    /// Whether several are merged between comparisons.
    pays: bool,
}

impl FlushBatch {
    /// Flushes merge up to `most` memtables.
    pub fn new(most: u32) -> Self {
        Self { most: most.max(1) as usize, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memtables of the next flush, which waits until this number is frozen.
    pub fn wanted(&self) -> usize {
        if self.most == 1 {
            return 1;
        }
        let state = self.state();
        match state.flushes {
            0 => 1,
            1 => self.most,
            _ if state.pays => self.most,
            _ => 1,
        }
    }

    /// A flush of `memtables` kept `kept` of `versions`.
    pub fn note(&self, memtables: usize, (versions, kept): (u64, u64)) {
        if self.most == 1 || versions == 0 {
            return;
        }
        let share = kept as f64 / versions as f64;
        let mut state = self.state();
        match (state.flushes, memtables) {
            (0, 1) => state.kept_alone = share,
            // A checkpoint does not wait for memtables. Such a flush compares nothing.
            (0, _) | (1, 1) => return,
            (1, _) => state.pays = share <= KEPT_FRACTION_MAX * state.kept_alone,
            _ => {}
        }
        state.flushes = (state.flushes + 1) % FLUSHES_PER_COMPARISON;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memtables of each of the next flushes, if one memtable and several keep these shares of 100 versions.
    fn batches(batch: &FlushBatch, (alone, merged): (u64, u64), flushes: u32) -> Vec<usize> {
        let flush = |_| {
            let wanted = batch.wanted();
            batch.note(wanted, (100, if wanted == 1 { alone } else { merged }));
            wanted
        };
        (0..flushes).map(flush).collect()
    }

    #[test]
    fn memtables_are_merged_while_keys_are_written_again() {
        let batch = FlushBatch::new(4);
        let often = [vec![1], vec![4; 15]].concat();
        assert_eq!(batches(&batch, (90, 30), 16), often);
        let seldom = [vec![1, 4], vec![1; 14]].concat();
        assert_eq!(batches(&batch, (90, 85), 16), seldom);
        assert_eq!(batches(&batch, (90, 78), 16), often);
        assert_eq!(batches(&FlushBatch::new(1), (90, 30), 3), [1; 3]);
    }

    #[test]
    fn a_flush_of_fewer_memtables_compares_nothing() {
        let batch = FlushBatch::new(4);
        batch.note(3, (100, 10));
        assert_eq!(batch.wanted(), 1);
        batch.note(1, (100, 90));
        batch.note(1, (100, 90));
        assert_eq!(batch.wanted(), 4, "it still waits for several");
        batch.note(2, (100, 50));
        assert_eq!(batch.wanted(), 4);
    }
}
