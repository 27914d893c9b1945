//! Preparation of a store before it runs: its devices are opened, and the layout of a new store is decided.

use std::sync::Arc;

use flashgrain_device::{Claim, calendar_seconds};
use flashgrain_settings::layout::Decision;
use flashgrain_settings::{Bytes, drive};

use super::core::Core;
use super::site::{Made, Site, of_device};
use crate::Error;
use crate::checkpoint::area::END_BYTES;
use crate::checkpoint::slots;
use crate::engine::{Engine, Given};
use crate::io_context::{Devices, Role};
use crate::layout::sizes::Sizes;
use crate::layout::{Ground, Layout, Overrides, decide};
use crate::options::Options;
use crate::store_id::StoreId;
use crate::task::Executor;
use crate::worker::Workers;

/// Draws a new store's identity.
fn new_store_id() -> StoreId {
    use std::hash::{BuildHasher, RandomState};
    // The standard library draws its hash keys from the system's randomness.
    let draw = || RandomState::new().hash_one(calendar_seconds()).to_le_bytes();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&draw());
    id[8..].copy_from_slice(&draw());
    StoreId(id)
}

/// The purpose of opening the devices.
pub(super) enum Wanted<'a> {
    Open,
    /// Nothing is changed, whatever state the store is in.
    OpenToRead,
    Create {
        profile: Option<&'a [drive::Decision]>,
        overrides: &'a Overrides,
    },
}

/// The input of the engine.
pub(super) struct Prepared {
    devices: Devices,
    options: Options,
    may_grow: bool,
    read_only: bool,
    new: Option<New>,
}

/// A store that is being made.
struct New {
    id: StoreId,
    layout: Layout,
    decisions: Vec<Decision>,
    made: Made,
}

impl Prepared {
    /// Opens the devices, and decides the layout of a new store.
    pub fn new(site: &Site, wanted: &Wanted<'_>, options: &Options) -> Result<Self, Error> {
        options.check()?;
        let claim = match wanted {
            Wanted::OpenToRead => site.share()?,
            Wanted::Open => site.claim(false)?,
            Wanted::Create { .. } => site.claim(true)?,
        };
        Self::claimed(site, &claim, wanted, options)
    }

    /// As [`Prepared::new`], in places that are claimed.
    pub fn claimed(
        site: &Site,
        claim: &Arc<Claim>,
        wanted: &Wanted<'_>,
        options: &Options,
    ) -> Result<Self, Error> {
        options.check()?;
        // The places of a new store are there once they are claimed.
        let options = Options { room_bytes: site.room_bytes(), ..options.clone() };
        let Wanted::Create { profile, overrides } = wanted else {
            let read_only = matches!(wanted, Wanted::OpenToRead);
            let (devices, may_grow) = (site.open(claim, read_only)?, !read_only && site.may_grow());
            return Ok(Self { devices, options, may_grow, read_only, new: None });
        };
        let stripe_unit =
            profile.and_then(|decisions| drive::decided(decisions, drive::Setting::stripe_unit));
        let stripe_unit = stripe_unit.map(|(Bytes(bytes), _)| bytes);
        let (devices, made) = site.create(claim, stripe_unit)?;
        let data = devices.device(Role::Data);
        if site.may_grow() && data.capacity_bytes() >= END_BYTES {
            // Before it has its size, so that a file that a crash leaves is recognised as incomplete.
            slots::erase(&devices)?;
        }
        let ground = Ground {
            profile: *profile,
            data: data.geometry(),
            log: devices.has_own_log().then(|| devices.device(Role::Log).geometry()),
            capacity_bytes: if site.may_grow() {
                options.size_bytes_max
            } else {
                Some(data.capacity_bytes())
            },
            log_capacity_bytes: (!site.log_may_grow()).then(|| devices.device(Role::Log).capacity_bytes()),
            recovery_log_bytes: options.recovery_log_bytes,
            growth_segments: options.growth_segments,
            room_bytes: options.room_bytes,
        };
        let (layout, decisions) = decide(&ground, overrides)?;
        if site.may_grow() {
            let first = Sizes::of(&layout).device_bytes(options.growth_segments as usize);
            let bytes = options.size_bytes_max.unwrap_or(first);
            data.grow(bytes).map_err(|error| of_device(error, &[]))?;
        }
        if site.log_may_grow() {
            let bytes = layout.log.end_bytes();
            devices.device(Role::Log).grow(bytes).map_err(|error| of_device(error, &[]))?;
        }
        let id = overrides.id.unwrap_or_else(new_store_id);
        let new = Some(New { id, layout, decisions, made });
        Ok(Self { devices, options, may_grow: site.may_grow(), read_only: false, new })
    }

    /// The store's devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Starts the engine. Must be called in a task if the workers have no threads of their own.
    pub fn start(self, executor: Executor, workers: Option<Workers>) -> Result<Arc<Core>, Error> {
        let (core, made) = self.start_engine(executor, workers, false)?;
        made.into_iter().for_each(Made::keep);
        Ok(core)
    }

    /// As [`Prepared::start`], but a new store cannot be opened again before it was closed, and is removed,
    /// as far as it is in files, unless the returned [`Made`] is kept.
    pub fn start_unfinished(
        self,
        executor: Executor,
        workers: Option<Workers>,
    ) -> Result<(Arc<Core>, Option<Made>), Error> {
        self.start_engine(executor, workers, true)
    }

    fn start_engine(
        self,
        executor: Executor,
        workers: Option<Workers>,
        unfinished: bool,
    ) -> Result<(Arc<Core>, Option<Made>), Error> {
        let durability = self.options.durability;
        let growth_segments = self.may_grow.then_some(self.options.growth_segments);
        let (read_only, devices, options) = (self.read_only, self.devices, self.options);
        let given = Given { devices, executor, options, growth_segments, unfinished, read_only };
        let (engine, decisions, made) = match self.new {
            Some(New { id, layout, decisions, made }) => {
                (Engine::create(given, layout, id)?, decisions, Some(made))
            }
            None => {
                let engine = Engine::open(given)?;
                let decisions = engine.superblock().layout.decisions();
                (engine, decisions, None)
            }
        };
        // To discard a part of a file would give its place away.
        let is_file = engine.parts().devices.device(Role::Data).identity().kind == "file";
        engine.parts().segments.reclaim.set_discards(!self.may_grow && !is_file && !read_only);
        Ok((Core::new(engine, workers, decisions, durability, read_only), made))
    }
}

impl Core {
    /// With workers on threads of their own.
    pub(super) fn start(site: &Site, wanted: &Wanted<'_>, options: &Options) -> Result<Arc<Self>, Error> {
        Self::start_prepared(Prepared::new(site, wanted, options)?, options)
    }

    /// Opens the store if it exists, else makes one, without letting go of its places in between.
    pub(super) fn start_or_create(
        site: &Site,
        create: &Wanted<'_>,
        options: &Options,
    ) -> Result<Arc<Self>, Error> {
        options.check()?;
        let claim = site.claim(true)?;
        let start = |wanted: &Wanted<'_>| {
            Self::start_prepared(Prepared::claimed(site, &claim, wanted, options)?, options)
        };
        match start(&Wanted::Open) {
            // Creating checks the devices once more, so nothing is overwritten that only looks empty.
            Err(Error::NotAStore { .. }) => start(create),
            started => started,
        }
    }

    fn start_prepared(prepared: Prepared, options: &Options) -> Result<Arc<Self>, Error> {
        let workers = Workers::start(prepared.devices(), options.workers, options.bounds(), options.pinned)?;
        prepared.start(workers.executor().clone(), Some(workers))
    }
}
