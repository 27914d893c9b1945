//! The model of InnoDB compared with a recording of MariaDB: the same requests to the same files, in the same
//! numbers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flashgrain_device::Op;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::client::{Client, ServerCosts, Table};
use super::innodb::{Memory, Setup};
use super::layout::Layout;

const RECORDING: &str = include_str!("recording.txt");

const PAGE_BYTES: u64 = 64 << 10;

/// Frames of the server's pool, by its own count.
const FRAMES: usize = 381;

/// The recorded table: 1,020 pages that were filled in key order, to 15/16.
const ROWS: u64 = 60_000;
const PAGES: u32 = 1020;

/// Requests of a phase.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    operations: f64,
    table_reads: f64,
    table_writes: f64,
    system_reads: f64,
    /// Bytes of the system tablespace's pages that are written in place, in pages, and of the doublewrite
    /// area.
    system_writes: f64,
    doublewritten: f64,
    log_writes: f64,
    log_bytes: f64,
}

impl Counts {
    fn add(&mut self, op: Op, file: &str, length_bytes: u64) {
        let pages = length_bytes as f64 / PAGE_BYTES as f64;
        match (op, file) {
            (Op::Read, "table") => self.table_reads += pages,
            (Op::Write, "table") => self.table_writes += pages,
            (Op::Read, "system") => self.system_reads += pages,
            (Op::Write, "system") if length_bytes > PAGE_BYTES => self.doublewritten += pages,
            (Op::Write, "system") => self.system_writes += pages,
            (Op::Write, "log") => {
                self.log_writes += 1.0;
                self.log_bytes += length_bytes as f64;
            }
            _ => {}
        }
    }
}

/// The requests of one phase of the recording: operation, file, offset, length.
fn recorded(phase: &str) -> Vec<(Op, &'static str, u64, u64)> {
    let of_phase = RECORDING.split_once(phase).unwrap().1;
    let lines = of_phase.lines().skip(1).take_while(|line| !line.starts_with('#'));
    let request = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let op = match words[0] {
            "R" => Op::Read,
            "W" => Op::Write,
            _ => Op::Flush,
        };
        (op, words[1], words[2].parse().unwrap(), words[3].parse().unwrap_or(0))
    };
    lines.map(request).collect()
}

fn counts_of_recording(phase: &str, operations: f64) -> Counts {
    let mut counts = Counts { operations, ..Counts::default() };
    recorded(phase).into_iter().for_each(|(op, file, _, length)| counts.add(op, file, length));
    counts
}

/// The model, with the recorded server's table and pool, after the same operations as it.
struct Model {
    client: Client,
    layout: Layout,
}

impl Model {
    fn new() -> Self {
        let memory = Memory::of_frames(FRAMES);
        let layout = Layout {
            page_bytes: PAGE_BYTES,
            partition_begin_bytes: 0,
            table_shift_bytes: 0,
            system_pages: memory.system_pages(),
        };
        let pages = memory.system_pages() + PAGES;
        let config = SimConfig::named("sim:960evo").unwrap().resized(1 << 30);
        let device = Arc::new(SimDevice::new(&config, "sim:960evo", 1).unwrap());
        let setup = Setup { layout, pages, memory, has_doublewrite: true, split_bytes: None };
        let costs = ServerCosts { select_ns: 22_000, change_ns: 50_000, page_ns: 39_000 };
        let table = Table::of_rows(ROWS, 1008, PAGES, PAGE_BYTES);
        Self { client: Client::make(setup, device, table, costs, 1).unwrap(), layout }
    }

    /// The model's requests while it does `act`.
    fn counts(&mut self, operations: f64, act: impl FnOnce(&mut Client)) -> Counts {
        let before = self.client.innodb.sent.len();
        act(&mut self.client);
        let mut counts = Counts { operations, ..Counts::default() };
        for (op, offset, length) in &self.client.innodb.sent[before..] {
            let file = match self.layout {
                layout if layout.log_file().contains(offset) => "log",
                layout if *offset < layout.page(layout.system_pages).start => "system",
                _ => "table",
            };
            counts.add(*op, file, u64::from(*length));
        }
        counts
    }
}

fn assert_near(of: impl Fn(&Counts) -> f64, ours: &Counts, recorded: &Counts, within: f64, name: &str) {
    let [ours, recorded] = [ours, recorded].map(|counts| of(counts) / counts.operations);
    let apart = (ours - recorded).abs();
    assert!(apart <= within * recorded, "{name}: {ours:.3} of each operation, recorded {recorded:.3}");
}

#[test]
fn pages_are_at_multiples_of_their_size_and_the_log_in_blocks() {
    let all = [recorded("# 1000 selects"), recorded("# 300 updates")].concat();
    assert!(all.len() > 3000, "{}", all.len());
    for (op, file, offset, length) in all.into_iter().filter(|(op, ..)| *op != Op::Flush) {
        let unit = if file == "log" { 4096 } else { PAGE_BYTES };
        assert!(offset % unit == 0 && length % unit == 0, "{op:?} {file} {offset} {length}");
        let is_one_page = length == PAGE_BYTES;
        assert!(
            file == "log" || is_one_page || (op == Op::Write && file == "system"),
            "{op:?} {file} {length}"
        );
    }
}

#[test]
fn the_model_asks_for_as_much_as_the_server() {
    let never = AtomicBool::new(false);
    let mut model = Model::new();
    model.client.selects(1500, &never).unwrap();
    let selects = model.counts(3000.0, |client| {
        client.selects(3000, &never).unwrap();
    });
    let recorded = counts_of_recording("# 1000 selects", 1000.0);
    assert_near(|counts| counts.table_reads, &selects, &recorded, 0.06, "reads of the table by a select");
    assert_eq!((selects.table_writes, selects.log_writes), (0.0, 0.0));

    model.client.updates(600, &never).unwrap();
    let updates = model.counts(2000.0, |client| {
        client.updates(2000, &never).unwrap();
    });
    let recorded = counts_of_recording("# 300 updates", 300.0);
    let near = |of: fn(&Counts) -> f64, within, name| assert_near(of, &updates, &recorded, within, name);
    near(|counts| counts.table_reads, 0.06, "reads of the table");
    near(|counts| counts.table_writes, 0.1, "writes of the table");
    // Purge is left out.
    near(|counts| counts.system_reads, 0.25, "reads of the undo log");
    near(|counts| counts.system_writes, 0.3, "writes of the undo log");
    near(|counts| counts.doublewritten, 0.25, "pages of the doublewrite area");
    near(|counts| counts.log_writes, 0.1, "writes of the redo log");
    near(|counts| counts.log_bytes, 0.1, "bytes of the redo log");
}
