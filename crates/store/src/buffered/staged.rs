//! Memtables of a commit with many writes, which are filled before the commit is logged.
//!
//! Such a commit would keep others waiting while its versions are added one by one: for its locks, and as
//! later commits are visible only when it is. So its versions are put into memtables of their own, without a
//! commit and with no lock held. When it is logged, they get its timestamp, and become frozen memtables after
//! the active one.

use super::memtable::Memtable;
use super::memtables::Memtables;
use crate::index::{Written, staged_from};
use crate::log::{LogRecord, Lsn, Timestamp};
use crate::pool::Pool;
use crate::sync::Arc;
use crate::task::yield_now;

/// From this number of writes to one tree on, a commit's writes are staged.
const WRITES_MIN: usize = 4_096;

/// Versions that are added before other tasks may go on.
const WRITES_PER_PAUSE: usize = 64;

/// No commit has them yet.
const NONE: LogRecord = LogRecord { start: Lsn(u64::MAX), timestamp: Timestamp(u64::MAX) };

/// See the module.
pub(crate) struct StagedMemtables(Vec<Memtable>);

impl StagedMemtables {
    /// The versions of these writes, in memtables of this size; `None` if they are few.
    pub fn of(
        writes: &[Written<'_>],
        pool: &Arc<Pool>,
        (memtable_bytes, record_bytes): (u64, u64),
    ) -> Option<Self> {
        if writes.len() < staged_from(WRITES_MIN) {
            return None;
        }
        let mut all = vec![Memtable::new(pool, memtable_bytes, record_bytes)];
        for (number, written) in writes.iter().enumerate() {
            let (version, value) = written.write.version(Timestamp(0));
            let put = |table: &Memtable| table.put(written.key, version, value, NONE, None).is_ok();
            if !all.last().is_some_and(put) {
                all.push(Memtable::new(pool, memtable_bytes, record_bytes));
                // A write that no memtable has room for is applied in the ordinary way, and fails there.
                all.last().is_some_and(put).then_some(())?;
            }
            if number % WRITES_PER_PAUSE == 0 {
                yield_now();
            }
        }
        Some(Self(all))
    }

    /// Assigns the versions to a commit.
    pub fn stamp(&self, record: LogRecord) {
        self.0.iter().for_each(|table| table.stamp(record));
    }

    /// They are frozen, and so is the active memtable before them.
    pub fn freeze(self, memtables: &mut Memtables) {
        self.0.into_iter().for_each(|table| memtables.freeze(table));
        memtables.freeze(Memtable::none());
    }
}
