//! Prints the speed of trees. Run with
//! `cargo test --release -p flashgrain btree::speed -- --ignored --nocapture --test-threads 1`.

use flashgrain_device::thread_cpu;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::index::{Direction, Piece};
use crate::pool::testing::pool_in_memory;

/// An eight-byte key; with `scrambled` the numbers are spread over all keys.
fn key(number: u64, scrambled: bool) -> [u8; 8] {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).swap_bytes().wrapping_mul(0xD6E8_FEB8_6659_FD93);
    if scrambled { spread } else { number }.to_be_bytes()
}

fn records() -> u64 {
    std::env::var("FLASHGRAIN_TREE_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12_000_000)
}

/// Runs `work` `times` times, and prints its average CPU time.
fn measure(what: &str, times: u64, mut work: impl FnMut(u64)) {
    let start = thread_cpu();
    (0..times).for_each(&mut work);
    let seconds = thread_cpu().since(start).seconds();
    println!("{what:28} {:8.1} ns {:8.3} M/s", seconds / times as f64 * 1e9, times as f64 / seconds / 1e6);
}

#[test]
#[ignore = "a measurement: minutes, and several GiB of memory"]
fn in_memory() {
    let (records, random) = (records(), &mut Pcg64Mcg::seed_from_u64(7));
    for scrambled in [false, true] {
        let pool = pool_in_memory(records * 280 + (64 << 20));
        let tree = BTree::create(&pool, 0, false).unwrap();
        println!("{records} records of 8 + 128 bytes, nodes of 4 KiB, keys scrambled: {scrambled}");
        measure("insert in order of numbers", records, |number| {
            let value = [number as u8; 128];
            tree.update(&key(number, scrambled), &mut |_| Change::Put(&value)).unwrap();
        });
        println!("{:?}", tree.check(&mut |_, _| {}).unwrap());
        let mut value = Vec::new();
        let times = records.min(5_000_000);
        measure("get", times, |_| {
            value.clear();
            let number = random.random_range(0..records);
            assert!(tree.get(&key(number, scrambled), &mut value, &mut None).unwrap());
            assert_eq!((value.len(), value[77]), (128, number as u8));
        });
        measure("get a hot one", times, |turn| {
            value.clear();
            assert!(tree.get(&key(turn % 1000, scrambled), &mut value, &mut None).unwrap());
        });
        measure("update in place", times, |_| {
            let number = random.random_range(0..records);
            let value = [number as u8; 128];
            tree.update(&key(number, scrambled), &mut |_| Change::Put(&value)).unwrap();
        });
        let (mut scan, mut piece) = (Scan::new(Direction::Forward, b"", None, 0), Piece::default());
        let mut remaining = 0;
        measure("scan a record", records, |_| {
            if remaining == 0 {
                assert!(tree.step(&mut scan, &mut piece).unwrap());
                remaining = piece.len();
            }
            remaining -= 1;
        });
    }
}
