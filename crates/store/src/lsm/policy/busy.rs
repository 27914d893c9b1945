//! The tables and levels that running jobs read and write, so that other jobs keep away from them.

use std::collections::HashSet;

use super::Job;
use crate::buffered::KeyInterval;
use crate::lsm::levels::bytes_of;
use crate::lsm::table::Table;
use crate::sync::Arc;

/// See the module.
#[derive(Default)]
pub(in crate::lsm) struct Busy {
    jobs: Vec<Running>,
    /// Addresses of the jobs' inputs, which the jobs keep in memory.
    inputs: HashSet<usize>,
    /// Jobs that began so far.
    begun: u64,
}

/// A job that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lsm) struct Ticket(u64);

/// The tables and levels that a running job has reserved.
struct Running {
    ticket: Ticket,
    inputs: Vec<Arc<Table>>,
    from: usize,
    /// Bytes that will have left level `from`.
    leaving_bytes: u64,
    to: usize,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl Busy {
    /// A job that was picked begins to run.
    pub fn begin(&mut self, job: &Job) -> Ticket {
        self.begun += 1;
        let ticket = Ticket(self.begun);
        let inputs: Vec<_> = job.tables().cloned().collect();
        self.inputs.extend(inputs.iter().map(address));
        let range = KeyInterval::over(&inputs);
        let key = |of: fn(KeyInterval<'_>) -> &[u8]| range.map_or_else(Vec::new, |range| of(range).to_vec());
        let (first_key, last_key) = (key(|range| range.first), key(|range| range.last));
        let to = job.to.level();
        let leaving_bytes = if to == job.from { 0 } else { bytes_of(job.leaving.iter().flatten()) };
        self.jobs.push(Running { ticket, inputs, from: job.from, leaving_bytes, to, first_key, last_key });
        ticket
    }

    /// Tables with keys of a range come into a level, and do not come from any.
    pub fn begin_load(&mut self, to: usize, range: KeyInterval<'_>) -> Ticket {
        self.begun += 1;
        let ticket = Ticket(self.begun);
        let (first_key, last_key) = (range.first.to_vec(), range.last.to_vec());
        let (inputs, from, leaving_bytes) = (Vec::new(), usize::MAX, 0);
        self.jobs.push(Running { ticket, inputs, from, leaving_bytes, to, first_key, last_key });
        ticket
    }

    /// A job has ended: its outputs are in the levels, or it failed.
    pub fn end(&mut self, ticket: Ticket) {
        for job in self.jobs.extract_if(.., |job| job.ticket == ticket) {
            for table in &job.inputs {
                self.inputs.remove(&address(table));
            }
        }
    }

    /// Bytes of the inputs of all running jobs.
    pub(super) fn input_bytes(&self) -> u64 {
        self.jobs.iter().map(|job| bytes_of(&job.inputs)).sum()
    }

    /// How many jobs are running.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }
}

impl Busy {
    /// Whether a table is the input of a running job.
    pub(in crate::lsm) fn has(&self, table: &Arc<Table>) -> bool {
        self.inputs.contains(&address(table))
    }

    /// Whether a running job takes its inputs from this level.
    pub(super) fn is_source(&self, level: usize) -> bool {
        self.jobs.iter().any(|job| job.from == level)
    }

    /// Bytes of a level that running jobs bring down.
    pub(super) fn leaving_bytes(&self, level: usize) -> u64 {
        self.jobs.iter().filter(|job| job.from == level).map(|job| job.leaving_bytes).sum()
    }

    /// Whether a running job writes to keys of a level.
    pub(in crate::lsm) fn writes(&self, level: usize, range: KeyInterval<'_>) -> bool {
        let writes = |job: &Running| {
            job.to == level && range.overlaps(KeyInterval { first: &job.first_key, last: &job.last_key })
        };
        self.jobs.iter().any(writes)
    }

    /// Whether a running job writes to a level.
    pub(super) fn is_target(&self, level: usize) -> bool {
        self.jobs.iter().any(|job| job.to == level)
    }
}

fn address(table: &Arc<Table>) -> usize {
    Arc::as_ptr(table).addr()
}
