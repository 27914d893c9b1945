//! More memory never makes the best design of a family slower: there is no size from which on parameters that
//! were good are none any more.

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::{
    CostsOfKind, Designs, DriveCosts, Durability, Family, Operations, Records, Row, Workload,
};
use proptest::prelude::*;

/// A drive that serves 32 requests in the time of one.
fn drive() -> DriveCosts {
    let costs = |setup_seconds: f64, seconds_per_byte: f64| {
        let over = |seconds: f64| {
            [1.0, 4.0, 32.0].map(|concurrency| (concurrency, Interval::exact(seconds / concurrency)))
        };
        let transfer = [(1.0, seconds_per_byte), (32.0, seconds_per_byte)];
        CostsOfKind {
            setup: over(setup_seconds).to_vec(),
            transfer: transfer.map(|(at, seconds)| (at, Interval::exact(seconds))).to_vec(),
        }
    };
    DriveCosts {
        reads: costs(90e-6, 0.4e-9),
        writes: costs(25e-6, 0.8e-9),
        flush_seconds: Interval::exact(1e-3),
        parallelism: Some(Interval::exact(32.0)),
        interference: Vec::new(),
    }
}

fn rows(workload: &Workload) -> Vec<Row> {
    Designs::of(&drive()).standing(workload, &drive()).rows
}

fn rate(rows: &[Row], family: Family) -> Option<f64> {
    rows.iter().find(|row| row.family == family).map(|row| row.rate_per_second.value)
}

fn workload(count: u64, value_bytes: u64, operations: Operations) -> Workload {
    Workload {
        name: "drawn".into(),
        operations,
        records: Records { count, key_bytes: 24, value_bytes },
        memory_bytes: 1 << 30,
        skew: 0.0,
        clients: 8,
        rate_per_second: None,
        cores: None,
        durability: Durability::None,
        lifetime: None,
        assumptions: Vec::new(),
    }
}

const NONE: Operations = Operations {
    point_hits: 0.0,
    point_misses: 0.0,
    inserts: 0.0,
    updates: 0.0,
    deletes: 0.0,
    ranges: 0.0,
    range_bytes: 0,
};

fn mixes() -> impl Strategy<Value = Operations> {
    prop_oneof![
        Just(Operations { point_hits: 0.5, updates: 0.5, ..NONE }),
        Just(Operations { point_hits: 0.5, point_misses: 0.2, inserts: 0.3, ..NONE }),
        Just(Operations { ranges: 0.4, range_bytes: 100_000, deletes: 0.1, updates: 0.5, ..NONE }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn more_memory_makes_no_family_slower(
        operations in mixes(),
        count in prop_oneof![Just(100_000u64), Just(100_000_000), Just(20_000_000_000)],
        value_bytes in prop_oneof![Just(100u64), Just(1000), Just(4096), Just(20_000)],
        skew in prop_oneof![Just(0.0), Just(0.99)],
        clients in prop_oneof![Just(1u32), Just(32)],
    ) {
        let at = |memory_bytes: u64| {
            let drawn = workload(count, value_bytes, operations);
            rows(&Workload { memory_bytes, skew, clients, ..drawn })
        };
        let mut before = at(4 << 20);
        for power in 1..=12 {
            let now = at((4 << 20) << power);
            for family in Family::ALL {
                let Some(less) = rate(&before, family) else { continue };
                let more = rate(&now, family);
                prop_assert!(
                    more.is_some_and(|more| more >= 0.97 * less),
                    "{family:?} with {} MiB: {more:?} after {less}",
                    4 << power
                );
            }
            before = now;
        }
    }
}

/// Fence pointers of 3.2 GB, of blocks of 4 KiB each: those that the memory does not have are read.
#[test]
fn metadata_that_has_no_room_is_read_from_the_drive() {
    let operations = Operations { point_hits: 0.7, updates: 0.3, ..NONE };
    let rates = [256u64, 512, 1024, 1536, 2048, 4096].map(|mebibytes| {
        let drawn = workload(100_000_000, 4096, operations);
        let rows = rows(&Workload { memory_bytes: mebibytes << 20, clients: 1, ..drawn });
        [Family::LsmLeveled, Family::LsmTiered].map(|family| rate(&rows, family).unwrap())
    });
    for pair in rates.windows(2) {
        for (before, after) in pair[0].iter().zip(pair[1]) {
            let factor = after / before;
            assert!((0.99..1.6).contains(&factor), "{rates:?}");
        }
    }
}
