//! Table 3: point queries and scans of each layout over those of the single level; Table 5's flash layout.

use flashgrain_cost::dictionary::{Design, Operation, price};
use flashgrain_cost::lsm::LsmTree;

use super::experiment::{RECORDS, leveled, single_level, situation};
use super::tables::{
    CONCURRENCIES, FANOUTS, FLASH_LAYOUT_QUERY_SECONDS, QUERY_SECONDS, SCAN_SECONDS, Table2,
};

const QUERIES: f64 = 3.2e6;
const SCANNED_RECORDS: f64 = 128.0;

/// Predicted seconds of the benchmark.
fn seconds(tree: &LsmTree, operation: Operation, clients: usize) -> f64 {
    let situation = situation(clients);
    let cost = price(&tree.demand(operation, &situation), &Table2, &situation).unwrap();
    QUERIES / cost.operations_per_second
}

/// Predicted times of a row of Table 3: the fanouts, then the single level.
fn row(operation: Operation, clients: usize) -> [f64; 6] {
    let mut row = [0.0; 6];
    for (cell, fanout) in row.iter_mut().zip(FANOUTS) {
        *cell = seconds(&leveled(fanout, 4.0), operation, clients);
    }
    row[5] = seconds(&single_level(), operation, clients);
    row
}

/// Each fanout's time over the single level's.
fn ratios(row: [f64; 6]) -> [f64; 5] {
    std::array::from_fn(|column| row[column] / row[5])
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Spearman's rank correlation of values without ties.
fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| values.iter().filter(|other| *other < value).count() as f64).collect()
    };
    let squares: f64 = ranks(one).iter().zip(ranks(other)).map(|(a, b)| (a - b).powi(2)).sum();
    let count = one.len() as f64;
    1.0 - 6.0 * squares / (count * (count * count - 1.0))
}

#[test]
fn query_times_over_the_single_levels_are_within_15_percent() {
    for (measured, clients) in QUERY_SECONDS.into_iter().zip(CONCURRENCIES) {
        let predicted = row(Operation::PointHit, clients);
        let (of_model, of_paper) = (ratios(predicted), ratios(measured));
        for (column, fanout) in FANOUTS.into_iter().enumerate() {
            let error = of_model[column] / of_paper[column] - 1.0;
            println!(
                "k {clients:>2} F {fanout:>2}: {:.2}, paper {:.2} ({:+.1} %)",
                of_model[column],
                of_paper[column],
                100.0 * error
            );
            // The paper's F = 32 is slower than F = 16 and contradicts its text: an outlier, which is near,
            // too.
            assert!(error.abs() <= 0.15, "F {fanout} at k {clients}: {error}");
        }
        // A baseline that knows nothing but k gives every layout of a row the same time: the row's mean at
        // best.
        let error_of =
            |time: &dyn Fn(usize) -> f64| mean((0..6).map(|i| (time(i) / measured[i] - 1.0).abs()));
        // Both are scaled to the row's mean, so that neither is judged by its idea of the drive.
        let scale = mean(measured) / mean(predicted);
        let of_model = error_of(&|column| scale * predicted[column]);
        let of_baseline = error_of(&|_| mean(measured));
        let ranks = rank_correlation(&predicted, &measured);
        println!(
            "k {clients:>2}: mean error {of_model:.3}, k alone {of_baseline:.3}; ranks within k {ranks:.3}"
        );
        assert!(of_model < of_baseline / 4.0 && ranks > 0.9);
    }
}

/// The reason why the single level is given a second run, and what the prediction is without it.
#[test]
fn a_block_takes_as_long_in_every_layout_if_the_single_level_has_two_runs() {
    let blocks = |tree: &LsmTree| tree.blocks_per_query(true, &situation(1));
    let per_block = |column: usize, tree: &LsmTree| 1e6 * QUERY_SECONDS[0][column] / QUERIES / blocks(tree);
    let leveled: Vec<f64> =
        FANOUTS.iter().enumerate().map(|(i, fanout)| per_block(i, &leveled(*fanout, 4.0))).collect();
    let two_runs = per_block(5, &single_level());
    let one_run = per_block(5, &LsmTree { level_zero_files: 0.0, ..single_level() });
    println!(
        "µs per block at k = 1: leveled {leveled:.1?}, single level {two_runs:.1}, with one run {one_run:.1}"
    );
    let range =
        leveled[..4].iter().fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(*x), high.max(*x)));
    assert!(two_runs > 0.9 * range.0 && two_runs < 1.1 * range.1);
    assert!(one_run > 1.9 * range.1);
}

#[test]
fn the_flash_layout_of_table_5_is_predicted_from_its_own_parameters() {
    for ((measured, single), clients) in
        FLASH_LAYOUT_QUERY_SECONDS.iter().zip(QUERY_SECONDS).zip(CONCURRENCIES)
    {
        let of_model = seconds(&leveled(8.0, 8.0), Operation::PointHit, clients)
            / seconds(&single_level(), Operation::PointHit, clients);
        let of_paper = measured / single[5];
        println!(
            "k {clients:>2}, F 8, C 8: {of_model:.2}, paper {of_paper:.2} ({:+.1} %)",
            100.0 * (of_model / of_paper - 1.0)
        );
        assert!((of_model / of_paper - 1.0).abs() <= 0.15);
    }
}

/// Scans are predicted less well: that of F = 2, whose upper levels give few records each, is a third too
/// short. Beyond k = 1 only ranks are compared, since Table 2's reads at higher k were partly cached.
#[test]
fn scan_times_over_the_single_levels_are_within_35_percent_at_one_client() {
    let scan = Operation::Range { bytes: SCANNED_RECORDS * RECORDS.record_bytes() };
    for (measured, clients) in SCAN_SECONDS.into_iter().zip(CONCURRENCIES) {
        let predicted = row(scan, clients);
        let (of_model, of_paper) = (ratios(predicted), ratios(measured));
        let errors: [f64; 5] = std::array::from_fn(|column| of_model[column] / of_paper[column] - 1.0);
        println!("k {clients:>2}: {of_model:.2?}, paper {of_paper:.2?}, errors {errors:.2?}");
        if clients == 1 {
            assert!(errors.iter().all(|error| error.abs() <= 0.35));
        }
        assert!(rank_correlation(&predicted, &measured) > 0.7);
    }
}
