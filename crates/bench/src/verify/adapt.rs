//! A workload as an engine's client can run it: the predictions are for that, too, so that both are about
//! the same.

use std::num::NonZero;
use std::thread::available_parallelism;

use flashgrain_advisor::Workload;
use flashgrain_advisor::workload::Operations;

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
            let cores = available_parallelism().map_or(1, NonZero::get);
            adapted.workload.cores = u32::try_from(cores).ok();
            adapted.change(&format!("cores is {cores}, as this machine has"));
        }
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

    /// Look-ups find their keys, and writes change records that are there.
    pub fn hits_and_updates(&mut self, client: &str) {
        let Operations { point_misses, inserts, deletes, .. } = self.workload.operations;
        let operations = &mut self.workload.operations;
        operations.point_hits += std::mem::take(&mut operations.point_misses);
        operations.updates +=
            std::mem::take(&mut operations.inserts) + std::mem::take(&mut operations.deletes);
        for (share, name, instead) in [
            (point_misses, "point_misses", "point_hits"),
            (inserts, "inserts", "updates"),
            (deletes, "deletes", "updates"),
        ] {
            if share > 0.0 {
                self.change(&format!("{name} run as {instead}: {client} cannot mix them with others"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_and_shares_stay_whole() {
        let mut workload = Workload::preset("ycsb-d").unwrap();
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
        adapted.workload.checked().unwrap();
    }

    #[test]
    fn a_workload_that_can_run_stays_as_it_is() {
        let mut workload = Workload::preset("ycsb-a").unwrap();
        (workload.skew, workload.cores) = (0.0, Some(2));
        let mut adapted = Adapted::new(&workload);
        adapted.uniform("sh");
        adapted.hits_and_updates("sh");
        assert_eq!(adapted, Adapted { workload, changes: Vec::new() });
    }
}
