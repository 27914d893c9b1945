//! A workload as an engine's client can run it: the predictions are for that, too, so that both are about
//! the same.

use std::num::NonZero;
use std::thread::available_parallelism;

use flashgrain_advisor::Workload;

use super::integer_keys;

/// The workload that is run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Adapted {
    pub workload: Workload,
    /// Each change, with its reason.
    pub changes: Vec<String>,
}

impl Adapted {
    /// As fast as this machine can: without limits that no client keeps.
    pub fn new(workload: &Workload) -> Self {
        let mut adapted = Self { workload: workload.clone(), changes: Vec::new() };
        if adapted.workload.rate_per_second.take().is_some() {
            adapted.change("rate_per_second is left out: clients run as fast as they can");
        }
        if adapted.workload.lifetime.take().is_some() {
            adapted.change("the lifetime budget is left out: a verification is short");
        }
        if adapted.workload.cores.is_none() {
            let cores = cores();
            adapted.workload.cores = u32::try_from(cores).ok();
            adapted.change(&format!("cores is {cores}, as this machine has"));
        }
        adapted
    }

    /// For a table whose keys are integers, by a client that draws all but deletes.
    pub fn of_a_table(workload: &Workload, client: &str) -> Self {
        let mut adapted = Self::new(workload);
        adapted.skew_below_one();
        adapted.deletes_as_updates(client);
        adapted.integer_keys();
        adapted
    }

    /// Notes a change.
    pub fn change(&mut self, text: &str) {
        self.changes.push(text.to_owned());
    }

    /// Keys are picked uniformly, by a client that cannot pick them otherwise.
    pub fn uniform(&mut self, client: &str) {
        let skew = std::mem::take(&mut self.workload.skew);
        if skew != 0.0 {
            self.change(&format!(
                "keys are picked uniformly, not by Zipf's law with {skew}: {client} cannot"
            ));
        }
    }

    /// Keys are integers, as databases have them in tables.
    fn integer_keys(&mut self) {
        let records = &mut self.workload.records;
        if records.key_bytes != integer_keys::BYTES {
            records.value_bytes = records.record_bytes().saturating_sub(integer_keys::BYTES).max(1);
            records.key_bytes = integer_keys::BYTES;
            self.change("keys are integers of 8 bytes, and values take the rest of the record");
        }
    }

    /// Keys are picked with a skew that Gray's method can draw without a table.
    pub fn skew_below_one(&mut self) {
        let skew = self.workload.skew;
        if skew >= 1.0 {
            self.workload.skew = SKEW_MAX;
            self.change(&format!("keys are picked by Zipf's law with {SKEW_MAX}, not {skew}: below 1 alone"));
        }
    }

    /// Look-ups find their keys, and writes change records that are there.
    pub fn hits_and_updates(&mut self, client: &str) {
        let operations = &mut self.workload.operations;
        let (misses, inserts) =
            (std::mem::take(&mut operations.point_misses), std::mem::take(&mut operations.inserts));
        operations.point_hits += misses;
        operations.updates += inserts;
        self.runs_as(misses, "point_misses", "point_hits", client);
        self.runs_as(inserts, "inserts", "updates", client);
        self.deletes_as_updates(client);
    }

    /// Records stay there.
    pub fn deletes_as_updates(&mut self, client: &str) {
        let deletes = std::mem::take(&mut self.workload.operations.deletes);
        self.workload.operations.updates += deletes;
        self.runs_as(deletes, "deletes", "updates", client);
    }

    fn runs_as(&mut self, share: f64, name: &str, instead: &str, client: &str) {
        if share > 0.0 {
            self.change(&format!("{name} run as {instead}: {client} cannot mix them with others"));
        }
    }
}

/// YCSB's, and the largest that is not too close to 1.
const SKEW_MAX: f64 = 0.99;

/// Processors of this machine.
pub(super) fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Records of a range query.
pub(super) fn records_per_range(workload: &Workload) -> u64 {
    workload.operations.range_bytes.div_ceil(workload.records.record_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use flashgrain_advisor::workload;

    use super::*;

    #[test]
    fn each_change_is_said_and_shares_stay_whole() {
        let mut workload = workload::preset("ycsb-d").unwrap();
        workload.rate_per_second = Some(1e3);
        let mut adapted = Adapted::new(&workload);
        adapted.uniform("sh");
        adapted.hits_and_updates("sh");
        let operations = adapted.workload.operations;
        assert_eq!((operations.inserts, operations.updates), (0.0, workload.operations.inserts));
        assert_eq!((adapted.workload.skew, adapted.workload.rate_per_second), (0.0, None));
        let said = adapted.changes.join("\n");
        for text in ["rate_per_second", "cores is", "uniformly", "inserts run as updates"] {
            assert!(said.contains(text), "{text}: {said}");
        }
        assert!(!said.contains("deletes"), "{said}");
        workload::checked(adapted.workload).unwrap();
    }

    #[test]
    fn a_workload_that_can_run_stays_as_it_is() {
        let mut workload = workload::preset("ycsb-a").unwrap();
        (workload.skew, workload.cores) = (0.0, Some(2));
        let mut adapted = Adapted::new(&workload);
        adapted.uniform("sh");
        adapted.hits_and_updates("sh");
        assert_eq!(adapted, Adapted { workload, changes: Vec::new() });
    }
}
