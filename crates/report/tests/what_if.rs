//! The module that the page holds ranks as its source does.
#![expect(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[expect(dead_code, reason = "other tests use more of it")]
mod common;

use std::collections::BTreeSet;

use flashgrain_advisor::{Drive, workload};
use flashgrain_cost::Interval;
use flashgrain_cost::ranking::{Durability, Factors, Operations, Question, Row};
use serde_json::Value;
use wasmi::{Linker, Memory, Store, TypedFunc};

/// Built from `crates/what-if`, which is committed so that nothing else is needed to build a report.
const MODULE: &[u8] = include_bytes!("../templates/what_if.wasm");
/// A page grows by four thirds of that, and a little script.
const MODULE_BYTES_MAX: usize = 290_000;

const SEED: u64 = 20_261_126;
const QUESTIONS: usize = 20;
/// Powers and logarithms are the module's own, and another library's here: last digits differ.
const TOLERANCE: f64 = 1e-12;
const REMEDY: &str = "the committed module is not what its source says: run scripts/build-what-if.sh";

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

/// The module in an interpreter, called as the page calls it.
struct Module {
    store: Store<()>,
    memory: Memory,
    question: TypedFunc<u32, u32>,
    answer: TypedFunc<(), u32>,
    answer_bytes: TypedFunc<(), u32>,
}

impl Module {
    fn committed() -> Self {
        let engine = wasmi::Engine::default();
        let module = wasmi::Module::new(&engine, MODULE).expect("a module");
        let mut store = Store::new(&engine, ());
        // Nothing is defined, so that a module which imports something is refused.
        let instance = Linker::new(&engine).instantiate_and_start(&mut store, &module).expect("no imports");
        let get = |name| instance.get_typed_func(&store, name).expect("an export");
        let (answer, answer_bytes) = (get("answer"), get("answer_bytes"));
        let question = instance.get_typed_func(&store, "question").expect("an export");
        let memory = instance.get_memory(&store, "memory").expect("a memory");
        Self { store, memory, question, answer, answer_bytes }
    }

    fn ask(&mut self, question: &[u8]) -> Value {
        let to = self.question.call(&mut self.store, question.len() as u32).expect("memory");
        self.memory.write(&mut self.store, to as usize, question).expect("memory");
        let from = self.answer.call(&mut self.store, ()).expect("an answer");
        let length = self.answer_bytes.call(&mut self.store, ()).expect("a length");
        let mut answer = vec![0; length as usize];
        self.memory.read(&self.store, from as usize, &mut answer).expect("memory");
        serde_json::from_slice(&answer).expect("JSON")
    }
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

/// Both say the same to one question: the largest relative difference, and how many numbers were compared.
fn compare(question: &Question, answer: &Value) -> (f64, usize) {
    let standing = question.answer();
    let said = serde_json::to_value(&standing).expect("JSON");
    assert_eq!(said["left_out"], answer["left_out"], "{REMEDY}\n{question:?}");
    let theirs = answer["rows"].as_array().unwrap_or_else(|| panic!("{REMEDY}\n{answer}"));
    assert_eq!(standing.rows.len(), theirs.len(), "{REMEDY}\n{question:?}");
    let mut differences = Vec::new();
    for ((row, words), other) in standing.rows.iter().zip(said["rows"].as_array().expect("rows")).zip(theirs)
    {
        for name in ["family", "design", "bound"] {
            assert_eq!(words[name], other[name], "{REMEDY}\n{question:?}");
        }
        for (name, own) in numbers(row) {
            let found = difference(own, other.pointer(name).and_then(Value::as_f64));
            assert!(found <= TOLERANCE, "{REMEDY}\n{name} of {row:?}: {found:e}, {other}\n{question:?}");
            differences.push(found);
        }
    }
    let lead = answer.pointer("/lead/value").and_then(Value::as_f64);
    assert!(difference(standing.lead.map(|lead| lead.value), lead) <= TOLERANCE, "{REMEDY}\n{question:?}");
    (differences.iter().copied().fold(0.0, f64::max), differences.len())
}

#[test]
fn the_committed_module_ranks_as_its_source_does() {
    let drives = [common::full(), common::unfitted()].map(|profile| Drive::of(&profile));
    let mut draws = Draws(SEED);
    println!("seed {SEED}, {QUESTIONS} questions");
    let mut module = Module::committed();
    let (mut largest, mut compared, mut firsts) = (0.0f64, 0, BTreeSet::new());
    for _ in 0..QUESTIONS {
        let question = question(&mut draws, &drives);
        let answer = module.ask(&serde_json::to_vec(&question).expect("JSON"));
        let (difference, numbers) = compare(&question, &answer);
        (largest, compared) = (largest.max(difference), compared + numbers);
        firsts.insert(answer.pointer("/rows/0/family").and_then(Value::as_str).expect("a row").to_owned());
    }
    println!("{compared} numbers, largest relative difference {largest:e}, first somewhere: {firsts:?}");
    assert!(firsts.len() >= 4, "the questions must reach several designs: {firsts:?}");
}

#[test]
fn the_committed_module_is_small_and_says_what_is_wrong_with_a_question() {
    assert!(MODULE.len() <= MODULE_BYTES_MAX, "{} bytes", MODULE.len());
    let answer = Module::committed().ask(b"{}");
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("workload")), "{answer}");
}
