//! One measurement: the place, the store with its records, the raw device before and after.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{Db, ErrorKind};
use flashgrain_profile::Error;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;

use super::ABOUT;
use super::costs::Costs;
use super::drive::{Driven, Operation, Order, drive, fill};
use super::options::{BenchOptions, DurabilityName};
use super::raw::Raw;
use super::result::BenchResult;
use super::size::Size;
use super::store::Store;
use super::target::Place;
use crate::commands::sim::Inside;
use crate::output::Context;
use crate::progress::Percent;

/// Share of a simulated drive that is live unless it is said.
const SIMULATED_SPACE_USE: f64 = 0.5;

/// A simulated drive has at least so much unless it is said how full it is to be.
const DRIVE_BYTES_MIN: u64 = 1 << 30;

/// What is measured.
#[derive(Clone, Copy)]
pub enum Work {
    Operate(Operation),
    Fill(Order),
}

/// What every measurement needs.
pub struct Bench<'a> {
    pub options: BenchOptions,
    /// Operations before everything else, so that what follows is in its steady state.
    pub settling: u64,
    pub context: &'a Context,
    pub interrupt: &'a AtomicBool,
}

impl Bench<'_> {
    /// Measures `work`, called `name`, and leaves nothing behind that is not to be kept.
    pub fn run(&self, name: &str, work: Work) -> anyhow::Result<BenchResult> {
        let place = self.place()?;
        let result = self.measure(name, &place, work);
        if !self.options.keep {
            place.remove()?;
        }
        result
    }

    /// The target, with the room that is wanted.
    pub fn place(&self) -> anyhow::Result<Place> {
        let Some(name) = self.options.simulated() else {
            let place = Place::of(&self.options)?;
            return Ok(match self.options.space_use {
                Some(share) => place.sized(Size::for_share(&self.options, share, 1, self.interrupt)?),
                None => place,
            });
        };
        let config = SimConfig::named(name)?;
        self.simulated_place(&config, self.costs()?)
    }

    /// A simulated drive, or set of drives, of the size that is wanted.
    pub fn simulated_place(&self, config: &SimConfig, costs: Costs) -> anyhow::Result<Place> {
        let name = self.options.simulated().unwrap_or_default();
        let share = self.options.space_use.unwrap_or(SIMULATED_SPACE_USE);
        let size = Size::for_share(&self.options, share, u64::from(config.drives), self.interrupt)?;
        let mut drive_bytes = size.device_bytes / u64::from(config.drives);
        if self.options.space_use.is_none() {
            drive_bytes = drive_bytes.max(DRIVE_BYTES_MIN);
        }
        let resized = config.clone().resized(drive_bytes);
        Ok(Place::simulated(&resized, name, self.options.seed, costs)?.sized(size))
    }

    /// What simulated processors take: measured here, unless it was given.
    pub fn costs(&self) -> anyhow::Result<Costs> {
        let costs = match self.options.cpu_costs {
            Some(costs) => costs,
            None => {
                self.context.note("measuring what this machine's processor takes for a store's work");
                Costs::measure(&self.options, self.interrupt)?
            }
        };
        self.context.note(&costs.describe());
        Ok(costs)
    }

    pub fn measure(&self, name: &str, place: &Place, work: Work) -> anyhow::Result<BenchResult> {
        let Self { options, interrupt, .. } = self;
        let (mut raw, mut inside) = (Raw::default(), None);
        let (store, driven) = match work {
            Work::Fill(order) => {
                place.remove()?;
                let mut store = place.create(options)?;
                let driven = self.fill(&mut store, order, options)?;
                (store, driven)
            }
            Work::Operate(operation) => {
                let mut store = self.filled(place)?;
                self.measure_raw(&mut raw, &store, place)?;
                self.settle(&mut store, operation)?;
                self.context.note(&format!("running {name}"));
                if let Some(drive) = place.drive() {
                    drive.reset_statistics();
                }
                let driven = drive(&mut store, operation, options, interrupt)?;
                inside = place.drive().map(Inside::new);
                self.measure_raw(&mut raw, &store, place)?;
                (store, driven)
            }
        };
        let result = BenchResult::new(name, place.describe(), options, store.costs(), driven, raw);
        store.close()?;
        Ok(BenchResult { drive: inside, ..result })
    }

    fn settle(&self, store: &mut Store, operation: Operation) -> anyhow::Result<()> {
        if self.settling == 0 {
            return Ok(());
        }
        self.context.note(&format!("{} operations first that do not count", self.settling));
        const LONG_S: f64 = 3e7;
        let operations = Some(self.settling);
        let options = BenchOptions {
            operations,
            warmup: 0.0,
            seconds: LONG_S,
            seed: !self.options.seed,
            ..self.options.clone()
        };
        drive(store, operation, &options, self.interrupt)?;
        Ok(())
    }

    /// What a kept store holds.
    fn contents(&self) -> String {
        let BenchOptions { records, key_bytes, value_bytes, .. } = self.options;
        format!("{records} records of {key_bytes} + {value_bytes} bytes")
    }

    /// The store with its records: the one that was kept, or a new one.
    pub fn filled(&self, place: &Place) -> anyhow::Result<Store> {
        if self.options.keep
            && let Some(store) = self.kept(place)?
        {
            self.say_what_stays(place);
            return Ok(store);
        }
        place.remove()?;
        let mut store = place.create(&self.options)?;
        for decision in store.run(|db| db.layout().to_vec()) {
            self.context
                .detail(&format!("{:<24} {:<12} {}", decision.setting, decision.value, decision.because));
        }
        let contents = self.contents();
        self.context.note(&format!("filling a store in {} with {contents}", place.describe()));
        let quietly = BenchOptions { durability: DurabilityName::None, ..self.options.clone() };
        let driven = self.fill(&mut store, self.options.fill_order, &quietly)?;
        if driven.interrupted {
            // Part of the records is of no use to the next run.
            drop(store);
            place.remove()?;
            return Err(Error::Interrupted.into());
        }
        store.run(move |db| {
            db.tree(ABOUT)?.insert("contents", contents)?;
            db.checkpoint()
        })?;
        self.say_what_stays(place);
        Ok(store)
    }

    fn say_what_stays(&self, place: &Place) {
        if self.options.keep {
            self.context.interrupt.leaves(format!("the filled store stays in {}", place.describe()));
        }
    }

    /// The store that was kept, if there is one with the same records.
    fn kept(&self, place: &Place) -> anyhow::Result<Option<Store>> {
        let db = match place.builder(&self.options)?.open() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let about = db.tree(ABOUT)?.get("contents")?;
        if about.is_some_and(|about| about == self.contents().as_str()) {
            self.context.note(&format!("using the store that is in {}", place.describe()));
            return Ok(Some(Store::Threads(db)));
        }
        Db::close(db)?;
        Ok(None)
    }

    fn fill(&self, store: &mut Store, order: Order, options: &BenchOptions) -> anyhow::Result<Driven> {
        let mut percent = Percent::new(self.context.verbosity, "filling");
        fill(store, order, options, self.interrupt, &mut |share| percent.show(share))
    }

    /// Reads of the size of the store's, where the store's pages are.
    pub fn measure_raw(&self, raw: &mut Raw, store: &Store, place: &Place) -> anyhow::Result<()> {
        let options = &self.options;
        if options.raw_seconds <= 0.0 || self.interrupt.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.context.note(&format!(
            "reading the raw device at depth {} for {}",
            options.tasks,
            unit::seconds(options.raw_seconds)
        ));
        raw.measure(&*place.raw()?, Raw::region(&store.stats().space), options, self.interrupt)
    }
}
