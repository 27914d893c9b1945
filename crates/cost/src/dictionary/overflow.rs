//! Values that are too long for a leaf.
//!
//! A record of more than a quarter of a leaf has its value in *overflow pages*, which are read and written
//! together and on their own; its leaf has a reference to them. The values are one level more below the
//! leaves, which memory holds last.

use super::{Demand, Level, Levels, Operation, Situation, Transfer};

/// A leaf has room for at least this many records.
const RECORDS_PER_LEAF_MIN: f64 = 4.0;
/// Bytes that a leaf keeps of a value that is elsewhere: its length and its place.
const REFERENCE_BYTES: f64 = 16.0;

/// Whether a leaf of `leaf_bytes` has only a reference to the value of a record of `record_bytes`.
pub fn is_outside(record_bytes: f64, leaf_bytes: f64) -> bool {
    record_bytes > leaf_bytes / RECORDS_PER_LEAF_MIN
}

/// A tree as an operation finds it: the records as its leaves have them, and the values outside.
pub(crate) struct Stored<'a> {
    /// The surroundings as they are.
    pub whole: &'a Situation,
    operation: Operation,
    /// The surroundings of the tree, with references for values that are elsewhere.
    pub inline: Situation,
    /// Bytes of a value's overflow pages; 0 if the leaves have all values.
    pub value_bytes: f64,
}

impl<'a> Stored<'a> {
    /// Records in leaves of `leaf_bytes`, with overflow pages of whole blocks of `block_bytes`.
    pub fn of(operation: Operation, situation: &'a Situation, leaf_bytes: f64, block_bytes: f64) -> Self {
        let mut stored =
            Self { whole: situation, operation, inline: situation.of(operation), value_bytes: 0.0 };
        let records = &mut stored.inline.records;
        if is_outside(records.record_bytes(), leaf_bytes) && records.value_bytes > REFERENCE_BYTES {
            stored.value_bytes = (records.value_bytes / block_bytes).ceil() * block_bytes;
            records.value_bytes = REFERENCE_BYTES;
        }
        stored
    }

    /// The operation as the tree sees it: a range of records is a shorter one of references.
    pub fn operation(&self) -> Operation {
        match self.operation {
            Operation::Range { bytes } => {
                let share = self.inline.records.record_bytes() / self.whole.records.record_bytes();
                Operation::Range { bytes: bytes * share }
            }
            other => other,
        }
    }

    /// Values that are elsewhere.
    pub fn values(&self) -> f64 {
        if self.value_bytes > 0.0 { self.whole.records.count } else { 0.0 }
    }

    /// Bytes of all overflow pages.
    pub fn total_bytes(&self) -> f64 {
        self.values() * self.value_bytes
    }

    /// The overflow values as a level, with this memory for them.
    fn level(&self, memory_bytes: f64) -> Level {
        let level = Level::unread(self.whole.records.count, self.value_bytes, 1.0);
        Levels::in_memory(&self.inline, memory_bytes, vec![level], 1.0).leaves()
    }

    /// Adds the reads of overflow values by queries, `at_once` of a range query at the same time.
    pub fn add_reads(&self, demand: &mut Demand, memory_bytes: f64, at_once: f64) {
        let (values, at_once) = match self.operation {
            Operation::PointHit => (1.0, 1.0),
            Operation::Range { bytes } => (bytes / self.whole.records.record_bytes(), at_once.max(1.0)),
            _ => return,
        };
        if self.value_bytes > 0.0 {
            demand.add(Transfer::reads(
                values * self.level(memory_bytes).miss_share,
                self.value_bytes,
                self.whole.clients * at_once,
            ));
        }
    }

    /// Overflow values that the operation writes where none waits in memory: they are written before the
    /// commit is.
    pub fn put(&self) -> f64 {
        let is_put = matches!(self.operation, Operation::Insert | Operation::Update);
        if is_put && self.value_bytes > 0.0 { 1.0 } else { 0.0 }
    }

    /// Overflow values that the operation writes where memory gathers changes of them.
    pub fn written(&self, memory_bytes: f64) -> f64 {
        if self.put() > 0.0 { self.level(memory_bytes).first_changes(&self.inline, 1.0) } else { 0.0 }
    }
}
