//! The devices of a store and their purposes.

use std::ptr;
use std::sync::{Arc, Weak};

use flashgrain_device::Device;

use super::flushes::Flushes;
use super::traffic::{Counters, InFlight, Meter, Traffic};

/// Purpose of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Pages in segments, and the superblocks.
    Data,
    /// The log.
    Log,
}

/// The devices of a store. Both roles may be on the same device. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Devices {
    shared: Arc<OpenDevices>,
}

/// Identity of a store's devices, for holders that do not keep them open.
pub(super) type Owner = Weak<OpenDevices>;

pub(super) struct OpenDevices {
    all: Vec<Arc<dyn Device>>,
    log_index: usize,
    /// The flushes of each device.
    flushes: Vec<Flushes>,
    meter: Meter,
}

impl Devices {
    /// A store on `data`, with its log on `log` if that is another device.
    pub fn new(data: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Self {
        let all: Vec<_> = std::iter::once(data).chain(log).collect();
        let log_index = all.len() - 1;
        let flushes = all.iter().map(|_| Flushes::default()).collect();
        Self { shared: Arc::new(OpenDevices { all, log_index, flushes, meter: Meter::default() }) }
    }

    /// Counters of one more I/O context to them.
    pub(super) fn counters(&self) -> Arc<Counters> {
        self.shared.meter.join()
    }

    /// Their identity.
    pub(super) fn owner(&self) -> Owner {
        Arc::downgrade(&self.shared)
    }

    /// Whether they are these.
    #[inline]
    pub(super) fn are(&self, owner: &Owner) -> bool {
        ptr::eq(owner.as_ptr(), Arc::as_ptr(&self.shared))
    }

    /// The devices of `owner`, if they are still open.
    pub(super) fn of(owner: &Owner) -> Option<Self> {
        owner.upgrade().map(|shared| Self { shared })
    }

    /// Requests in flight of all I/O contexts, at about this time.
    pub(super) fn in_flight(&self) -> InFlight {
        self.shared.meter.in_flight()
    }

    /// Requests that all I/O contexts have sent so far.
    pub fn traffic(&self) -> Traffic {
        self.shared.meter.read()
    }

    /// All devices, each once.
    pub fn all(&self) -> &[Arc<dyn Device>] {
        &self.shared.all
    }

    /// Whether time passes only while a thread waits.
    pub fn is_simulated(&self) -> bool {
        self.shared.all.iter().any(|device| device.simulation().is_some())
    }

    /// The device for `role`.
    pub fn device(&self, role: Role) -> &Arc<dyn Device> {
        &self.shared.all[self.index(role)]
    }

    /// Whether the log has a device of its own.
    pub fn has_own_log(&self) -> bool {
        self.shared.log_index > 0
    }

    /// Flushes under way on the device for `role`.
    pub(super) fn flushes(&self, role: Role) -> &Flushes {
        &self.shared.flushes[self.index(role)]
    }

    /// Index of the device for `role` in [`Devices::all`].
    pub(super) fn index(&self, role: Role) -> usize {
        match role {
            Role::Data => 0,
            Role::Log => self.shared.log_index,
        }
    }
}
