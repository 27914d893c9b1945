//! Measures this machine's processor times for a store's operations: the costs of simulated workers.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use flashgrain::Stats;
use flashgrain_profile::Error;

use super::raw::Raw;
use super::{ABOUT, Operation, operate};
use crate::drive::Driven;
use crate::fill::{Filling, Order, fill};
use crate::measure::RawFile;
use crate::processor::ProcessorCosts;
use crate::store::{Options, Store, StoreLocation, StoreOptions, TREE};

/// Most records of the stores that costs are measured with.
const RECORDS_MAX: u64 = 2_000_000;
const TASKS: u32 = 64;
const SECONDS: f64 = 1.0;
const WARMUP_S: f64 = 0.3;
/// Size of the file that is read.
const FILE_BYTES: u64 = 256 << 20;

/// Measures with records as in `options`: on a store in memory, and by reading a scratch file in the current
/// directory.
pub(super) fn measure(options: &Options, interrupt: &AtomicBool) -> anyhow::Result<ProcessorCosts> {
    let all = options.in_memory(RECORDS_MAX);
    let store = StoreOptions { tasks: TASKS, cache_bytes: 3 * all.records.bytes(), ..all.store.clone() };
    let all = Options {
        store,
        seconds: SECONDS,
        raw_seconds: SECONDS,
        warmup_s: WARMUP_S,
        operations_max: None,
        ..all
    };
    let place = StoreLocation::of(&all)?;
    let (look_up, write) = in_memory(&place, &all, interrupt)?;
    let wait = wait_ns(&place, &all, look_up, interrupt)?;
    let request = request_ns(&all, interrupt)?;
    let whole = |ns: f64| ns.max(0.0).round() as u64;
    Ok(ProcessorCosts {
        look_up_ns: whole(look_up),
        write_ns: whole(write),
        wait_ns: whole(wait),
        request_ns: whole(request),
        ..ProcessorCosts::NONE
    })
}

/// Look-ups and updates while all records are in memory. The store is then closed.
fn in_memory(place: &StoreLocation, options: &Options, interrupt: &AtomicBool) -> anyhow::Result<(f64, f64)> {
    let db = place.builder(&options.store).create()?;
    drop(db.tree(TREE)?);
    drop(db.tree(ABOUT)?);
    let mut store = Store::from(db);
    let filling = Filling::all(options.records, Order::Sequential, options.store.workers as usize);
    fill(&mut store, &filling, interrupt, &mut |_| ())?;
    let look_up = ns_per_operation(&run(&mut store, Operation::Lookup, options, interrupt)?);
    let write = ns_per_operation(&run(&mut store, Operation::Update, options, interrupt)?);
    store.close()?;
    Ok((look_up, write))
}

fn run(
    store: &mut Store,
    operation: Operation,
    options: &Options,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven<Stats>> {
    let driven = operate(store, operation, options, interrupt)?;
    if driven.is_interrupted { Err(Error::Interrupted.into()) } else { Ok(driven) }
}

fn ns_per_operation(driven: &Driven<Stats>) -> f64 {
    driven.cpu.as_nanos() as f64 / driven.tally.operations().max(1) as f64
}

/// Processor time of a look-up that has to read, without the look-up and without the read.
fn wait_ns(
    place: &StoreLocation,
    options: &Options,
    look_up_ns: f64,
    interrupt: &AtomicBool,
) -> anyhow::Result<f64> {
    let cache_bytes = options.records.bytes() / 10;
    let options = Options { store: StoreOptions { cache_bytes, ..options.store.clone() }, ..options.clone() };
    let mut store = Store::from(place.builder(&options.store).open()?);
    let driven = run(&mut store, Operation::Lookup, &options, interrupt)?;
    let reads = (driven.after.device.reads - driven.before.device.reads) as f64;
    let reads_each = reads / driven.tally.operations().max(1) as f64;
    // The requests to the device in memory are not part of these costs: their share is measured by itself.
    let mut raw = Raw::default();
    raw.measure(&*place.raw(None, false)?, store.written_region(), &options, interrupt)?;
    store.close()?;
    let read = raw.cpu_us_per_read().unwrap_or(0.0) * 1e3;
    Ok((ns_per_operation(&driven) - look_up_ns) / reads_each.max(0.01) - read)
}

/// Processor time of a read of a scratch file.
fn request_ns(options: &Options, interrupt: &AtomicBool) -> anyhow::Result<f64> {
    let file = RawFile::new(Path::new("."), FILE_BYTES, interrupt)
        .context("measure the cost of a request in the current directory (or give --cpu-costs)")?;
    let mut raw = Raw::default();
    raw.measure(file.device(), file.region(), options, interrupt)?;
    Ok(raw.cpu_us_per_read().unwrap_or(0.0) * 1e3)
}
