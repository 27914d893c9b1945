//! The device.

use std::sync::{Arc, Mutex, PoisonError};

use flashgrain_device::{
    Channel, ChannelOptions, Device, Error as DeviceError, Geometry, Identity, Nanos, Simulation, StripeSet,
};

use super::channel::SimChannel;
use super::world::World;
use crate::config::SimConfig;
use crate::error::Error;
use crate::statistics::Statistics;

/// Sizes that the kernel would split at on most drives.
const PREFERRED_MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// A simulated drive, or a stripe set of equal ones, in virtual time that starts at zero.
#[derive(Debug)]
pub struct SimDevice {
    geometry: Geometry,
    identity: Identity,
    world: Arc<Mutex<World>>,
}

impl SimDevice {
    /// Builds the drive that `config` describes. `target` is the user's name for it, such as `sim:960evo`;
    /// all randomness comes from `seed`.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that makes no drive.
    pub fn new(config: &SimConfig, target: &str, seed: u64) -> Result<Self, Error> {
        config.check()?;
        let stripes = StripeSet::new(config.drives, config.stripe_unit_bytes);
        let geometry = Geometry {
            capacity_bytes: stripes.capacity_bytes(config.capacity_bytes),
            offset_align_bytes: config.sector_bytes,
            memory_align_bytes: 1,
            preferred_max_transfer_bytes: PREFERRED_MAX_TRANSFER_BYTES,
            direct: true,
            writable: true,
            members: config.drives,
            stripe_unit_bytes: stripes.unit_bytes(),
        };
        let identity = Identity {
            target: target.to_owned(),
            kind: "simulated".into(),
            model: Some(config.name.clone()),
            logical_block_bytes: Some(config.sector_bytes),
            backend: "sim".into(),
            backend_reason: "a simulated drive in virtual time".into(),
            ..Identity::default()
        };
        let world = World::new(config, stripes, seed)?;
        let device = Self { geometry, identity, world: Arc::new(Mutex::new(world)) };
        for fault in &config.faults {
            device.inject(fault.clone());
        }
        Ok(device)
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counters and latencies since the start or [`SimDevice::reset_statistics`].
    pub fn statistics(&self) -> Statistics {
        self.with(|world| world.statistics())
    }

    /// Starts counting anew.
    pub fn reset_statistics(&self) {
        self.with(World::reset_statistics);
    }

    /// A number that depends on every event so far: the same for the same configuration, seed and requests.
    pub fn digest(&self) -> u64 {
        self.with(|world| world.events.digest())
    }
}

impl Device for SimDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, DeviceError> {
        let number = self.with(World::open_channel);
        Ok(Box::new(SimChannel {
            world: Arc::clone(&self.world),
            geometry: self.geometry.clone(),
            number,
            depth: options.depth as usize,
            in_flight: 0,
            _arena: options.arena.clone(),
        }))
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        Some(self)
    }
}

impl Simulation for SimDevice {
    fn now(&self) -> Nanos {
        self.with(|world| Nanos(world.events.now()))
    }

    fn next_event(&self) -> Option<Nanos> {
        self.with(|world| world.events.next_at().map(Nanos))
    }

    fn pass(&self, until: Nanos) -> bool {
        self.with(|world| world.pass(until.0))
    }
}
