//! What this machine's processor takes for what a store does: the costs of simulated workers.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use flashgrain::{CpuCosts, Simulated};
use flashgrain_device::{FileDevice, OpenOptions};
use flashgrain_profile::load::{self, Region};
use serde::Serialize;

use super::drive::{Driven, Operation, Order, drive, fill};
use super::options::{BenchOptions, CacheSize, DurabilityName};
use super::raw::Raw;
use super::store::Store;
use super::target::Place;
use super::{ABOUT, TREE};

/// Processor time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Of a look-up that finds everything in memory, the benchmark's own share included.
    pub look_up_ns: u64,
    /// The same for an insert or update.
    pub write_ns: u64,
    /// More of it for each wait: for the page table, a frame, eviction, and going away and coming back.
    pub wait_ns: u64,
    /// Of a request to a device through the kernel, submission and completion.
    pub request_ns: u64,
}

/// What has been done.
#[derive(Clone, Copy, Debug)]
pub enum Done {
    Lookup,
    Writes(u64),
}

/// Most records of the stores that costs are measured with.
const RECORDS_MAX: u64 = 2_000_000;
const TASKS: u32 = 64;
const SECONDS: f64 = 1.0;
const WARMUP_S: f64 = 0.3;
/// Of the file that is read.
const FILE_BYTES: u64 = 256 << 20;

impl std::str::FromStr for Costs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HELP: &str = "expected four times in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST";
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[look_up_ns, write_ns, wait_ns, request_ns]) => {
                Ok(Self { look_up_ns, write_ns, wait_ns, request_ns })
            }
            _ => Err(HELP.into()),
        }
    }
}

impl std::fmt::Display for Costs {
    /// As it is typed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { look_up_ns, write_ns, wait_ns, request_ns } = self;
        write!(formatter, "{look_up_ns},{write_ns},{wait_ns},{request_ns}")
    }
}

impl Costs {
    /// Of processors that take no time for anything.
    pub const NONE: Self = Self { look_up_ns: 0, write_ns: 0, wait_ns: 0, request_ns: 0 };

    /// In words.
    pub fn describe(&self) -> String {
        format!(
            "a look-up in memory takes {} ns of a processor, a write {} ns, each wait {} ns more, each request {} ns (again: --cpu-costs {self})",
            self.look_up_ns, self.write_ns, self.wait_ns, self.request_ns
        )
    }

    /// What the store's workers spend by themselves.
    pub fn of_workers(&self) -> CpuCosts {
        CpuCosts { task_ns: self.wait_ns, request_ns: self.request_ns }
    }

    /// What an operation spends besides, after the last of its waits.
    pub fn spend(&self, done: Done) {
        Simulated::spend(Duration::from_nanos(match done {
            Done::Lookup => self.look_up_ns,
            Done::Writes(count) => self.write_ns * count,
        }));
    }

    /// Measures them here, with records as in `options`: on a store in memory, and by reading a scratch file in the current directory.
    pub fn measure(options: &BenchOptions, interrupt: &AtomicBool) -> anyhow::Result<Self> {
        let all = BenchOptions {
            target: "mem".into(),
            records: options.records.min(RECORDS_MAX),
            cache: CacheSize::Share(3.0),
            workers: Some(1),
            tasks: TASKS,
            seconds: SECONDS,
            raw_seconds: SECONDS,
            warmup: WARMUP_S,
            operations: None,
            durability: DurabilityName::None,
            in_place: false,
            keep: false,
            log: None,
            ..options.clone()
        };
        let place = Place::of(&all)?;
        let (look_up, write) = in_memory(&place, &all, interrupt)?;
        let wait = wait_ns(&place, &all, look_up, interrupt)?;
        let request = request_ns(&all, interrupt)?;
        let whole = |ns: f64| ns.max(0.0).round() as u64;
        Ok(Self {
            look_up_ns: whole(look_up),
            write_ns: whole(write),
            wait_ns: whole(wait),
            request_ns: whole(request),
        })
    }
}

/// Look-ups and updates while all records are in memory. The store is then closed.
fn in_memory(place: &Place, options: &BenchOptions, interrupt: &AtomicBool) -> anyhow::Result<(f64, f64)> {
    let db = place.builder(options)?.create()?;
    drop(db.tree(TREE)?);
    drop(db.tree(ABOUT)?);
    let mut store = Store::Threads(db);
    fill(&mut store, Order::Sequential, options, interrupt, &mut |_| ())?;
    let look_up = ns_per_operation(&run(&mut store, Operation::Lookup, options, interrupt)?);
    let write = ns_per_operation(&run(&mut store, Operation::Update, options, interrupt)?);
    store.close()?;
    Ok((look_up, write))
}

fn run(
    store: &mut Store,
    operation: Operation,
    options: &BenchOptions,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven> {
    let driven = drive(store, operation, options, interrupt)?;
    if driven.interrupted { Err(flashgrain_profile::Error::Interrupted.into()) } else { Ok(driven) }
}

fn ns_per_operation(driven: &Driven) -> f64 {
    driven.cpu.as_nanos() as f64 / driven.operations.max(1) as f64
}

/// What each look-up that has to read takes beside the look-up and the read.
fn wait_ns(
    place: &Place,
    options: &BenchOptions,
    look_up_ns: f64,
    interrupt: &AtomicBool,
) -> anyhow::Result<f64> {
    let options = BenchOptions { cache: CacheSize::Share(0.1), ..options.clone() };
    let mut store = Store::Threads(place.builder(&options)?.open()?);
    let driven = run(&mut store, Operation::Lookup, &options, interrupt)?;
    // The device in memory is not what is asked for: its share is measured by itself.
    let mut raw = Raw::default();
    raw.measure(&*place.raw()?, Raw::region(&store.stats().space), &options, interrupt)?;
    store.close()?;
    let read = raw.cpu_us_per_read().unwrap_or(0.0) * 1e3;
    Ok((ns_per_operation(&driven) - look_up_ns) / driven.reads_per_operation().max(0.01) - read)
}

/// What a read of a scratch file takes.
fn request_ns(options: &BenchOptions, interrupt: &AtomicBool) -> anyhow::Result<f64> {
    let open = OpenOptions { write: true, ..OpenOptions::default() };
    let device = FileDevice::scratch(&[".".into()], FILE_BYTES, &open)
        .context("measure the cost of a request in the current directory (or give --cpu-costs)")?;
    let whole = Region { offset_bytes: 0, length_bytes: FILE_BYTES };
    load::lay_out(&device, whole, interrupt)?;
    let mut raw = Raw::default();
    raw.measure(&device, whole, options, interrupt)?;
    Ok(raw.cpu_us_per_read().unwrap_or(0.0) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_typed_as_they_are_shown() {
        let costs = Costs { look_up_ns: 600, write_ns: 2000, wait_ns: 500, request_ns: 1600 };
        assert_eq!(costs.to_string().parse(), Ok(costs));
        for nonsense in ["", "1,2,3", "1,2,3,4,5", "1,2,3,x", "-1,2,3,4"] {
            assert!(nonsense.parse::<Costs>().is_err(), "{nonsense}");
        }
    }
}
