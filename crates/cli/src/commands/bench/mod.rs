//! `flashgrain bench`: workloads on a store, beside what the raw device does in the same run.

mod drive;
mod keys;
mod options;
mod raw;
mod result;
mod target;

use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, Subcommand, ValueEnum};
use flashgrain::{Db, ErrorKind, Tree};
use flashgrain_profile::Error;
use flashgrain_profile::load::Region;
use flashgrain_report::unit;

use crate::output::{Context, print, print_json};
use crate::progress::Percent;
use crate::units::parse_share;
use drive::{Driven, Operation, Order, drive, fill};
use options::BenchOptions;
use raw::Raw;
use result::BenchResult;
use target::Place;

/// Measure the store: throughput, latency, CPU, and what reaches the device, beside the raw device in the same run.
///
/// Each builds a store first, in a folder of its own in the directory, and removes it afterwards unless `--keep` is given.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Random point look-ups.
    Lookup(BenchOptions),
    /// Filling an empty store.
    Fill(FillArguments),
    /// Random updates of records that are there.
    Update(BenchOptions),
    /// Look-ups and updates.
    Mixed(MixedArguments),
}

#[derive(Debug, Args)]
struct FillArguments {
    /// In key order by batches of 100, or one by one in random order.
    #[arg(long, value_enum, default_value_t = FillOrder::Sequential)]
    order: FillOrder,
    #[command(flatten)]
    options: BenchOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FillOrder {
    Sequential,
    Random,
}

#[derive(Debug, Args)]
struct MixedArguments {
    /// Share of the operations that are look-ups.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "50%")]
    read_share: f64,
    #[command(flatten)]
    options: BenchOptions,
}

/// The tree that is measured.
const TREE: &str = "records";
/// The tree that says what the other one holds.
const ABOUT: &str = "about";

pub fn run(arguments: &BenchArguments, context: &Context) -> anyhow::Result<()> {
    let (name, options, work) = match &arguments.what {
        What::Lookup(options) => ("lookups", options, Work::Operate(Operation::Lookup)),
        What::Update(options) => ("updates", options, Work::Operate(Operation::Update)),
        What::Mixed(mixed) => ("mixed", &mixed.options, Work::Operate(Operation::Mixed(mixed.read_share))),
        What::Fill(fill) => {
            let order = match fill.order {
                FillOrder::Sequential => Order::Sequential,
                FillOrder::Random => Order::Random,
            };
            ("inserts", &fill.options, Work::Fill(order))
        }
    };
    options.check()?;
    let interrupt = context.interrupt.watch()?;
    let place = Place::of(options)?;
    let result = measure(name, &place, options, work, context, interrupt);
    if !options.keep {
        place.remove()?;
    }
    let result = result?;
    if options.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

/// What is measured.
#[derive(Clone, Copy)]
enum Work {
    Operate(Operation),
    Fill(Order),
}

fn measure(
    name: &str,
    place: &Place,
    options: &BenchOptions,
    work: Work,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<BenchResult> {
    let (db, driven, raw) = match work {
        Work::Fill(order) => {
            place.remove()?;
            let db = place.builder(options)?.create()?;
            let tree = db.tree(TREE)?;
            let driven = fill_saying(&db, &tree, order, options, context, interrupt)?;
            (db, driven, Raw::default())
        }
        Work::Operate(operation) => {
            let db = filled(place, options, context, interrupt)?;
            let tree = db.existing_tree(TREE)?;
            let mut raw = Raw::default();
            measure_raw(&mut raw, &db, place, options, context, interrupt)?;
            context.note(&format!("running {name} for {}", unit::seconds(options.warmup + options.seconds)));
            let driven = drive(&db, &tree, operation, options, interrupt)?;
            measure_raw(&mut raw, &db, place, options, context, interrupt)?;
            (db, driven, raw)
        }
    };
    let result = BenchResult::new(name, place.describe(), options, driven, raw);
    db.close()?;
    Ok(result)
}

/// What a kept store holds.
fn contents(options: &BenchOptions) -> String {
    format!("{} records of {} + {} bytes", options.records, options.key_bytes, options.value_bytes)
}

/// The store with its records: the one that was kept, or a new one.
fn filled(
    place: &Place,
    options: &BenchOptions,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<Db> {
    if options.keep {
        match place.builder(options)?.open() {
            Ok(db) => {
                let about = db.tree(ABOUT)?.get("contents")?;
                if about.is_some_and(|about| about == contents(options).as_str()) {
                    context.note(&format!("using the store that is in {}", place.describe()));
                    return Ok(db);
                }
                db.close()?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    place.remove()?;
    let db = place.builder(options)?.create()?;
    for decision in db.layout() {
        context.detail(&format!("{:<24} {:<12} {}", decision.setting, decision.value, decision.because));
    }
    let tree = db.tree(TREE)?;
    context.note(&format!("filling a store in {} with {}", place.describe(), contents(options)));
    let quietly = BenchOptions { durability: options::DurabilityName::None, ..options.clone() };
    let driven = fill_saying(&db, &tree, Order::Sequential, &quietly, context, interrupt)?;
    if driven.interrupted {
        return Err(Error::Interrupted.into());
    }
    db.tree(ABOUT)?.insert("contents", contents(options))?;
    db.checkpoint()?;
    Ok(db)
}

fn fill_saying(
    db: &Db,
    tree: &Tree,
    order: Order,
    options: &BenchOptions,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven> {
    let mut percent = Percent::new(context.verbosity, "filling");
    fill(db, tree, order, options, interrupt, &mut |share| percent.show(share))
}

/// Reads of the size of the store's, where the store's pages are.
fn measure_raw(
    raw: &mut Raw,
    db: &Db,
    place: &Place,
    options: &BenchOptions,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<()> {
    if options.raw_seconds <= 0.0 || interrupt.load(Ordering::Relaxed) {
        return Ok(());
    }
    let device = place.raw()?;
    // Segments are taken from the first on; the rest of the file was never written and would be answered without the drive.
    let space = db.stats().space;
    let written = (space.segments - space.free_segments) * space.segment_bytes;
    let region = Region { offset_bytes: space.segments_start_bytes, length_bytes: written };
    context.note(&format!(
        "reading the raw device at depth {} for {}",
        options.tasks,
        unit::seconds(options.raw_seconds)
    ));
    let size = (4096, options.tasks, options.workers());
    raw.measure(&*device, region, size, options.raw_seconds, options.seed, interrupt)
}
