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
    let mut simulated =
        Simulated::create(store, CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE }).unwrap();
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

/// A commit that has begun ends before the store is closed, or is refused.
#[test]
fn what_is_acknowledged_while_a_store_is_being_closed_is_there_afterwards() {
    let drive = |seed| {
        let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
        Arc::new(SimDevice::new(&config, "sim:905p", seed).unwrap())
    };
    let store = |drive: &Arc<SimDevice>| {
        Db::builder().cache_bytes(1 << 20).workers(2).device(Arc::clone(drive) as Arc<_>)
    };
    let costs = CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE };
    for seed in 0..20 {
        let drive = drive(seed);
        let mut simulated = Simulated::create(store(&drive), costs).unwrap();
        let writers: Vec<_> = (0..8_u8)
            .map(|writer| {
                simulated.spawn(move |db| {
                    let Ok(tree) = db.tree("t") else { return 0 };
                    // Values in pages of their own are written while their commits have begun and are not
                    // logged.
                    let value = vec![7; if writer % 2 == 0 { 300 } else { 9000 }];
                    let insert = |number: &u32| {
                        tree.insert([&[writer][..], &number.to_be_bytes()].concat(), &value).is_ok()
                    };
                    (0..100_000).take_while(insert).count()
                })
            })
            .collect();
        let closing = simulated.spawn(move |db| {
            db.sleep_until(db.now() + Duration::from_micros(2000 + 37 * seed)).unwrap();
            db.clone().close().unwrap();
        });
        simulated.run_until_idle();
        closing.join().unwrap();
        let acknowledged: Vec<usize> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        assert!(acknowledged.iter().sum::<usize>() > 0, "seed {seed}");
        drop(simulated);
        let mut simulated = Simulated::open(store(&drive), costs).unwrap();
        simulated.run(move |db| {
            let tree = db.tree("t").unwrap();
            for (writer, count) in (0..).zip(acknowledged) {
                let found = tree.prefix([writer]).unwrap().count();
                assert!(found >= count, "seed {seed}, writer {writer}: {found} of {count}");
            }
        });
    }
}

/// Each of them reserves whole segments for a value of its own: together more than there are, alone a few.
#[test]
fn writers_of_long_values_for_whom_there_is_no_room_at_once_get_it_one_after_another() {
    const WRITERS: u8 = 250;
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    let drive = SimDevice::new(&config, "sim:905p", 1).unwrap();
    let store = Db::builder().cache_bytes(1 << 20).workers(2).device(Arc::new(drive));
    let mut simulated =
        Simulated::create(store, CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE }).unwrap();
    simulated.run(|db| db.tree("t").map(drop)).unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| simulated.spawn(move |db| db.tree("t")?.insert([writer], [7; 9000])))
        .collect();
    simulated.run_until_idle();
    for (number, writer) in writers.into_iter().enumerate() {
        writer.join().unwrap().unwrap_or_else(|error| panic!("writer {number}: {error}"));
    }
}
