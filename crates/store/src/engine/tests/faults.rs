//! Requests that fail: writing ends at the first one that durability depends on, reading goes on, and
//! acknowledged commits are kept.

use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::fault::{
    Fault, FaultKind, FlushLoss, Operation, PowerCut, Repeat, Survivors, Trigger,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::{Oracle, create, drive, open, options, values, work, world};
use crate::error::ErrorKind;
use crate::layout::SyncMethod;

fn faults(random: &mut Pcg64) -> Fault {
    let nth = Trigger::Nth(random.random_range(1..120));
    match random.random_range(0..4) {
        0 => Fault::new(FaultKind::WriteError { done_bytes: random.random_range(0..9) * 512 }).at(nth),
        1 => Fault::new(FaultKind::NoSpace).at(nth).repeat(Repeat::Sticky),
        2 => Fault::new(FaultKind::FlushError { data: FlushLoss::Dropped })
            .at(Trigger::Nth(random.random_range(1..9))),
        _ => Fault::new(FaultKind::FlushError { data: FlushLoss::Undurable })
            .on(Operation::Flush)
            .at(Trigger::Nth(random.random_range(1..9))),
    }
}

/// One failure, early or late. Whatever failed, the store takes no more writes, and opening it again gives
/// all that was acknowledged.
#[test]
fn after_a_failed_write_or_flush_nothing_is_promised_and_nothing_lost() {
    let (mut poisoned, mut readable) = (0, 0);
    for seed in 0..16 {
        let mut random = Pcg64::seed_from_u64(seed);
        let device = drive(seed);
        let oracle: Arc<Mutex<Oracle>> = Arc::default();
        let (mut harness, given) = world(&device, 1, options());
        let engine = create(&mut harness, given, SyncMethod::Fdatasync).unwrap();
        let fault = device.inject(faults(&mut random));
        work(&mut harness, &engine, &oracle, seed);
        if device.fired(fault) > 0 {
            poisoned += 1;
            let checked = Arc::clone(&engine);
            let refused = harness.run(move || checked.checkpoint()).err().map(|error| error.kind());
            assert_eq!(refused, Some(ErrorKind::Poisoned), "seed {seed}");
            let known = engine.trees().named("pears").unwrap();
            let read = Arc::clone(&engine);
            let reading =
                harness.run(move || read.transactions().get(&known.tree, b"x", None, &mut Vec::new()));
            // Only a commit that was interrupted in the middle may have removed the record.
            let is_cut_off = engine.transactions().replay_start().1 < engine.parts().log.last();
            match reading.map_err(|error| error.kind()) {
                Ok(_) => readable += 1,
                Err(kind) => assert!(kind == ErrorKind::Poisoned && is_cut_off, "seed {seed}: {kind:?}"),
            }
        }
        device.disarm_faults();
        device.power_cut(&PowerCut { survivors: Survivors::Random, seed, ..PowerCut::default() });
        device.power_on();
        drop((engine, harness));
        let (mut harness, given) = world(&device, 1, options());
        let engine = open(&mut harness, given).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let last = engine.parts().log.last().0;
        let mut oracle = oracle.lock().unwrap();
        let looked = Arc::clone(&engine);
        oracle.hear(&harness.run(move || super::world::content(&looked)));
        assert!(last >= oracle.durable, "seed {seed}: {last} of {}", oracle.durable);
        assert!(harness.run(move || values(&engine)) == oracle.content(last), "seed {seed}");
    }
    assert!(poisoned > 8 && readable > poisoned / 2, "{readable} of {poisoned}");
}

/// The work of a background task is never done after it panics: waiting threads are woken with an error, in
/// this case those that wait for room in a log that no checkpoint empties any more.
#[test]
fn a_panic_in_the_background_poisons_and_leaves_nobody_waiting() {
    let device = drive(1);
    let oracle: Arc<Mutex<Oracle>> = Arc::default();
    let (mut harness, given) = world(&device, 2, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    engine.executor().spawn(|| {
        (0..50).for_each(|_| crate::task::yield_now());
        panic!("on purpose");
    });
    // Only commits that are under way by then; this panics if one of them waits for ever.
    work(&mut harness, &engine, &oracle, 1);
    assert!(oracle.lock().unwrap().commits.len() < 400, "they went on");
    let checked = Arc::clone(&engine);
    let error = harness.run(move || checked.checkpoint()).unwrap_err();
    assert!(matches!(&error, crate::Error::Poisoned { first } if first.contains("on purpose")), "{error}");
    let looked = Arc::clone(&engine);
    assert!(!harness.run(move || values(&looked)).is_empty(), "reading goes on");
}

#[test]
fn a_panic_between_log_and_application_poisons() {
    let poison = crate::poison::Poison::default();
    drop(poison.guard("nothing happened"));
    assert!(poison.check().is_ok());
    let told = poison.clone();
    let panicked = std::thread::spawn(move || {
        let _guard = told.guard("it was tested");
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(poison.check().unwrap_err().to_string().contains("a panic while it was tested"));
}
