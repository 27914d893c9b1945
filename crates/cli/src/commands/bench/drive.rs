//! Running operations against a store and counting them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use flashgrain::{Db, Error, JoinHandle, Tree};
use hdrhistogram::Histogram;

use super::TREE;
use super::costs::{Costs, Done};
use super::options::BenchOptions;
use super::store::Store;
use flashgrain_bench::keys::{self, Picker, Popularity};

/// Of so many operations the latency of one is taken, so that reading the clock costs nothing that counts.
const SAMPLE_EVERY: u64 = 8;

/// When the number of operations is given, the warm-up has at most this part as many.
const WARMUP_PART: u64 = 4;

/// How long an operation may take that has begun.
const PATIENCE_S: f64 = 60.0;

/// Records of one batch while the store is filled.
const BATCH_RECORDS: u64 = 100;

/// Records that are put in in random order among themselves: they fill some hundred leaves, so that few are at the stretch's borders, and all are in memory.
const STRETCH_RECORDS: u64 = 4096;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Lookup,
    Update,
    /// This share of lookups, the rest updates.
    Mixed(f64),
}

/// What the measured time brought.
pub struct Driven {
    pub elapsed_s: f64,
    pub operations: u64,
    pub latency_ns: Histogram<u64>,
    /// Of our processors, or of simulated ones.
    pub cpu: Duration,
    pub before: flashgrain::Stats,
    pub after: flashgrain::Stats,
    pub interrupted: bool,
}

/// What the tasks and their driver share.
struct Shared {
    stop: AtomicBool,
    sampling: AtomicBool,
    done: Vec<Counter>,
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Shared {
    fn new(tasks: u32) -> Arc<Self> {
        let done = (0..tasks).map(|_| Counter::default()).collect();
        Arc::new(Self { stop: AtomicBool::new(false), sampling: AtomicBool::new(false), done })
    }

    fn total(&self) -> u64 {
        self.done.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

impl Driven {
    /// Requests that read, for each operation.
    pub fn reads_per_operation(&self) -> f64 {
        (self.after.device.reads - self.before.device.reads) as f64 / self.operations.max(1) as f64
    }
}

/// Runs `operation` on the tree of records for the warm-up and the time, or the operations, that are measured.
pub fn drive(
    store: &mut Store,
    operation: Operation,
    options: &BenchOptions,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven> {
    let shared = Shared::new(options.tasks);
    let popularity = Popularity::new(options.records, options.distribution);
    let tree = store.run(|db| db.existing_tree(TREE))?;
    let costs = store.costs();
    let tasks: Vec<JoinHandle<Result<Histogram<u64>, Error>>> = (0..options.tasks)
        .map(|index| {
            let (tree, shared) = (tree.clone(), Arc::clone(&shared));
            let picker = Picker::new(popularity, options.seed, u64::from(index));
            let (key, value) = (vec![0; options.key_bytes as usize], vec![0; options.value_bytes as usize]);
            store.spawn(move |db| {
                let latency_ns = histogram();
                let mut task =
                    Task { db: db.clone(), tree, shared, index, picker, key, value, latency_ns, costs };
                task.run(operation).map(|()| task.latency_ns)
            })
        })
        .collect();
    let going = || !interrupt.load(Ordering::Relaxed) && !tasks.iter().any(JoinHandle::is_finished);
    let until = |store: &Store, seconds: f64| store.now() + Duration::from_secs_f64(seconds);
    let most = options.operations.unwrap_or(u64::MAX);
    let warm = most / WARMUP_PART;
    let warm_until = until(store, options.warmup);
    store.wait_until(warm_until, || going() && shared.total() < warm);
    shared.sampling.store(true, Ordering::Relaxed);
    let (began, cpu, count, before) = (store.now(), store.cpu(), shared.total(), store.stats());
    let end = until(store, options.seconds);
    store.wait_until(end, || going() && shared.total() - count < most);
    let (elapsed, cpu, after) = (store.now() - began, store.cpu() - cpu, store.stats());
    let operations = shared.total() - count;
    shared.stop.store(true, Ordering::Relaxed);
    let patience = until(store, PATIENCE_S);
    store.wait_until(patience, || !tasks.iter().all(JoinHandle::is_finished));
    if let Some(stuck) = tasks.iter().filter(|task| !task.is_finished()).count().checked_sub(1) {
        bail!("{} operations do not end: {:?}", stuck + 1, store.stats().throttle);
    }
    let mut latency_ns = histogram();
    for task in tasks {
        latency_ns += finished(task)?;
    }
    let (elapsed_s, interrupted) = (elapsed.as_secs_f64(), interrupt.load(Ordering::Relaxed));
    Ok(Driven { elapsed_s, operations, latency_ns, cpu, before, after, interrupted })
}

fn finished<T>(task: JoinHandle<Result<T, Error>>) -> anyhow::Result<T> {
    Ok(task.join().map_err(|_| anyhow!("a task of the benchmark panicked"))??)
}

/// Two digits are enough for percentiles, and small enough for one per task.
pub fn histogram() -> Histogram<u64> {
    const LONGEST_NS: u64 = 600_000_000_000;
    let made = Histogram::new_with_bounds(1, LONGEST_NS, 2);
    made.unwrap_or_else(|error| unreachable!("two digits up to ten minutes are allowed: {error}"))
}

struct Task {
    db: Db,
    tree: Tree,
    shared: Arc<Shared>,
    index: u32,
    picker: Picker,
    key: Vec<u8>,
    value: Vec<u8>,
    latency_ns: Histogram<u64>,
    /// What operations cost where processors are simulated.
    costs: Option<Costs>,
}

impl Task {
    fn run(&mut self, operation: Operation) -> Result<(), Error> {
        let mut count = 0;
        while !self.shared.stop.load(Ordering::Relaxed) {
            let began = (count % SAMPLE_EVERY == 0 && self.shared.sampling.load(Ordering::Relaxed))
                .then(|| self.db.now());
            let record = self.picker.record();
            keys::key(record, &mut self.key);
            let reads = match operation {
                Operation::Lookup => true,
                Operation::Update => false,
                Operation::Mixed(share) => self.picker.chance(share),
            };
            if reads {
                self.look_up(record)?
            } else {
                self.update(record, count)?
            }
            if let Some(costs) = &self.costs {
                costs.spend(if reads { Done::Lookup } else { Done::Writes(1) });
            }
            count += 1;
            if let Some(began) = began {
                let latency = self.db.now().saturating_sub(began);
                self.latency_ns.saturating_record(latency.as_nanos() as u64);
            }
            self.shared.done[self.index as usize].0.store(count, Ordering::Relaxed);
        }
        Ok(())
    }

    fn look_up(&self, record: u64) -> Result<(), Error> {
        let found = self.tree.get(&self.key)?;
        let is_right = found.is_some_and(|value| keys::is_of(record, &value));
        assert!(is_right, "record {record} is not what was stored");
        Ok(())
    }

    fn update(&mut self, record: u64, version: u64) -> Result<(), Error> {
        keys::value(record, version << 16 | u64::from(self.index), &mut self.value);
        self.tree.insert(&self.key, &self.value)
    }
}

/// How a store is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// In key order, by every task in a range of its own.
    Sequential,
    /// In an order that looks random.
    Random,
    /// In key order by stretches of some thousand, within which the order is random: pages become as full as with random, but none has to be read.
    Stretches,
}

impl Order {
    /// Records of a batch.
    fn batch_records(self) -> u64 {
        if self == Self::Random { 1 } else { BATCH_RECORDS }
    }
}

/// Which record comes when.
#[derive(Clone, Copy)]
struct Sequence {
    /// Among so many, their order is random.
    stretch: u64,
    /// Coprime to that, so that every record has its turn once.
    stride: u64,
    records: u64,
}

impl Sequence {
    fn new(order: Order, records: u64) -> Self {
        let stretch = match order {
            Order::Sequential => 1,
            Order::Random => records,
            Order::Stretches => STRETCH_RECORDS,
        };
        Self { stretch, stride: coprime(stretch), records }
    }

    /// The `number`-th record.
    fn record(self, number: u64) -> u64 {
        let within = number % self.stretch;
        let start = number - within;
        if start + self.stretch > self.records {
            return number;
        }
        start + (u128::from(within) * u128::from(self.stride) % u128::from(self.stretch)) as u64
    }
}

/// Puts all records into the store's tree of records; `said` hears the share that is done.
pub fn fill(
    store: &mut Store,
    order: Order,
    options: &BenchOptions,
    interrupt: &AtomicBool,
    said: &mut dyn FnMut(f64),
) -> anyhow::Result<Driven> {
    let tasks = match order {
        // Few ranges at a time make full leaves.
        Order::Sequential | Order::Stretches => options.workers(),
        Order::Random => options.tasks,
    };
    let shared = Shared::new(tasks);
    let tree = store.run(|db| db.tree(TREE))?;
    let costs = store.costs();
    let (began, cpu, before) = (store.now(), store.cpu(), store.stats());
    let handles: Vec<JoinHandle<Result<(), Error>>> = (0..tasks)
        .map(|index| {
            let (tree, options, shared) = (tree.clone(), options.clone(), Arc::clone(&shared));
            store.spawn(move |db| {
                let part = (index, tasks);
                let result = Filling { db, tree, order, options, costs }.fill(&shared, part);
                // The others then need not go on for nothing. They look at the flag between batches.
                shared.stop.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            })
        })
        .collect();
    store.wait_until(Duration::MAX, || {
        shared.stop.fetch_or(interrupt.load(Ordering::Relaxed), Ordering::Relaxed);
        said(shared.total() as f64 / options.records as f64);
        !handles.iter().all(JoinHandle::is_finished)
    });
    for handle in handles {
        finished(handle)?;
    }
    let (elapsed_s, cpu) = ((store.now() - began).as_secs_f64(), store.cpu() - cpu);
    let (operations, interrupted) = (shared.total(), interrupt.load(Ordering::Relaxed));
    let (latency_ns, after) = (histogram(), store.stats());
    Ok(Driven { elapsed_s, operations, latency_ns, cpu, before, after, interrupted })
}

/// What a task that fills the store needs.
struct Filling<'a> {
    db: &'a Db,
    tree: Tree,
    order: Order,
    options: BenchOptions,
    costs: Option<Costs>,
}

impl Filling<'_> {
    /// Puts the `index`-th of so many parts of the records into the store.
    fn fill(&self, shared: &Shared, (index, tasks): (u32, u32)) -> Result<(), Error> {
        let Self { db, tree, order, options, costs } = self;
        let part = |index: u32| (u128::from(options.records) * u128::from(index) / u128::from(tasks)) as u64;
        let (mut next, end, start) = (part(index), part(index + 1), part(index));
        let (mut key, mut value) =
            (vec![0; options.key_bytes as usize], vec![0; options.value_bytes as usize]);
        let sequence = Sequence::new(*order, options.records);
        while next < end && !shared.stop.load(Ordering::Relaxed) {
            let mut batch = db.batch().durability(options.durability.durability());
            let batch_end = end.min(next + order.batch_records());
            for number in next..batch_end {
                let record = sequence.record(number);
                keys::key(record, &mut key);
                keys::value(record, 0, &mut value);
                batch.insert(tree, &key, value.as_slice())?;
            }
            batch.commit()?;
            if let Some(costs) = costs {
                costs.spend(Done::Writes(batch_end - next));
            }
            next = batch_end;
            shared.done[index as usize].0.store(next - start, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A number near the golden section of `records` without a common factor.
fn coprime(records: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = ((records as f64 * 0.618_033_988_75) as u64).max(1);
    (start..).find(|stride| gcd(*stride, records) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_puts_each_record_in_once() {
        for order in [Order::Sequential, Order::Random, Order::Stretches] {
            for records in [1_u64, 2, 10, 97, 1000, 3 * STRETCH_RECORDS + 1] {
                let sequence = Sequence::new(order, records);
                let mut seen: Vec<u64> = (0..records).map(|number| sequence.record(number)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..records).collect::<Vec<_>>(), "{order:?} {records}");
            }
        }
    }

    #[test]
    fn stretches_stay_together_and_are_mixed_within() {
        let sequence = Sequence::new(Order::Stretches, 2 * STRETCH_RECORDS);
        let second: Vec<u64> =
            (STRETCH_RECORDS..2 * STRETCH_RECORDS).map(|number| sequence.record(number)).collect();
        assert!(second.iter().all(|record| *record >= STRETCH_RECORDS));
        let ascending = second.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(ascending < second.len() * 3 / 4, "{ascending} of {}", second.len());
    }
}
