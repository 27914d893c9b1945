//! The settings of a store and of its tree, each with its reason.

use flashgrain_cost::End;
use flashgrain_cost::ranking::Requests;
use flashgrain_model::Access;
use flashgrain_settings::{BeTreeDesign, Bytes, drive as decided};

use super::super::{SAME_MEMORY, Setting, UNDETERMINED, decision_text, flush_text, measured_text};
use super::model::{DEFAULT, KIBI, TreeStructure, declared};
use super::{Ours, Trees};

pub(super) fn profile(tuned: &Ours<'_>) -> Setting {
    let unit = tuned.drive.decided(decided::Setting::write_unit);
    let number = match unit {
        Some((unit, decision)) => decision_text("write unit", unit, decision),
        None => format!("{UNDETERMINED}: the profile has decided no write unit"),
    };
    let gain = tuned.gain_of(|store, default| {
        store.write_unit_bytes = default.write_unit_bytes;
        store.border_bytes = default.border_bytes;
        store.sync_method = default.sync_method;
    });
    Setting {
        name: "--profile",
        value: Some("\"$PROFILE\"".into()),
        default: "none",
        reason: "write unit, segments, log block and the way to make the log durable come from the profile"
            .into(),
        number,
        gain: Some(gain),
        cost: String::new(),
    }
}

pub(super) fn node(tuned: &Ours<'_>) -> Setting {
    let bytes = tuned.advised.node_bytes;
    let is_default = bytes == DEFAULT.node_bytes;
    let gain = tuned.gain_of(|store, default| store.node_bytes = default.node_bytes);
    let leaf = tuned.drive.decided(decided::Setting::leaf_size);
    Setting {
        name: "--node-size",
        value: (!is_default).then(|| format!("{:.0}KiB", bytes / KIBI)),
        default: "4KiB",
        reason: match is_default {
            true => "no other node size is predicted to gain 2 % or more without a risk".into(),
            false => "the node size with the best predicted rate for this mix".into(),
        },
        number: match leaf {
            Some((leaf, decision)) => decision_text("leaf size", leaf, decision),
            None => format!("{UNDETERMINED}: the profile has decided no leaf size"),
        },
        gain: (!is_default).then_some(gain),
        cost: String::new(),
    }
}

pub(super) fn cache(tuned: &Ours<'_>) -> Setting {
    let bytes = tuned.advised.cache_bytes;
    Setting {
        name: "cache_bytes",
        value: Some(format!("{bytes:.0}")),
        default: "268435456",
        reason: "the store bypasses the page cache: pages outside its own cache are read from the drive"
            .into(),
        number: measured_text(tuned.drive, Access::Read, read_text(tuned)),
        gain: None,
        cost: format!("{} of memory, {SAME_MEMORY}", Bytes(bytes as u64)),
    }
}

pub(super) fn durability(tuned: &Ours<'_>) -> Setting {
    let flush = tuned.drive.flush(tuned.advised.sync_method);
    let lazily = !tuned.advised.syncs;
    Setting {
        name: "durability",
        value: lazily.then(|| "Buffered".to_owned()),
        default: "Sync",
        reason: match lazily {
            true => format!("the workload allows it: {}", tuned.workload.durability.describe()),
            false => format!(
                "the workload wants more than the store's other promises: {}",
                tuned.workload.durability.describe()
            ),
        },
        number: format!("{} by {}", flush_text(tuned.drive, "", flush), tuned.advised.sync_method.name()),
        gain: lazily.then(|| tuned.gain_of(|store, default| store.syncs = default.syncs)),
        cost: if lazily { "a power cut takes recent commits".into() } else { String::new() },
    }
}

/// The structure of the tree.
pub(super) fn kind(trees: &Trees<'_>) -> Setting {
    let predicted = |tuned: &Ours<'_>| {
        let (rate, bound) = (tuned.rate(&tuned.advised).value, tuned.bound(&tuned.advised));
        format!("{rate:.0} operations/s (limit: {})", bound.describe())
    };
    let others: Vec<String> = trees
        .all()
        .skip(1)
        .map(|tree| format!("{} {}", tree.advised.structure_text(), predicted(tree)))
        .collect();
    let reason = format!("a B+-tree is predicted to do {}, {}", predicted(&trees.b_tree), others.join(", "));
    let advised = trees.advised();
    let value = match advised.advised.structure {
        TreeStructure::BTree | TreeStructure::BTreeOfBlocks { .. } => None,
        TreeStructure::LsmTree { .. } => Some("lsm"),
        TreeStructure::BeTree { .. } => Some("be-tree"),
    };
    let gains = value.is_some();
    Setting {
        name: "--kind",
        value: value.map(str::to_owned),
        default: "btree",
        reason: match advised.advised.structure {
            TreeStructure::BTree => format!("{reason}: none gains enough without a risk"),
            _ => reason,
        },
        number: page_number(&trees.lsm_tree),
        gain: gains.then(|| trees.gain(advised)),
        cost: match advised.advised.structure {
            TreeStructure::LsmTree { .. } => format!(
                "up to {:.1} times the space of the records, plus room for merges",
                advised.advised.space_amplification(advised.workload)
            ),
            TreeStructure::BeTree { .. } => format!(
                "{:.1} times the space of the records",
                advised.advised.space_amplification(advised.workload)
            ),
            TreeStructure::BTree | TreeStructure::BTreeOfBlocks { .. } => String::new(),
        },
    }
}

/// The settings that make a tree of the advised structure.
pub(super) fn of_structure(tuned: &Ours<'_>) -> Vec<Setting> {
    match tuned.advised.structure {
        TreeStructure::BTree => Vec::new(),
        TreeStructure::BTreeOfBlocks { blocks } => vec![node_blocks(tuned, blocks)],
        TreeStructure::LsmTree { table_bytes, .. } => lsm_tree(tuned, table_bytes),
        TreeStructure::BeTree { node_bytes, fanout } => be_tree(tuned, node_bytes, fanout),
    }
}

fn node_blocks(tuned: &Ours<'_>, blocks: u32) -> Setting {
    let ahead = tuned.drive.decided(decided::Setting::read_ahead);
    Setting {
        name: "--node-blocks",
        value: Some(blocks.to_string()),
        default: "none",
        reason: format!(
            "look-ups read single blocks of nodes of {blocks}, by requests as wide as other clients leave room"
        ),
        number: match ahead {
            Some((bytes, decision)) => decision_text("read-ahead", bytes, decision),
            None => format!("{UNDETERMINED}: the profile has decided no read-ahead"),
        },
        gain: Some(tuned.gain_of(|store, default| store.structure = default.structure)),
        cost: format!("a change of a record writes all {blocks} blocks of its node"),
    }
}

/// B and F.
fn be_tree(tuned: &Ours<'_>, node_bytes: u64, fanout: u32) -> Vec<Setting> {
    let clients = f64::from(tuned.workload.clients);
    let half = tuned.drive.costs().half_bandwidth_bytes(Access::Read, clients);
    let number = measured_text(
        tuned.drive,
        Access::Read,
        format!(
            "reading {} takes twice the time of the shortest read with {clients} clients (1/α)",
            Bytes(half as u64)
        ),
    );
    let BeTreeDesign { node_bytes: usual_node_bytes, fanout: usual_fanout } = BeTreeDesign::USUAL;
    let usual = TreeStructure::BeTree { node_bytes: usual_node_bytes, fanout: usual_fanout };
    let gain = tuned.gain_of(|store, _| store.structure = usual);
    let part = Bytes(node_bytes / u64::from(fanout));
    let setting = |name, value: String, default, reason: String| Setting {
        name,
        value: Some(value),
        default,
        reason,
        number: number.clone(),
        gain: Some(gain),
        cost: String::new(),
    };
    vec![
        setting(
            "--buffered-node-size",
            node_bytes.to_string(),
            "as the store decides",
            format!(
                "B with the best predicted rate for this mix; the gain of both is over {} and {usual_fanout}",
                Bytes(usual_node_bytes)
            ),
        ),
        setting(
            "--fanout",
            fanout.to_string(),
            "as the store decides",
            format!(
                "F with the best predicted rate for this mix: a look-up reads {part} at most on each level"
            ),
        ),
    ]
}

/// The drive's time for a page that is read alone.
fn read_text(tuned: &Ours<'_>) -> String {
    let clients = f64::from(tuned.workload.clients);
    let alone = Requests { access: Access::Read, bytes: 4.0 * KIBI, random: true, concurrency: clients };
    let micros = tuned.drive.costs().seconds(&alone, End::Value) * 1e6;
    format!("a random read of 4 KiB takes {micros:.1} µs of the drive's time with {clients} clients")
}

/// The same, and for one that is written in a table.
fn page_number(tuned: &Ours<'_>) -> String {
    let (pages, concurrency) = (tuned.advised.table_bytes() as f64 / (4.0 * KIBI), 1.0);
    let table = Requests { access: Access::Write, bytes: pages * 4.0 * KIBI, random: true, concurrency };
    let micros = tuned.drive.costs().seconds(&table, End::Value) * 1e6 / pages;
    let text = format!("{}, writing 4 KiB of a table {micros:.1} µs", read_text(tuned));
    measured_text(tuned.drive, Access::Write, text)
}

/// The settings that make an LSM-tree: the declared workload, from which its design follows, and its tables.
fn lsm_tree(tuned: &Ours<'_>, table_bytes: u64) -> Vec<Setting> {
    let declared = declared(tuned.workload);
    let records = tuned.workload.records;
    let setting = |name, value: String, default, reason: &str| Setting {
        name,
        value: Some(value),
        default,
        reason: reason.into(),
        number: "none; it is the workload's".into(),
        gain: None,
        cost: String::new(),
    };
    let shares = declared.percentages().map(|share| share.to_string()).join(",");
    let follows = "layout, fanout and level 0 follow from it";
    vec![
        setting("--workload", shares, "none", &format!("shares of writes, look-ups and scans: {follows}")),
        setting("--record-size", records.record_bytes().to_string(), "128", follows),
        setting("--data-size", declared.data_size().to_string(), "64GiB", follows),
        setting(
            "--table-size",
            table_bytes.to_string(),
            "that of a memtable",
            "layout, fanout and level 0 follow from it, too: of the sizes up to that of a memtable in the cache that programs open the store with, that of the best predicted rate",
        ),
    ]
}
