//! Measurements of Flashgrain alone, and of the raw device in the same run: the work of `flashgrain bench`.
//!
//! 1. A [`StoreLocation`] for the store is made, with the room that is wanted.
//! 2. The store is filled with records, or one that was kept is opened.
//! 3. The raw device is measured, then clients work on the store, then the raw device is measured again.
//! 4. The store is closed, and removed unless it is to be kept.

mod commit;
mod nodes;
mod placement;
mod prediction;
mod processor;
mod raw;
mod recover;
mod result;
mod room;
mod scale;
mod size;
mod trees;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashgrain::{Db, Durability, ErrorKind, Stats};
use flashgrain_advisor::Drive;
use flashgrain_profile::Error;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;

pub use commit::{CommitResult, commit};
pub use nodes::{NodesResult, nodes};
pub use placement::{PlacementResult, placement};
pub use recover::{RecoverResult, recover};
pub use result::ExperimentResult;
pub use scale::{ScaleResult, scale};
pub use size::{SizeResult, size};
pub use trees::{Structure, TreesOptions, TreesResult, trees};

use crate::benchmark::Benchmark as _;
use crate::drive::{Driven, Span, drive};
use crate::fill::{Filled, Filling, Order, fill};
use crate::keys::Distribution;
use crate::listener::Listener;
use crate::measure::Inside;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::store::{Options, Store, StoreLocation};
use crate::workload::{Mix, OnRecords, Workload};
use prediction::Prediction;
use raw::Raw;

/// The tree that describes the content of the tree of records.
const ABOUT: &str = "about";

/// Share of a simulated drive that is live unless it is said.
const SIMULATED_SPACE_USE: f64 = 0.5;

/// Bytes of a simulated drive, at least, unless its fill level is given.
const DRIVE_BYTES_MIN: u64 = 1 << 30;

/// One in this number of operations has its latency taken, so that reading the clock costs nothing that
/// counts.
const SAMPLE_EVERY: u32 = 8;

/// One operation on random records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// A look-up by key.
    Lookup,
    /// A new value for a record that is there, without looking.
    Update,
    /// This share of look-ups, the rest updates.
    Mixed(f64),
    /// Range queries of this number of records.
    Range(u32),
}

impl Operation {
    fn mix(self) -> Mix {
        let nothing = Mix { in_order: true, ..Mix::default() };
        match self {
            Self::Lookup => Mix { read: 1.0, ..nothing },
            Self::Update => Mix { update: 1.0, ..nothing },
            Self::Mixed(read) => Mix { read, update: 1.0 - read, ..nothing },
            Self::Range(records) => Mix { scan: 1.0, scan_records: (records, records), ..nothing },
        }
    }
}

/// The work that is measured.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Operations on a store that is filled.
    Operate(Operation),
    /// Filling it.
    Fill(Order),
}

/// A measurement that can be made.
pub struct Experiment<'a> {
    /// The store, the records and the clients.
    pub options: Options,
    /// Hears of it.
    pub listener: &'a dyn Listener,
    /// Ends it early.
    pub interrupt: &'a AtomicBool,
}

/// Runs `operation` on the store's records for the warm-up and the span that `options` want.
pub(crate) fn operate(
    store: &mut Store,
    operation: Operation,
    options: &Options,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven<Stats>> {
    let seconds = Duration::from_secs_f64;
    let span = Span {
        clients: options.store.tasks as usize,
        warmup: seconds(options.warmup_s),
        length: seconds(options.seconds),
        operations_max: options.operations_max,
        written_bytes_max: None,
        rate_per_s: None,
        sample_every: SAMPLE_EVERY,
        seed: options.seed,
    };
    let workload = Workload::of(operation.mix(), options.distribution);
    let clients = OnRecords::new(workload, options.records, span.seed).clients(span.clients);
    drive(store, &span, clients, interrupt)
}

impl Experiment<'_> {
    /// Measures `work`, called `name`, and removes its files unless they are to be kept.
    ///
    /// # Errors
    /// Errors of the target and the store, and refusals of options.
    pub fn run(&self, name: &str, work: Work) -> anyhow::Result<ExperimentResult> {
        let place = self.place()?;
        let result = self.measure(name, &place, work, 0);
        if !self.options.keep {
            place.remove()?;
        }
        result
    }

    /// The target, with the room that is wanted.
    fn place(&self) -> anyhow::Result<StoreLocation> {
        let Some(name) = self.options.simulated() else {
            let place = StoreLocation::of(&self.options)?;
            return Ok(match self.options.space_use {
                Some(share) => place.with_room(room::for_share(&self.options, share, 1, self.interrupt)?),
                None => place,
            });
        };
        let config = SimConfig::named(name)?;
        self.simulated_place(&config, self.processor_costs()?)
    }

    /// A simulated drive, or set of drives, of the size that is wanted.
    fn simulated_place(&self, config: &SimConfig, costs: ProcessorCosts) -> anyhow::Result<StoreLocation> {
        let name = self.options.simulated().unwrap_or_default();
        let share = self.options.space_use.unwrap_or(SIMULATED_SPACE_USE);
        let room = room::for_share(&self.options, share, u64::from(config.drives), self.interrupt)?;
        let mut drive_bytes = room.device_bytes / u64::from(config.drives);
        if self.options.space_use.is_none() {
            drive_bytes = drive_bytes.max(DRIVE_BYTES_MIN);
        }
        let resized = config.clone().resized(drive_bytes);
        Ok(StoreLocation::simulated(&resized, name, self.options.seed, costs)?.with_room(room))
    }

    /// Processor time that simulated workers are charged: measured here, unless it was given.
    fn processor_costs(&self) -> anyhow::Result<ProcessorCosts> {
        let costs = match self.options.processor {
            Some(costs) => costs,
            None => {
                self.listener.note("measuring this machine's processor time for a store's work");
                processor::measure(&self.options, self.interrupt)?
            }
        };
        self.listener.note(&costs.describe());
        Ok(costs)
    }

    /// The input of predictions. Simulated workers are charged the same processor costs.
    ///
    /// # Errors
    /// [`Error::Argument`] without a profile, or for a distribution that predictions do not know.
    fn prepare_predictions(&mut self) -> anyhow::Result<Prediction> {
        let Some(profile) = &self.options.store.profile else {
            let wanted = "predictions need the drive's profile: name it with --profile";
            return Err(Error::Argument(wanted.into()).into());
        };
        let drive = Drive::of(profile);
        let skew = match self.options.distribution {
            Distribution::Uniform => 0.0,
            Distribution::Zipf { theta } => theta,
            Distribution::Latest { .. } => {
                let wanted = "predictions know uniform and zipf distributions only";
                return Err(Error::Argument(wanted.into()).into());
            }
        };
        let costs = self.processor_costs()?;
        self.options.processor = Some(costs);
        Ok(Prediction { drive, skew, costs })
    }

    /// Measures `work` in an existing place, after `settling` operations that bring it into its steady state.
    fn measure(
        &self,
        name: &str,
        place: &StoreLocation,
        work: Work,
        settling: u64,
    ) -> anyhow::Result<ExperimentResult> {
        let Self { options, interrupt, .. } = self;
        let (mut raw, mut inside) = (Raw::default(), None);
        let (mut store, driven) = match work {
            Work::Fill(order) => {
                place.remove()?;
                let mut store = place.create(&options.store)?;
                let filled = self.fill(&mut store, order)?;
                (store, result::Measured::from(filled))
            }
            Work::Operate(operation) => {
                let mut store = self.filled(place)?;
                self.measure_raw(&mut raw, &store, place)?;
                self.settle(&mut store, operation, settling)?;
                self.listener.note(&format!("running {name}"));
                if let Some(drive) = place.drive() {
                    drive.reset_statistics();
                }
                let driven = operate(&mut store, operation, options, interrupt)?;
                inside = place.drive().map(Inside::new);
                self.measure_raw(&mut raw, &store, place)?;
                (store, result::Measured::from(driven))
            }
        };
        for shortage in store.run(Db::shortages) {
            self.listener.note(&format!("note: {shortage}"));
        }
        let result = ExperimentResult::new(name, place.describe(), options, store.costs(), driven, raw);
        store.close()?;
        Ok(ExperimentResult { drive: inside, ..result })
    }

    fn settle(&self, store: &mut Store, operation: Operation, operations: u64) -> anyhow::Result<()> {
        if operations == 0 {
            return Ok(());
        }
        self.listener.note(&format!("{operations} operations first that do not count"));
        const LONG_S: f64 = 3e7;
        let options = Options {
            operations_max: Some(operations),
            warmup_s: 0.0,
            seconds: LONG_S,
            seed: !self.options.seed,
            ..self.options.clone()
        };
        operate(store, operation, &options, self.interrupt)?;
        Ok(())
    }

    /// A description of the records, which a kept store holds, too.
    fn contents(&self) -> String {
        let Records { count, key_bytes, value_bytes } = self.options.records;
        format!("{count} records of {key_bytes} + {value_bytes} bytes")
    }

    /// The store with its records: the one that was kept, or a new one.
    fn filled(&self, place: &StoreLocation) -> anyhow::Result<Store> {
        if self.options.keep
            && let Some(store) = self.kept(place)?
        {
            self.say_what_stays(place);
            return Ok(store);
        }
        place.remove()?;
        let mut store = place.create(&self.options.store)?;
        for decision in store.run(|db| db.layout().to_vec()) {
            let (name, value) = (decision.setting.name(), decision.setting.value());
            self.listener.detail(&format!("{name:<24} {value:<12} {}", decision.because));
        }
        let contents = self.contents();
        self.listener.note(&format!("filling a store in {} with {contents}", place.describe()));
        store.set_durability(Durability::None);
        let filled = self.fill(&mut store, self.options.fill_order)?;
        store.reset_durability();
        if filled.is_interrupted {
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

    fn say_what_stays(&self, place: &StoreLocation) {
        if self.options.keep {
            self.listener.leaves(format!("the filled store stays in {}", place.describe()));
        }
    }

    /// The store that was kept, if there is one with the same records.
    fn kept(&self, place: &StoreLocation) -> anyhow::Result<Option<Store>> {
        let db = match place.builder(&self.options.store).open() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let about = db.tree(ABOUT)?.get("contents")?;
        if about.is_some_and(|about| about == self.contents().as_str()) {
            self.listener.note(&format!("using the store that is in {}", place.describe()));
            return Ok(Some(db.into()));
        }
        Db::close(db)?;
        Ok(None)
    }

    fn fill(&self, store: &mut Store, order: Order) -> anyhow::Result<Filled<Stats>> {
        let filling = filling(&self.options, order);
        let mut progress = self.listener.progress("filling");
        fill(store, &filling, self.interrupt, &mut progress)
    }

    /// Reads of the size of the store's, where the store's pages are.
    fn measure_raw(&self, raw: &mut Raw, store: &Store, place: &StoreLocation) -> anyhow::Result<()> {
        let options = &self.options;
        if options.raw_seconds <= 0.0 || self.interrupt.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.listener.note(&format!(
            "reading the raw device at depth {} for {}",
            options.store.tasks,
            unit::seconds(options.raw_seconds)
        ));
        let device = place.raw(options.store.backend, options.store.polled)?;
        raw.measure(&*device, store.written_region(), options, self.interrupt)
    }
}

/// All records, by few clients where few make full leaves.
fn filling(options: &Options, order: Order) -> Filling {
    let clients = match order {
        Order::Random => options.store.tasks,
        Order::Sequential | Order::Stretches | Order::Scattered => options.store.workers,
    };
    Filling::all(options.records, order, clients as usize)
}
