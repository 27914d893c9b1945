//! Clients that work for a while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flashgrain::Stats;
use flashgrain_bench::benchmark::Benchmark as _;
use flashgrain_bench::drive::{Client, Clients, Done, Driven, Host as _, Span, UserBytes, drive};
use flashgrain_bench::engine::{Failure, Session};
use flashgrain_bench::fill::{Filling, Order, fill};
use flashgrain_bench::keys::Distribution;
use flashgrain_bench::store::Store;
use flashgrain_bench::workload::{Mix, OnRecords, Workload};
use flashgrain_device::Nanos;

use crate::{RECORDS, in_memory, simulated};

const READS: Mix = Mix { read: 1.0, in_order: true, ..Mix::NOTHING };
const UPDATES: Mix = Mix { update: 1.0, in_order: true, ..Mix::NOTHING };

/// Nothing but other limits ends it.
const LONG: Duration = Duration::from_secs(1 << 20);

fn span() -> Span {
    Span {
        clients: 16,
        warmup: Duration::ZERO,
        length: LONG,
        operations_max: None,
        written_bytes_max: None,
        rate_per_s: None,
        sample_every: 1,
        seed: 1,
    }
}

fn filled(mut store: Store) -> Store {
    let filling = Filling::all(RECORDS, Order::Sequential, 2);
    fill(&mut store, &filling, &AtomicBool::new(false), &mut |_| ()).unwrap();
    store
}

fn run(store: &mut Store, mix: Mix, span: &Span) -> Driven<Stats> {
    let workload = Workload::of(mix, Distribution::Uniform);
    let clients = OnRecords::new(workload, RECORDS, span.seed).clients(span.clients);
    drive(store, span, clients, &AtomicBool::new(false)).unwrap()
}

#[test]
fn virtual_runs_repeat_exactly_and_end_at_their_limit() {
    let run = || {
        let mut store = filled(simulated());
        let span = Span { operations_max: Some(5000), sample_every: 8, ..span() };
        let driven = run(&mut store, READS, &span);
        store.close().unwrap();
        driven
    };
    let (first, second) = (run(), run());
    let operations = first.tally.operations();
    assert!((5000..20_000).contains(&operations), "{operations}");
    // One of eight of each client, whether it began with the span or before.
    let sampled = first.tally.latency_ns().len();
    assert!(sampled.abs_diff(operations / 8) <= 16, "{sampled} of {operations}");
    assert_eq!((first.elapsed, operations), (second.elapsed, second.tally.operations()));
    assert_eq!(first.tally.latency_ns(), second.tally.latency_ns());
    // Nothing else reads meanwhile.
    assert!(first.after.device.reads > first.before.device.reads);
}

#[test]
fn closed_loops_do_what_little_s_law_says() {
    let mut store = filled(simulated());
    let length = Duration::from_millis(50);
    let span = Span { warmup: Duration::from_millis(10), length, ..span() };
    let driven = run(&mut store, READS, &span);
    let rate = driven.tally.operations() as f64 / driven.elapsed.as_secs_f64();
    let under_way = rate * driven.tally.latency_ns().mean() * 1e-9;
    // An operation that ends in the span counts, whenever it began: neither end of it loses operations.
    assert!((15.5..16.1).contains(&under_way), "{under_way}");
    assert!(driven.elapsed >= length && driven.elapsed < length + Duration::from_millis(2), "{driven:?}");
}

#[test]
fn open_loops_keep_their_rate_in_virtual_time() {
    let mut store = filled(simulated());
    let span = Span { length: Duration::from_secs(1), rate_per_s: Some(4000.0), ..span() };
    let operations = run(&mut store, READS, &span).tally.operations();
    // The standard deviation is 63.
    assert!(operations.abs_diff(4000) < 320, "{operations}");
}

#[test]
fn bytes_that_are_written_end_a_run() {
    const BYTES: u64 = 1 << 20;
    for store in [in_memory(), simulated()] {
        let mut store = filled(store);
        let driven = run(&mut store, UPDATES, &Span { written_bytes_max: Some(BYTES), ..span() });
        let written = driven.after.device.written_bytes - driven.before.device.written_bytes;
        assert!(written >= BYTES && driven.elapsed < LONG, "{written}");
    }
}

/// Works for a while, and then does something else.
struct Restless<'s> {
    session: &'s mut dyn Session,
    remaining: u32,
    end: fn() -> anyhow::Result<()>,
}

impl Client for Restless<'_> {
    fn step(&mut self) -> anyhow::Result<Done> {
        let until = self.session.now() + Nanos(1000);
        self.session.wait_until(until.into())?;
        if self.remaining == 0 {
            (self.end)()?;
        }
        self.remaining = self.remaining.saturating_sub(1);
        Ok(Done { kind: "rest", count: 1, records: 0, conflicts: 0, user: UserBytes::default() })
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        self.session.wait_until(until)
    }

    fn now(&self) -> Nanos {
        self.session.now()
    }
}

/// The third of all clients is restless.
fn one_is_restless(end: fn() -> anyhow::Result<()>) -> Clients {
    let remaining = |number| if number == 2 { 100 } else { u32::MAX };
    Clients {
        make: Arc::new(move |number, session| {
            Ok(Box::new(Restless { session, remaining: remaining(number), end }))
        }),
        burst: Arc::new(|_| None),
    }
}

#[test]
fn a_client_that_fails_ends_the_run() {
    for mut store in [in_memory(), simulated()] {
        let clients = one_is_restless(|| anyhow::bail!("enough"));
        let error = drive(&mut store, &span(), clients, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "enough");
        assert!(store.have_ended());
    }
}

#[test]
fn a_client_that_panics_ends_the_run() {
    let mut store = in_memory();
    let run = || {
        let clients = one_is_restless(|| panic!("enough"));
        drive(&mut store, &span(), clients, &AtomicBool::new(false)).map(|_| ())
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}

#[test]
fn an_interrupt_ends_a_run() {
    let mut store = filled(in_memory());
    let workload = Workload::of(READS, Distribution::Uniform);
    let clients = OnRecords::new(workload, RECORDS, 1).clients(16);
    assert!(drive(&mut store, &span(), clients, &AtomicBool::new(true)).unwrap().is_interrupted);
}
