//! Whoever waits for a moment wakes then and not before, and keeps nobody else from running.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flashgrain::{CpuCosts, Db, Simulated};
use flashgrain_ssdsim::{SimConfig, SimDevice};

const NAP: Duration = Duration::from_millis(5);

#[test]
fn a_task_that_waits_lets_the_others_of_its_worker_run() {
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    let drive = SimDevice::new(&config, "sim:905p", 1).unwrap();
    let store = Db::builder().cache_bytes(1 << 20).workers(1).device(Arc::new(drive));
    let mut simulated = Simulated::create(store, CpuCosts { task_ns: 500, request_ns: 500 }).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (Arc::clone(&order), Arc::clone(&order));
    let waits = simulated.spawn(move |db| {
        first.lock().unwrap().push("waits");
        let until = db.now() + NAP;
        db.sleep_until(until).unwrap();
        first.lock().unwrap().push("awake");
        let late = db.now() - until;
        let now = db.now();
        db.sleep_until(until).unwrap();
        assert_eq!(db.now(), now, "what has passed is not waited for");
        late
    });
    let works = simulated.spawn(move |db| {
        db.tree("tree").unwrap().insert("key", "value").unwrap();
        second.lock().unwrap().push("works");
    });
    simulated.run_until_idle();
    works.join().unwrap();
    let late = waits.join().unwrap();
    assert_eq!(*order.lock().unwrap(), ["waits", "works", "awake"]);
    assert!(late < Duration::from_micros(100), "{late:?} too late, on an idle processor in virtual time");
}

#[test]
fn an_ordinary_thread_wakes_when_it_asked_to() {
    let db = Db::in_memory(8 << 20).unwrap();
    let until = db.now() + NAP;
    db.sleep_until(until).unwrap();
    assert!(db.now() >= until);
}
