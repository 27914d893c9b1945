//! Power cuts at random events of random histories, over several openings of the same log: with k records
//! acknowledged as durable and n appended, the first j come back, k <= j <= n.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, PowerCut, Survivors, Tear, Trigger};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::task::yield_now;
use crate::worker::Harness;

const TASKS: usize = 6;

/// The acknowledged records, and the state that a checkpoint would have.
struct Oracle {
    appended: BTreeMap<Timestamp, (Lsn, Lsn, Vec<u8>)>,
    acknowledged: Timestamp,
    checkpoint: LogCheckpoint,
}

fn record(random: &mut Pcg64) -> Vec<u8> {
    let length = [0, 3, 40, 200, 463, 464, 700, 3000][random.random_range(0..8)];
    (0..length).map(|_| random.random()).collect()
}

/// The work of one committer until the power fails.
fn commit(log: &Log, oracle: &Mutex<Oracle>, random: &mut Pcg64, records: usize) -> Result<(), Error> {
    for _ in 0..records {
        let record = record(random);
        let logged = log.append_noting(&record, |logged| {
            let place = (logged.start, logged.end, record.clone());
            oracle.lock().unwrap().appended.insert(logged.timestamp, place);
        })?;
        let durability = [Durability::Sync, Durability::Sync, Durability::Buffered, Durability::None]
            [random.random_range(0..4)];
        log.wait(logged.end, durability)?;
        if durability == Durability::Sync {
            let mut oracle = oracle.lock().unwrap();
            oracle.acknowledged = oracle.acknowledged.max(logged.timestamp);
        }
        match random.random_range(0..12) {
            0 => log.settle()?,
            1 => yield_now(),
            _ => {}
        }
        if log.fill() > 0.4 {
            truncate(log, oracle, random);
        }
    }
    Ok(())
}

/// As a checkpoint does, which has everything before a record that is durable.
fn truncate(log: &Log, oracle: &Mutex<Oracle>, random: &mut Pcg64) {
    let mut oracle = oracle.lock().unwrap();
    let durable = log.durable();
    let candidates: Vec<_> = oracle
        .appended
        .iter()
        .filter(|(_, (start, end, _))| *start >= oracle.checkpoint.tail && *end <= durable)
        .map(|(timestamp, (_, end, _))| (*timestamp, *end))
        .collect();
    if candidates.is_empty() {
        return;
    }
    let (timestamp, tail) = candidates[random.random_range(candidates.len() / 2..candidates.len())];
    oracle.checkpoint = LogCheckpoint { tail, durable, timestamp, ..oracle.checkpoint };
    log.truncate(tail);
}

/// Opens the log and compares its records with the acknowledged ones. Records that are missing count as void
/// from here on.
fn reopen(device: &Arc<SimDevice>, method: SyncMethod, oracle: &mut Oracle, case: &str) -> (Log, Harness) {
    let devices = &Devices::new(Arc::clone(device) as _, None);
    let layout = Layout { sync_method: method, ..layout() };
    let harness = Harness::new(devices, 2);
    let mut seen = Vec::new();
    let (executor, poison) = (harness.executor().clone(), Poison::default());
    let log = Log::open(
        &layout,
        devices.clone(),
        executor,
        poison,
        oracle.checkpoint,
        &mut |start, timestamp, record| {
            seen.push((timestamp, start, record.to_vec()));
            Ok(())
        },
    );
    let log = log.unwrap_or_else(|error| panic!("{case}: {error}"));
    let last = seen.last().map_or(oracle.checkpoint.timestamp, |(timestamp, _, _)| *timestamp);
    assert!(last >= oracle.acknowledged, "{case}: {last:?} of {:?} acknowledged", oracle.acknowledged);
    let expected: Vec<_> = oracle
        .appended
        .iter()
        .filter(|(timestamp, (start, _, _))| *start >= oracle.checkpoint.tail && **timestamp <= last)
        .map(|(timestamp, (start, _, record))| (*timestamp, *start, record.clone()))
        .collect();
    assert!(seen == expected, "{case}: other records came back");
    oracle.appended.split_off(&Timestamp(last.0 + 1));
    (log, harness)
}

struct Case {
    seed: u64,
    method: SyncMethod,
    /// The event of each round when the power fails; `None`: it does not fail.
    cut_at: Option<[u64; 3]>,
}

fn power_cut(random: &mut Pcg64) -> PowerCut {
    let survivors = match random.random_range(0..6) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::First(random.random_range(0..4)),
        3 => Survivors::AllBut(random.random_range(0..4)),
        _ => Survivors::Random,
    };
    let unit_bytes = [512, 4096][random.random_range(0..2)];
    let tear =
        [Tear::Whole, Tear::Prefix { unit_bytes }, Tear::Shorn { unit_bytes }][random.random_range(0..3)];
    PowerCut { survivors, tear, in_flight: random.random(), seed: random.random() }
}

/// Events of each round, and whether anything was torn.
fn run(case: &Case) -> ([u64; 3], bool) {
    let device: Arc<SimDevice> = volatile_device(case.seed);
    let mut random = Pcg64::seed_from_u64(case.seed);
    let mut oracle = Oracle { appended: BTreeMap::new(), acknowledged: Timestamp(0), checkpoint: NEW };
    let (mut events, mut torn) = ([0; 3], false);
    for (round, counted) in events.iter_mut().enumerate() {
        let name = format!("seed {}, {:?}, round {round}, cut {:?}", case.seed, case.method, case.cut_at);
        let (log, mut harness) = reopen(&device, case.method, &mut oracle, &name);
        torn |= log.recovered().torn;
        let began = device.events();
        if let Some(cut_at) = case.cut_at {
            let at = Trigger::Event(began + cut_at[round]);
            device.inject(Fault::new(FaultKind::PowerCut(power_cut(&mut random))).at(at));
        }
        let shared = Arc::new(Mutex::new(oracle));
        for task in 0..TASKS {
            let (log, shared) = (log.clone(), Arc::clone(&shared));
            let mut random = Pcg64::seed_from_u64(case.seed << 16 | (round * TASKS + task) as u64);
            let _ends_with_the_power = harness.spawn(task % 2, move || {
                let _failed = commit(&log, &shared, &mut random, 12);
            });
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0, "{name}: somebody waits for ever");
        *counted = device.events() - began;
        device.disarm_faults();
        device.power_cut(&power_cut(&mut random));
        device.power_on();
        drop((log, harness));
        oracle = Arc::into_inner(shared).unwrap().into_inner().unwrap();
    }
    let name = format!("seed {}, {:?}, at the end, cut {:?}", case.seed, case.method, case.cut_at);
    let (log, _) = reopen(&device, case.method, &mut oracle, &name);
    (events, torn || log.recovered().torn)
}

#[test]
fn what_was_acknowledged_survives_power_cuts_at_any_event() {
    let cases = std::env::var("FLASHGRAIN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(90);
    let mut random = Pcg64::seed_from_u64(7);
    let (mut torn, methods) = (0, [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync]);
    for seed in 0..cases {
        let method = methods[seed as usize % 3];
        let (events, _) = run(&Case { seed, method, cut_at: None });
        let cut_at = Some(events.map(|events| random.random_range(1..events.max(2))));
        torn += u64::from(run(&Case { seed, method, cut_at }).1);
    }
    assert!(torn > cases / 10, "only {torn} of {cases} cases tore anything");
}
