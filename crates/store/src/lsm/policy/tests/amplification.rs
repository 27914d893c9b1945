//! Bytes written per byte flushed while a tree is filled, compared with textbook formulas.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::super::{LsmLayout, PolicyOptions};
use super::model::{Model, RECORD_BYTES};
use super::shapes::check_shape;

const TABLE_RECORDS: usize = 50;
const LEVEL_ZERO_RUNS: u32 = 4;
const FLUSHES: u32 = 1000;

/// Fills a tree with random keys, a flush being a table; how often each record was written, and the levels
/// below level 0.
fn fill(layout: LsmLayout, fanout: u32) -> (f64, f64) {
    let table_bytes = TABLE_RECORDS as u64 * RECORD_BYTES;
    let options = PolicyOptions::of(layout, fanout, LEVEL_ZERO_RUNS, table_bytes);
    let policy = options.policy();
    let mut model = Model::new(&*policy, TABLE_RECORDS);
    model.checks = false;
    let mut random = Pcg64::seed_from_u64(5);
    for _ in 0..FLUSHES {
        let keys: Vec<(u32, bool)> = (0..TABLE_RECORDS).map(|_| (random.random(), false)).collect();
        model.flush(keys).unwrap();
        model.rest(|| 0).unwrap();
    }
    check_shape(&options, &model.levels).unwrap();
    let written = model.written_records as f64 / model.flushed_records as f64;
    (written, (model.levels.depth() - 1) as f64)
}

/// Each record is flushed once. Then, with n batches of level 0 in the tree:
///
/// - leveled: it is merged into as many records of level 1, and into about F records for each of its own in
///   each further level, half of that on average while a level fills;
/// - tiered: it is written once in each level;
/// - lazy leveled: so too but for the last level, which is rewritten for each of the F batches that fill it;
/// - single: with each batch all that is there, half of the final size on average.
#[test]
fn writes_are_as_many_as_the_formulas_say() {
    let batches = f64::from(FLUSHES / LEVEL_ZERO_RUNS);
    for (layout, fanout) in [
        (LsmLayout::Leveled, 4),
        (LsmLayout::Leveled, 8),
        (LsmLayout::Tiered, 4),
        (LsmLayout::Tiered, 8),
        (LsmLayout::LazyLeveled, 4),
        (LsmLayout::LazyLeveled, 8),
        (LsmLayout::SingleLevel, 0),
    ] {
        let (written, levels) = fill(layout, fanout);
        let fanout_half = f64::from(fanout) / 2.0;
        let (formula, factor) = match layout {
            LsmLayout::Leveled => (1.0 + 2.0 + (levels - 1.0) * (1.0 + fanout_half), 1.5),
            LsmLayout::Tiered => (1.0 + batches.log(f64::from(fanout)), 1.3),
            LsmLayout::LazyLeveled => (1.0 + (levels - 1.0) + fanout_half, 1.5),
            LsmLayout::SingleLevel => (1.0 + batches / 2.0, 1.1),
        };
        println!("{layout:?} F {fanout}: {levels} levels, written {written:.2} times, formula {formula:.2}");
        assert!(written < formula * factor && written > formula / factor);
    }
}
