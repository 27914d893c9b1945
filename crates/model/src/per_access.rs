//! One thing for reads, one for writes.

use serde::{Deserialize, Serialize};

use crate::observation::{Point, Points};
use crate::{Access, Workload};

/// Costs of reads and costs of writes; at least one of them is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PerAccess<C> {
    reads: Option<C>,
    writes: Option<C>,
}

impl<C> PerAccess<C> {
    /// Costs of both kinds.
    pub(crate) fn of_both(reads: C, writes: C) -> Self {
        Self { reads: Some(reads), writes: Some(writes) }
    }

    /// Fits each kind to its own points; `None` if neither kind could be fitted.
    pub(crate) fn fit(points: &Points, fit: impl Fn(Access, &[Point]) -> Option<C>) -> Option<Self> {
        let reads = fit(Access::Read, &points.reads);
        let writes = fit(Access::Write, &points.writes);
        (reads.is_some() || writes.is_some()).then_some(Self { reads, writes })
    }

    pub(crate) fn get(&self, access: Access) -> Option<&C> {
        match access {
            Access::Read => self.reads.as_ref(),
            Access::Write => self.writes.as_ref(),
        }
    }

    /// Both kinds that are there.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.reads.iter_mut().chain(&mut self.writes)
    }

    /// Both kinds that are there, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Access, &C)> {
        [(Access::Read, &self.reads), (Access::Write, &self.writes)]
            .into_iter()
            .filter_map(|(access, costs)| Some((access, costs.as_ref()?)))
    }

    /// Cost of a workload whose reads and writes add up, each weighted with its share.
    pub(crate) fn seconds_per_byte(&self, workload: &Workload, cost: impl Fn(&C) -> f64) -> Option<f64> {
        let (reads, writes) = self.parts(workload, cost)?;
        Some(reads + writes)
    }

    /// The shares of reads and of writes in the cost of a workload; `None` if a kind it contains was not
    /// fitted.
    pub(crate) fn parts(&self, workload: &Workload, cost: impl Fn(&C) -> f64) -> Option<(f64, f64)> {
        let part =
            |share: f64, costs: Option<&C>| if share > 0.0 { Some(share * cost(costs?)) } else { Some(0.0) };
        Some((
            part(workload.read_share, self.reads.as_ref())?,
            part(1.0 - workload.read_share, self.writes.as_ref())?,
        ))
    }

    /// Sum of a count over the kinds that a workload of this kind (`None`: mixed) needs.
    pub(crate) fn count(&self, access: Option<Access>, count: impl Fn(&C) -> usize) -> usize {
        self.iter()
            .filter(|(own, _)| access.is_none_or(|wanted| wanted == *own))
            .map(|(_, costs)| count(costs))
            .sum()
    }
}
