//! Which bytes each experiment may still write.

use std::collections::BTreeMap;

use crate::config::ExperimentName;
use crate::plan::PlannedTrial;

/// Bytes that trials which have not run yet would write in a repeat, by experiment: repeats of the first
/// kinds leave the others their bytes.
pub(super) struct ByteShares(BTreeMap<ExperimentName, u64>);

impl ByteShares {
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a PlannedTrial>) -> Self {
        Self(planned_bytes(trials))
    }

    /// The part of `remaining` for `trials`, which are about to run.
    pub(super) fn take(
        &mut self,
        trials: &[PlannedTrial],
        remaining: &BTreeMap<ExperimentName, u64>,
    ) -> BTreeMap<ExperimentName, u64> {
        let part = |(name, own): (ExperimentName, u64)| {
            let all = self.0.get_mut(&name)?;
            let share = own as f64 / (*all).max(1) as f64;
            *all -= own;
            Some((name, (*remaining.get(&name)? as f64 * share) as u64))
        };
        planned_bytes(trials).into_iter().filter_map(part).collect()
    }
}

fn planned_bytes<'a>(trials: impl IntoIterator<Item = &'a PlannedTrial>) -> BTreeMap<ExperimentName, u64> {
    let mut bytes = BTreeMap::new();
    for one in trials {
        *bytes.entry(one.trial.experiment).or_default() += one.write_bytes;
    }
    bytes
}
