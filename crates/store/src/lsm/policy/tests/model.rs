//! A tree whose tables are sets of versions: flushes, and jobs that end in any order, as the tree does them.
//! After each step all is checked that jobs must keep.

use std::collections::{BTreeMap, HashMap};

use super::super::{Busy, ForRoom, Job, MergeRoom, Policy, PolicyOptions, busy::Ticket};
use crate::buffered::KeyInterval;
use crate::header::PageId;
use crate::lsm::levels::{Edit, Levels, Run, Target, is_run, overlapping};
use crate::lsm::table::{Places, Summary, Table};
use crate::sync::Arc;

/// Bytes that a record takes in the model.
pub(super) const RECORD_BYTES: u64 = 100;

/// Jobs after which a policy should have come to rest.
const JOBS_MAX: usize = 3000;

/// The result of a check; the error is its message.
pub(super) type Checked<T = ()> = Result<T, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub timestamp: u64,
    pub is_tombstone: bool,
}

pub(super) type Versions = BTreeMap<u32, Own>;

struct Running {
    ticket: Ticket,
    job: Job,
    /// Runs with versions that may be older than the inputs.
    older: Vec<Run>,
}

/// See the module.
pub(super) struct Model<'p> {
    pub policy: &'p dyn Policy,
    pub levels: Levels,
    pub busy: Busy,
    /// Records that a table has.
    table_records: usize,
    running: Vec<Running>,
    /// The versions of each table, by the number of its page.
    contents: HashMap<u64, Versions>,
    newest: Versions,
    clock: u64,
    tables_made: u64,
    pub flushed_records: u64,
    /// With those that were flushed.
    pub written_records: u64,
    pub moves: u64,
    /// Whether all is looked at after each step.
    pub checks: bool,
    /// Whether jobs are looked at before they run.
    pub checks_jobs: bool,
}

fn number_of(table: &Table) -> u64 {
    table.pages[0].0
}

pub(super) fn key_bytes(key: u32) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

/// A table of this number and content.
pub(super) fn table(number: u64, versions: &Versions) -> Arc<Table> {
    let key = |found: Option<(&u32, &Own)>| key_bytes(*found.unwrap().0);
    let summary = Summary {
        first_key: key(versions.first_key_value()),
        last_key: key(versions.last_key_value()),
        records: versions.len() as u64,
        tombstones: versions.values().filter(|own| own.is_tombstone).count() as u64,
        bytes: versions.len() as u64 * RECORD_BYTES,
        newest: versions.values().map(|own| own.timestamp).max().unwrap(),
        ..Summary::default()
    };
    Arc::new(Table::new(Vec::new(), vec![PageId(number)], Places::default(), summary))
}

impl<'p> Model<'p> {
    pub fn new(policy: &'p dyn Policy, table_records: usize) -> Self {
        Self {
            policy,
            levels: Levels::default(),
            busy: Busy::default(),
            table_records,
            running: Vec::new(),
            contents: HashMap::new(),
            newest: Versions::new(),
            clock: 0,
            tables_made: 0,
            flushed_records: 0,
            written_records: 0,
            moves: 0,
            checks: true,
            checks_jobs: true,
        }
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn make_tables(&mut self, versions: Versions) -> Run {
        self.written_records += versions.len() as u64;
        let versions: Vec<(u32, Own)> = versions.into_iter().collect();
        let make = |part: &[(u32, Own)]| {
            self.tables_made += 1;
            let versions: Versions = part.iter().copied().collect();
            let made = table(self.tables_made, &versions);
            self.contents.insert(self.tables_made, versions);
            made
        };
        versions.chunks(self.table_records).map(make).collect()
    }

    /// Writes these keys, each a value or a tombstone, as a run of level 0.
    pub fn flush(&mut self, keys: impl IntoIterator<Item = (u32, bool)>) -> Checked {
        let mut versions = Versions::new();
        for (key, is_tombstone) in keys {
            self.clock += 1;
            versions.insert(key, Own { timestamp: self.clock, is_tombstone });
        }
        self.newest.extend(versions.iter());
        self.flushed_records += versions.len() as u64;
        let added = self.make_tables(versions);
        self.apply(&Edit { removed: Vec::new(), added, to: Target::NewRun(0) })
    }

    /// Begins the job that the policy picks, if it picks one.
    pub fn pick(&mut self) -> Checked<bool> {
        let job = self.policy.pick(&self.levels, &self.busy);
        self.begin(job)
    }

    /// Begins the job that is picked in a shortage, with room for `bytes` bytes.
    pub fn pick_in_shortage(&mut self, options: &PolicyOptions, bytes: u64) -> Checked<bool> {
        let room = Some(MergeRoom { bytes, segment_bytes: options.table_bytes });
        let wanted = ForRoom { small: true, tombstones: true, room };
        let job = super::super::pick((self.policy, options), &self.levels, &self.busy, wanted);
        self.begin(job)
    }

    fn begin(&mut self, job: Option<Job>) -> Checked<bool> {
        let Some(job) = job else { return Ok(false) };
        if self.checks_jobs {
            self.check_job(&job)?;
        }
        let is_input = |table: &Arc<Table>| job.tables().any(|other| Arc::ptr_eq(table, other));
        let behind = self.levels.runs().skip_while(|run| !run.iter().any(is_input));
        let older =
            behind.map(|run| run.iter().filter(|table| !is_input(table)).cloned().collect()).collect();
        let ticket = self.busy.begin(&job);
        self.running.push(Running { ticket, job, older });
        Ok(true)
    }

    fn check_job(&self, job: &Job) -> Checked {
        let Some(range) = KeyInterval::over(job.tables()) else { return Err("a job of no tables".into()) };
        for table in job.tables() {
            if !self.levels.tables().any(|other| Arc::ptr_eq(table, other)) {
                return Err("an input is not in the levels".into());
            }
            if job.tables().filter(|other| Arc::ptr_eq(table, other)).count() > 1 {
                return Err("an input comes twice".into());
            }
        }
        for other in &self.running {
            if job.tables().any(|one| other.job.tables().any(|other| Arc::ptr_eq(one, other))) {
                return Err("two jobs have the same input".into());
            }
            let other_range = KeyInterval::over(other.job.tables());
            let is_to_same = other.job.to.level() == job.to.level();
            if is_to_same && other_range.is_some_and(|other| range.overlaps(other)) {
                return Err("two jobs write to the same keys of a level".into());
            }
            if job.from == 0 && other.job.from == 0 {
                return Err("two jobs of level 0".into());
            }
        }
        Ok(())
    }

    /// Ends one of the running jobs without a result, as one whose device failed.
    pub fn fail(&mut self, index: usize) {
        if !self.running.is_empty() {
            let ended = self.running.swap_remove(index % self.running.len());
            self.busy.end(ended.ticket);
        }
    }

    /// Ends one of the running jobs.
    pub fn finish(&mut self, index: usize) -> Checked {
        if self.running.is_empty() {
            return Ok(());
        }
        let Running { ticket, job, older } = self.running.swap_remove(index % self.running.len());
        let edit = if job.moves {
            self.moves += 1;
            job.moved()
        } else {
            let merged = self.merge(&job, &older)?;
            let added = self.make_tables(merged);
            job.edit(added)
        };
        self.apply(&edit)?;
        self.busy.end(ticket);
        Ok(())
    }

    fn merge(&self, job: &Job, older: &[Run]) -> Checked<Versions> {
        let mut merged = Versions::new();
        for run in job.inputs() {
            if !is_run(run) {
                return Err("tables of an input overlap".into());
            }
            for (key, own) in run.iter().flat_map(|table| &self.contents[&number_of(table)]) {
                let newest = merged.entry(*key).or_insert(*own);
                if newest.timestamp < own.timestamp {
                    return Err(format!("an older version of {key} is in an input before a newer one"));
                }
            }
        }
        let is_hidden = |key: u32| older.iter().flatten().any(|table| table.covers(&key_bytes(key)));
        merged.retain(|key, own| !own.is_tombstone || is_hidden(*key));
        Ok(merged)
    }

    fn apply(&mut self, edit: &Edit) -> Checked {
        let count = self.levels.tables().count();
        let is_removed = |table: &Arc<Table>| edit.removed.iter().any(|other| Arc::ptr_eq(table, other));
        if let (Target::OldestRun(level), Some(run)) = (edit.to, self.levels.level(edit.to.level()).last()) {
            let stay: Run = run.iter().filter(|table| !is_removed(table)).cloned().collect();
            if edit.added.iter().any(|table| !overlapping(&stay, KeyInterval::of(table)).is_empty()) {
                return Err(format!("tables overlap in a run of level {level}"));
            }
        }
        if !is_run(&edit.added) {
            return Err("new tables overlap".into());
        }
        self.levels = self.levels.with(edit);
        if self.levels.tables().count() + edit.removed.len() != count + edit.added.len() {
            return Err("a table went twice, or was lost".into());
        }
        if self.checks { self.check() } else { Ok(()) }
    }

    /// Of each key the first run that has it has the newest version, and each further one an older one.
    fn check(&self) -> Checked {
        let mut last_seen = Versions::new();
        let mut found = Versions::new();
        for run in self.levels.runs() {
            if !is_run(run) {
                return Err("tables of a run overlap".into());
            }
            for (key, own) in run.iter().flat_map(|table| &self.contents[&number_of(table)]) {
                found.entry(*key).or_insert(*own);
                if last_seen.insert(*key, *own).is_some_and(|newer| newer.timestamp <= own.timestamp) {
                    return Err(format!("an older version of {key} lies before a newer one"));
                }
            }
        }
        for (key, own) in &self.newest {
            match found.get(key) {
                Some(found) if found == own => {}
                None if own.is_tombstone => {}
                other => return Err(format!("{key} is {own:?}, and found is {other:?}")),
            }
        }
        Ok(())
    }

    /// Picks and ends jobs, as many at a time as the policy has, until there are none.
    pub fn rest(&mut self, mut choose: impl FnMut() -> usize) -> Checked {
        for _ in 0..JOBS_MAX {
            while self.running.len() < JOBS_MAX && self.pick()? {}
            if self.running.is_empty() {
                return Ok(());
            }
            self.finish(choose())?;
        }
        Err("the policy does not come to rest".into())
    }
}
