//! The cost of reads of pages, on a device that costs nothing but the copy. Run with `cargo test --release -p
//! flashgrain pool::tests::speed -- --ignored --nocapture`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{Device, MemoryDevice, thread_cpu};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::world::above;
use crate::class::class_bytes;
use crate::header::{BACK_START, FRONT_END, PageId, PageKind};
use crate::io_context::Devices;
use crate::poison::Poison;
use crate::pool::{Access, Pool};
use crate::worker::Harness;

const PAGES: u64 = 200_000;
const CLASS: usize = 0;

/// Creates pages that use all of their bytes.
fn create(pool: &Pool, count: u64) -> Vec<PageId> {
    (0..count)
        .map(|_| {
            let memory = pool.reserve(CLASS).unwrap();
            let section = pool.section();
            let page = section.create(memory, PageKind::Node, false);
            page.page().set_word(FRONT_END, 2048);
            page.page().set_word(BACK_START, 2048);
            page.id()
        })
        .collect()
}

/// Calls `act` with pages at random, from `tasks` tasks; nanoseconds of CPU time for each of the `count`.
fn measure(
    harness: &mut Harness,
    ids: &Arc<Vec<PageId>>,
    tasks: u64,
    count: u64,
    act: impl Fn(PageId) + Clone + Send + 'static,
) -> f64 {
    let begin = thread_cpu();
    for task in 0..tasks {
        let (ids, act) = (Arc::clone(ids), act.clone());
        drop(harness.spawn(0, move || {
            let mut random = Pcg64::seed_from_u64(task);
            (0..count / tasks).for_each(|_| act(ids[random.random_range(0..ids.len())]));
        }));
    }
    harness.run_until_idle();
    thread_cpu().since(begin).seconds() * 1e9 / count as f64
}

#[test]
#[ignore = "a measurement"]
fn cost_of_reads_and_changes() {
    let device = MemoryDevice::new(8 << 30, 0).unwrap();
    let devices = Devices::new(Arc::new(device) as Arc<dyn Device>, None);
    for (what, share) in [("in memory", 2), ("a tenth in memory", 10)] {
        let mut harness = Harness::new(&devices, 1);
        let budget = if share == 2 { PAGES * 2 } else { PAGES / share } * class_bytes(CLASS);
        let (_segments, pool) = above(&devices, harness.executor(), &Poison::default(), budget);
        let own = Arc::clone(&pool);
        let ids = Arc::new(harness.run(move || create(&own, PAGES)));
        let missed = Arc::new(AtomicU64::new(0));
        let (own, count) = (Arc::clone(&pool), 4_000_000);
        let ns = measure(&mut harness, &ids, 128, count, move |id| {
            let guard = own.read(id, Access::Normal).unwrap();
            assert!(guard.page().word(FRONT_END) == 2048 || !guard.is_valid());
        });
        println!("{what}: read {ns:.0} ns");
        let (own, missed_too) = (Arc::clone(&pool), Arc::clone(&missed));
        let ns = measure(&mut harness, &ids, 128, count, move |id| {
            let guard = own.read(id, Access::Normal).unwrap();
            let section = own.section();
            match section.lock(&guard) {
                Ok(page) => page.page().set_word(64, 1),
                Err(_) => drop(missed_too.fetch_add(1, Ordering::Relaxed)),
            }
        });
        println!("{what}: read and change {ns:.0} ns; {} not changed", missed.load(Ordering::Relaxed));
    }
}
