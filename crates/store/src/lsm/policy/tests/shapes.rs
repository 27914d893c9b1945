//! The shapes of levels when a policy has come to rest.

use super::super::leveled::Leveled;
use super::super::{LsmLayout, PolicyOptions};
use super::model::{Checked, Model, RECORD_BYTES};
use crate::lsm::levels::Levels;

/// Whether the levels have the shape that the layout promises.
pub(super) fn check_shape(options: &PolicyOptions, levels: &Levels) -> Checked {
    let runs: Vec<usize> = (0..levels.depth()).map(|level| levels.level(level).len()).collect();
    let wrong = |what: &str| Err(format!("{what}: {options:?}, runs {runs:?}"));
    let count = |level: usize| runs.get(level).copied().unwrap_or(0);
    let last = levels.depth().max(2) - 1;
    let bytes = |level: usize| levels.bytes(level) as f64;
    if count(0) >= options.level_zero_runs as usize {
        return wrong("level 0 is full");
    }
    let is_full = |level: usize| count(level) >= options.fanout as usize;
    match options.layout {
        LsmLayout::Leveled => {
            if (1..=last).any(|level| count(level) > 1) {
                return wrong("a level of several runs");
            }
            let leveled = Leveled(*options);
            if (1..=last).any(|level| bytes(level) >= leveled.capacity(levels, level)) {
                return wrong("a level above its capacity");
            }
        }
        LsmLayout::Tiered if (1..=last).any(is_full) => return wrong("a full level"),
        LsmLayout::Tiered => {}
        LsmLayout::LazyLeveled => {
            if (1..last).any(is_full) {
                return wrong("a full level");
            }
            if count(last) > 1 || bytes(last) >= options.capacity(last + 1) {
                return wrong("a last level that is not one run within its capacity");
            }
        }
        LsmLayout::SingleLevel => {
            if (1..last).any(|level| count(level) > 0) || count(last) > 1 {
                return wrong("more than one run below level 0");
            }
        }
    }
    Ok(())
}

fn options(layout: LsmLayout, fanout: u32, level_zero_runs: u32, table_records: u64) -> PolicyOptions {
    PolicyOptions::of(layout, fanout, level_zero_runs, table_records * RECORD_BYTES)
}

/// Keys in ascending order are never rewritten where levels are runs of whole tables.
#[test]
fn what_overlaps_nothing_is_moved() {
    for layout in LsmLayout::ALL {
        let options = options(layout, 3, 2, 10);
        let policy = options.policy();
        let mut model = Model::new(&*policy, 10);
        for flush in 0..100 {
            model.flush((flush * 10..flush * 10 + 10).map(|key| (key, false))).unwrap();
            model.rest(|| 0).unwrap();
        }
        assert_eq!(model.written_records, model.flushed_records, "{layout:?}");
        assert!(model.moves > 10);
        check_shape(&options, &model.levels).unwrap();
    }
}

/// Small tables become larger ones, even where they do not overlap.
#[test]
fn small_tables_are_merged() {
    let policy = options(LsmLayout::Leveled, 4, 4, 100).policy();
    let mut model = Model::new(&*policy, 100);
    for flush in 0..40 {
        model.flush((flush * 10..flush * 10 + 10).map(|key| (key, false))).unwrap();
        model.rest(|| 0).unwrap();
    }
    assert!(model.levels.tables().count() <= 12, "{}", model.levels.tables().count());
}

/// A tree whose records are all deleted becomes empty without further writes.
#[test]
fn deletes_reach_the_bottom() {
    let options = options(LsmLayout::Leveled, 4, 4, 50);
    let policy = options.policy();
    let mut model = Model::new(&*policy, 50);
    for flush in 0..64_u32 {
        model.flush((0..50).map(|key| ((key * 7919 + flush * 104_729) % 3200, false))).unwrap();
        model.rest(|| 0).unwrap();
    }
    assert!(model.levels.depth() >= 3);
    model.flush((0..3200).map(|key| (key, true))).unwrap();
    model.rest(|| 0).unwrap();
    assert_eq!(model.levels.tables().count(), 0);
}

/// A few tombstones over all keys are no reason to rewrite a level.
#[test]
fn few_deletes_wait() {
    let options = options(LsmLayout::Leveled, 4, 4, 50);
    let policy = options.policy();
    let mut model = Model::new(&*policy, 50);
    for flush in 0..8_u32 {
        model.flush((0..50).map(|key| (key * 8 + flush, false))).unwrap();
    }
    model.rest(|| 0).unwrap();
    assert_eq!(model.levels.level(0).len(), 0);
    let written = model.written_records;
    model.flush([(0, true), (399, true)]).unwrap();
    model.rest(|| 0).unwrap();
    assert_eq!((model.written_records, model.levels.runs().count()), (written + 2, 2));
}

/// Tables in a single level are merged part by part.
#[test]
fn a_single_level_is_merged_in_parts() {
    let options = options(LsmLayout::SingleLevel, 0, 2, 10);
    let policy = options.policy();
    let mut model = Model::new(&*policy, 10);
    // Each flush has 40 tables over all keys.
    let mut jobs = 0;
    for flush in 0..8_u32 {
        model.flush((0..400).map(|key| (key * 8 + flush, false))).unwrap();
        while let Some(job) = model.policy.pick(&model.levels, &model.busy) {
            let (own, all) = (job.tables().count(), model.levels.tables().count());
            assert!(own * 8 <= all, "{own} of {all} tables");
            jobs += 1;
            assert!(model.pick().unwrap());
            model.finish(0).unwrap();
        }
    }
    assert!(jobs >= 40, "{jobs}");
    check_shape(&options, &model.levels).unwrap();
}

/// Level 0 at twice its trigger begins to slow writers, at five times it stops them.
#[test]
fn debt_is_graded_by_level_zero_and_counts_bytes() {
    for layout in LsmLayout::ALL {
        let policy = options(layout, 4, 2, 10).policy();
        let mut model = Model::new(&*policy, 10);
        assert!(model.policy.debt(&model.levels).fraction < 0.0);
        for flush in 1..=10_u32 {
            model.flush((0..10).map(|key| (key * 100 + flush, false))).unwrap();
            let debt = model.policy.debt(&model.levels);
            let fraction = (f64::from(flush) / 2.0 - 2.0) / 3.0;
            let difference = debt.fraction.max(0.0) - fraction.max(0.0);
            assert!(difference.abs() < 1e-9, "{layout:?} {flush}: {debt:?}");
            assert_eq!(debt.bytes > 0, flush >= 2);
        }
        model.rest(|| 0).unwrap();
        let debt = model.policy.debt(&model.levels);
        assert!(debt.bytes == 0 && debt.fraction < 0.0, "{layout:?} {debt:?}");
    }
}
