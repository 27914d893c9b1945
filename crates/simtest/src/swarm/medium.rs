//! The devices of a store.

use std::sync::Arc;

use flashgrain::Builder;
use flashgrain_device::Nanos;
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Repeat, Trigger};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::feature::{Feature, Features};
use super::site::Site;
use crate::media::{Disk, random_cut};
use crate::world::drive;

/// See the module. A clone is the same devices.
#[derive(Clone)]
pub enum Medium {
    /// A simulated flash drive.
    Flash(Arc<SimDevice>),
    /// Memory, for data and perhaps the log.
    Memory(Disk, Option<Disk>),
}

impl Medium {
    /// New devices of a store.
    pub fn new(random: &mut Pcg64, features: Features, site: &Site) -> Self {
        if features.has(Feature::Flash) {
            let drive = drive(site.bytes, random.random());
            if features.has(Feature::Stalls) {
                let span = Nanos(random.random_range(1_000_000..100_000_000));
                let stall = Fault::new(FaultKind::Stall { span, whole_drive: false });
                drive.inject(stall.on(Operation::Read).at(Trigger::Probability(0.03)).repeat(Repeat::Sticky));
            }
            return Self::Flash(drive);
        }
        let blank = |bytes: u64| Disk::new(vec![0; bytes.next_multiple_of(4096) as usize]);
        let disk = blank(site.bytes);
        let disk = if features.has(Feature::Stripes) { disk.striped() } else { disk };
        let disk = if features.has(Feature::Grows) { disk.of_bytes(site.first_bytes) } else { disk };
        Self::Memory(disk, site.log_device_bytes.map(blank))
    }

    /// A builder of a store on these devices.
    pub fn of(&self, builder: Builder, features: Features) -> Builder {
        match self {
            Self::Flash(drive) => builder.device(Arc::clone(drive) as _),
            Self::Memory(disk, log) => {
                let builder = builder.device(Arc::new(disk.clone())).growable(features.has(Feature::Grows));
                let log = log.iter().map(|log| Arc::new(log.clone()) as _);
                log.fold(builder, Builder::log_device)
            }
        }
    }

    /// From now on single reads fail, one in `one_in`.
    pub fn fail_reads(&self, one_in: u64) {
        if let Self::Flash(drive) = self {
            let failing = Fault::new(FaultKind::ReadError { done_bytes: 0 }).on(Operation::Read);
            let rarely = Trigger::Probability(1.0 / one_in.max(1) as f64);
            drive.inject(failing.at(rarely).repeat(Repeat::Sticky));
        }
    }

    /// Nothing fails or stalls any more.
    pub fn heal(&self) {
        if let Self::Flash(drive) = self {
            drive.disarm_faults();
        }
    }

    /// The power fails, and comes back. Of memory nothing is lost.
    pub fn power_cut(&self, random: &mut Pcg64) {
        if let Self::Flash(drive) = self {
            drive.power_cut(&random_cut(random));
        }
    }

    /// After a power cut.
    pub fn power_on(&self) {
        if let Self::Flash(drive) = self {
            drive.power_on();
        }
    }
}
