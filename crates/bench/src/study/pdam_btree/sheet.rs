//! Tables, and the remarks on them.

use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::{Nodes, OnDrive, PdamResult, figures, lemma, numbers};
use crate::study::sheet::{Part, Sheet};

pub(super) fn of(result: &PdamResult) -> Sheet {
    let drives = result.drives.iter().enumerate().map(|(number, drive)| on_drive(result, number, drive));
    Sheet {
        title: "One B+-tree for one client and for many, as in section 8 of the dictionaries paper".into(),
        conditions: conditions(result),
        parts: drives.collect(),
        comparisons: numbers::comparisons(Some(result)),
    }
}

fn conditions(result: &PdamResult) -> Vec<String> {
    let (records, block_bytes) = (result.records, f64::from(result.block_bytes));
    vec![
        format!(
            "B = {}, P = {}: nodes of {} and of {}.",
            unit::bytes(block_bytes),
            result.blocks,
            unit::bytes(block_bytes),
            unit::bytes(block_bytes * f64::from(result.blocks))
        ),
        format!(
            "{} records of {} + {} bytes, {} in all, and {} of memory, {:.2} % of that; seed {}.",
            unit::count(records.count as f64),
            records.key_bytes,
            records.value_bytes,
            unit::bytes(records.bytes() as f64),
            unit::bytes(result.cache_bytes as f64),
            100.0 * result.cache_bytes as f64 / records.bytes() as f64,
            result.seed
        ),
        format!("On simulated drives times are virtual: {}.", result.costs.describe()),
    ]
}

/// The throughput of one tree over that of another, by `clients` clients.
fn ratio(drive: &OnDrive, one: Nodes, other: Nodes, clients: u32) -> Option<f64> {
    let of = |nodes: Nodes| {
        let found = drive.trees.iter().find(|found| found.nodes == nodes)?;
        found.by(clients).map(|measured| measured.per_s)
    };
    Some(of(one)? / of(other)?)
}

fn on_drive(result: &PdamResult, number: usize, drive: &OnDrive) -> Part {
    Part {
        id: ["drive", "second-drive", "third-drive", "fourth-drive"].get(number).copied().unwrap_or("drives"),
        title: drive.target.clone(),
        text: in_short(result, drive),
        tables: vec![
            ("Look-ups a second, and requests to read for each".into(), throughput(drive)),
            ("The trees, and how much of them the memory has room for".into(), trees(result, drive)),
        ],
        figures: vec![figures::throughput(result, drive)],
    }
}

fn in_short(result: &PdamResult, drive: &OnDrive) -> Vec<String> {
    let one = ratio(drive, Nodes::InBlocks, Nodes::Small, 1).zip(lemma::speedup(result, drive));
    let one = one.map(|(ours, papers)| {
        format!(
            "One client is {ours:.2} times as fast in van Emde Boas order as with nodes of B; log_B N / log_PB N is {papers:.2}."
        )
    });
    let many = ratio(drive, Nodes::InBlocks, Nodes::Small, result.blocks).map(|ours| {
        let large = ratio(drive, Nodes::Large, Nodes::Small, result.blocks).unwrap_or_default();
        format!(
            "{} clients are {ours:.2} times as fast, and with nodes of P·B that are read whole {large:.2} times.",
            result.blocks
        )
    });
    one.into_iter().chain(many).collect()
}

fn throughput(drive: &OnDrive) -> Table {
    let mut columns = vec![("clients", Kind::Number)];
    for nodes in Nodes::ALL {
        columns.extend([(nodes.name(), Kind::Number), ("reads", Kind::Number), ("bytes read", Kind::Number)]);
    }
    let mut table = Table::new(&columns);
    let clients = drive.trees.first().map(|found| found.look_ups.iter().map(|run| run.clients));
    for clients in clients.into_iter().flatten() {
        let cells = drive.trees.iter().flat_map(|found| match found.by(clients) {
            Some(run) => [
                unit::count(run.per_s.round()),
                format!("{:.2}", run.reads_each),
                unit::bytes(run.read_bytes_each.round()),
            ],
            None => ["–", "–", "–"].map(str::to_owned),
        });
        table.push(std::iter::once(clients.to_string()).chain(cells).map(Cell::from));
    }
    table
}

fn trees(result: &PdamResult, drive: &OnDrive) -> Table {
    let columns = ["leaves", "inner nodes", "nodes, bytes", "inner nodes, bytes", "memory, bytes"];
    let mut all = vec![("tree", Kind::Label)];
    all.extend(columns.map(|column| (column, Kind::Number)));
    let mut table = Table::new(&all);
    for found in &drive.trees {
        let check = &found.check;
        let inner = check.nodes - check.leaves;
        let each = check.node_bytes as f64 / check.nodes.max(1) as f64;
        let cells = [
            found.nodes.name().to_owned(),
            unit::count(check.leaves as f64),
            unit::count(inner as f64),
            unit::bytes(check.node_bytes as f64),
            unit::bytes(inner as f64 * each),
            unit::bytes(result.cache_bytes as f64),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}
