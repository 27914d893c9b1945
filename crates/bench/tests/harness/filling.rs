//! Records before anything is measured.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flashgrain_bench::fill::{Filling, Order, fill};
use flashgrain_bench::keys;
use flashgrain_bench::store::{Store, TREE};

use crate::{COSTS, RECORDS, in_memory, simulated};

/// Whether the store has this record.
fn has(store: &mut Store, record: u64, order: Order) -> bool {
    store.run(move |db| {
        let mut key = [0; 8];
        match order {
            Order::Scattered => keys::scattered_key(record, &mut key),
            _ => keys::key(record, &mut key),
        }
        let value = db.existing_tree(TREE).unwrap().get(key).unwrap();
        value.is_some_and(|value| keys::is_of(record, &value) && value.len() == RECORDS.value_bytes)
    })
}

#[test]
fn every_order_puts_all_records_in() {
    for order in [Order::Sequential, Order::Random, Order::Stretches, Order::Scattered] {
        let (mut store, mut shares) = (in_memory(), Vec::new());
        let filling = Filling::all(RECORDS, order, 4);
        let filled =
            fill(&mut store, &filling, &AtomicBool::new(false), &mut |share| shares.push(share)).unwrap();
        assert_eq!(filled.records, RECORDS.count);
        let batches = if order == Order::Random { RECORDS.count } else { RECORDS.count / 100 };
        // Batches end with their stretch.
        assert!((batches..batches + 10).contains(&filled.latency_ns.len()), "{order:?}");
        assert!((0..RECORDS.count).all(|record| has(&mut store, record, order)), "{order:?}");
        assert!(!has(&mut store, RECORDS.count, order));
        assert!(shares.is_sorted() && shares.iter().all(|share| *share <= 1.0), "{shares:?}");
    }
}

#[test]
fn a_limit_leaves_no_gap() {
    let limited = |mut store: Store, length_max, written_bytes_max| {
        let all = Filling::all(RECORDS, Order::Sequential, 4);
        let filling = Filling { length_max, written_bytes_max, ..all };
        let filled = fill(&mut store, &filling, &AtomicBool::new(false), &mut |_| ()).unwrap();
        assert!(!filled.is_interrupted && filled.records > 0 && filled.records < RECORDS.count, "{filled:?}");
        assert!((0..filled.records).all(|record| has(&mut store, record, Order::Sequential)));
        assert!(!has(&mut store, filled.records, Order::Sequential));
        // A batch takes at least the processor time of its writes; the last one of a stretch has 96.
        let shortest = filled.latency_ns.min();
        assert!(shortest > 96 * COSTS.write_ns * 9 / 10, "{shortest}");
    };
    // A stretch takes at least the processor time of its writes, which is 8 ms.
    limited(simulated(), Some(Duration::from_millis(3)), None);
    limited(simulated(), None, Some(100_000));
}

#[test]
fn an_interrupt_ends_it() {
    let mut store = in_memory();
    let filling = Filling::all(RECORDS, Order::Random, 4);
    let filled = fill(&mut store, &filling, &AtomicBool::new(true), &mut |_| ()).unwrap();
    assert!(filled.is_interrupted);
}
