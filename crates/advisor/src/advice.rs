//! Everything that is advised for one workload on one drive.

use flashgrain_cost::ranking::Bound;
use flashgrain_profile::DeviceProfile;
use serde::Serialize;

use crate::Workload;
use crate::drive::Drive;
use crate::engine::{self, EngineAdvice, EngineName, EngineVersion};
use crate::rank::{self, Ranking};

/// Ranked designs, and settings of the engines that were asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The workload.
    pub workload: Workload,
    /// The drive, and when it was profiled.
    pub drive: String,
    /// Values that the profile left undetermined, and their replacements, which widen the intervals.
    pub notes: Vec<String>,
    /// Designs, best first.
    pub ranking: Ranking,
    /// Settings, in the order in which engines were asked for.
    pub engines: Vec<EngineAdvice>,
}

impl Advice {
    /// Advice for a workload on the drive of a profile, for the usual versions of engines.
    pub fn new(workload: &Workload, profile: &DeviceProfile, engines: &[EngineName]) -> Self {
        let engines: Vec<EngineVersion> = engines.iter().map(|engine| (*engine).into()).collect();
        Self::for_versions(workload, profile, &engines)
    }

    /// The same for versions of engines that are named.
    pub fn for_versions(workload: &Workload, profile: &DeviceProfile, engines: &[EngineVersion]) -> Self {
        let drive = Drive::of(profile);
        let ranking = rank::rank(workload, drive.costs());
        let mut notes = drive.notes().to_vec();
        if workload.cores.is_none() && ranking.rows.iter().any(|row| row.bound == Bound::Processor) {
            let clients = workload.clients;
            notes.push(format!("cores is not given: rates are those of {clients} clients with a core each"));
        }
        Self {
            workload: workload.clone(),
            drive: drive.describe(),
            notes,
            ranking,
            engines: engines.iter().map(|engine| engine::advise(*engine, workload, &drive)).collect(),
        }
    }
}
