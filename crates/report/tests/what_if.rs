//! The ranking that the page's script makes is the one of the advisor.
#![expect(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "other tests use more of it")]
mod common;

use std::process::Command;

use flashgrain_advisor::{Drive, workload};
use flashgrain_cost::Interval;
use flashgrain_cost::ranking::{Durability, Factors, Operations, Question, Row};
use serde_json::Value;

const SEED: u64 = 20_261_126;
const QUESTIONS: usize = 400;
const TOLERANCE: f64 = 1e-9;

/// Pseudo-random numbers (SplitMix64), so that a seed gives the same questions everywhere.
struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From one to the other, evenly in the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }
}

fn question(draws: &mut Draws, drives: &[Drive]) -> Question {
    let mut workload = workload::preset("ycsb-a").expect("a preset");
    let mut shares = [0.0; 6].map(|_| if draws.unit() < 0.5 { draws.unit() } else { 0.0 });
    shares[0] += 1e-3;
    let whole: f64 = shares.iter().sum();
    let [point_hits, point_misses, inserts, updates, deletes, ranges] = shares.map(|share| share / whole);
    workload.records.count = draws.between(1e6, 1e10) as u64;
    workload.records.key_bytes = draws.between(8.0, 128.0) as u64;
    workload.records.value_bytes = draws.between(8.0, 65_536.0) as u64;
    let range_records = draws.between(1.0, 1000.0) as u64;
    let range_bytes = if ranges > 0.0 { range_records * workload.records.record_bytes() } else { 0 };
    workload.operations =
        Operations { point_hits, point_misses, inserts, updates, deletes, ranges, range_bytes };
    workload.memory_bytes = draws.between(64e6, 1e12) as u64;
    workload.clients = draws.between(1.0, 2000.0) as u32;
    workload.skew = [0.0, 0.99, 1.0, 1.5 * draws.unit()][(draws.unit() * 4.0) as usize];
    workload.durability = if draws.unit() < 0.5 { Durability::Sync } else { Durability::None };
    let mut factor = || draws.between(1.0 / 16.0, 16.0);
    let factors = Factors {
        read_setup: factor(),
        read_transfer: factor(),
        write_setup: factor(),
        write_transfer: factor(),
        flush: factor(),
    };
    let drive = &drives[(draws.unit() * drives.len() as f64) as usize];
    Question { factors, workload, drive: drive.costs().clone() }
}

/// What the page's script says to all questions; `None` without node.
fn answers_of_page(questions: &[Question]) -> Option<Vec<Value>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let script = include_str!("../templates/what_if_model.js").to_owned()
        + "\nconst fs = require('fs');\n\
           const questions = JSON.parse(fs.readFileSync(process.argv[2]));\n\
           fs.writeFileSync(process.argv[3], JSON.stringify(questions.map(whatIf.rank)));\n";
    std::fs::write(path("what_if.js"), script).expect("a script");
    std::fs::write(path("questions.json"), serde_json::to_vec(questions).expect("JSON")).expect("a file");
    let node = Command::new("node")
        .args([path("what_if.js"), path("questions.json"), path("answers.json")])
        .output();
    let output = match node {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("node: {error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = std::fs::read(path("answers.json")).expect("answers");
    Some(serde_json::from_slice(&answers).expect("JSON"))
}

fn numbers(row: &Row) -> Vec<(&'static str, Option<f64>)> {
    let of = |name: [&'static str; 3], own: Interval| {
        [(name[0], Some(own.low)), (name[1], Some(own.value)), (name[2], Some(own.high))]
    };
    let mut all = Vec::new();
    all.extend(of(
        ["/rate_per_second/low", "/rate_per_second/value", "/rate_per_second/high"],
        row.rate_per_second,
    ));
    all.extend(of(["/latency_us/low", "/latency_us/value", "/latency_us/high"], row.latency_us));
    all.extend(of(
        ["/written_bytes_per_day/low", "/written_bytes_per_day/value", "/written_bytes_per_day/high"],
        row.written_bytes_per_day,
    ));
    all.push(("/write_amplification", row.write_amplification));
    all.push(("/read_amplification", row.read_amplification));
    all.push(("/space_amplification", Some(row.space_amplification)));
    all
}

/// Relative difference; of nothing and something it is infinite.
fn difference(one: Option<f64>, other: Option<f64>) -> f64 {
    match (one, other) {
        (None, None) => 0.0,
        (Some(one), Some(other)) if one == other => 0.0,
        (Some(one), Some(other)) => (one - other).abs() / one.abs().max(other.abs()),
        _ => f64::INFINITY,
    }
}

#[test]
fn the_page_ranks_as_the_advisor_does() {
    let drives = [common::full(), common::unfitted()].map(|profile| Drive::of(&profile));
    let mut draws = Draws(SEED);
    println!("seed {SEED}, {QUESTIONS} questions");
    let questions: Vec<Question> = (0..QUESTIONS).map(|_| question(&mut draws, &drives)).collect();
    let Some(answers) = answers_of_page(&questions) else {
        eprintln!("skipped: there is no `node` to run the page's script with");
        return;
    };
    assert_eq!(answers.len(), questions.len());
    let (mut largest, mut firsts, mut compared) = (0.0f64, std::collections::BTreeSet::new(), 0);
    for (question, answer) in questions.iter().zip(&answers) {
        let rows = question.answer().rows;
        let theirs = answer.as_array().expect("rows");
        assert_eq!(rows.len(), theirs.len(), "{question:?}");
        firsts.extend(rows.first().map(|row| row.family));
        for row in &rows {
            let words = serde_json::to_value(row).expect("JSON");
            let of_family = |other: &&Value| other["family"] == words["family"];
            let other = theirs.iter().find(of_family).unwrap_or_else(|| panic!("{row:?}: {question:?}"));
            for name in ["design", "bound"] {
                assert_eq!(words[name], other[name], "{question:?}");
            }
            for (name, own) in numbers(row) {
                let found = difference(own, other.pointer(name).and_then(Value::as_f64));
                assert!(found <= TOLERANCE, "{name} of {row:?}: {found}, {other}\n{question:?}");
                largest = largest.max(found);
                compared += 1;
            }
        }
        let is_sorted = theirs.windows(2).all(|pair| {
            let rate = |row: &Value| row["rate_per_second"]["value"].as_f64();
            rate(&pair[0]) >= rate(&pair[1])
        });
        assert!(is_sorted, "{theirs:?}");
    }
    println!("{compared} numbers, largest relative difference {largest:e}, first somewhere: {firsts:?}");
    assert!(firsts.len() >= 4, "the questions must reach several designs: {firsts:?}");
}
