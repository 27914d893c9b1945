//! Output about a store.

use anyhow::bail;
use flashgrain::{BeTreeLevelStats, BeTreeStats, Db, Decision, LsmStats, Stats, Tree, TreeOperations};
use flashgrain_report::unit;
use serde_json::json;

use super::kind::name_of;
use crate::interrupt::Interrupt;
use crate::output::{print, print_json};

/// How the layout of a new store was decided.
pub fn layout(decisions: &[Decision], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return print_json(&decisions);
    }
    Ok(print(&layout_text(decisions))?)
}

/// A line for each decision, with the number that it follows from.
pub fn layout_text(decisions: &[Decision]) -> String {
    let rows: Vec<_> =
        decisions.iter().map(|one| (one.setting.name(), one.setting.value(), &one.because)).collect();
    let setting = rows.iter().map(|(name, _, _)| name.chars().count()).max().unwrap_or(0);
    let value = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or(0);
    let line = |(name, text, because): &(&str, String, &String)| {
        format!("{name:<setting$}  {text:<value$}  {because}\n")
    };
    rows.iter().map(line).collect()
}

/// The layout of a tree, and the one that would follow from its operations.
pub fn observed_layout(
    operations: TreeOperations,
    own: &[Decision],
    would: &[Decision],
    as_json: bool,
) -> anyhow::Result<()> {
    if as_json {
        return print_json(&json!({ "operations": operations, "layout": own, "observed": would }));
    }
    let beside = would.iter().map(|one| {
        let name = one.setting.name();
        let own = own.iter().find(|own| own.setting.name() == name);
        let (now, then) = (own.map_or("none".into(), |own| own.setting.value()), one.setting.value());
        let change = if now == then { now } else { format!("{now}, would be {then}") };
        (name, change, one.because.as_str())
    });
    let rows: Vec<_> = beside.collect();
    let name = rows.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let change = rows.iter().map(|(_, change, _)| change.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(own, text, because)| format!("{own:<name$}  {text:<change$}  {because}\n"));
    Ok(print(&format!("{}\n{}", operations_text(operations), lines.collect::<String>()))?)
}

fn operations_text(operations: TreeOperations) -> String {
    let TreeOperations { writes, look_ups, scans, .. } = operations;
    let (writes, look_ups) = (unit::things(writes, "write"), unit::things(look_ups, "look-up"));
    format!("{writes}, {look_ups}, {} so far", unit::things(scans, "scan"))
}

pub fn check(db: &Db, reclaim: bool, as_json: bool, interrupt: &Interrupt) -> anyhow::Result<()> {
    let own = db.clone();
    let check = match interrupt.unless_wanted(move || own.check())? {
        Ok(check) => check,
        Err(first) => return damage(db, first, as_json, interrupt),
    };
    let own = db.clone();
    let reclaim = move || if reclaim { own.reclaim() } else { Ok(None) };
    let reclaimed = interrupt.unless_wanted(reclaim)??.unwrap_or(0);
    let damaged = db.stats().recovery.damaged_superblocks;
    if as_json {
        let mut all = serde_json::to_value(&check)?;
        all["reclaimed_pages"] = reclaimed.into();
        all["damaged_superblocks"] = damaged.into();
        print_json(&all)?;
        return superblocks(damaged);
    }
    let used = check.used_bytes as f64 / check.node_bytes.max(1) as f64;
    let mut text = format!(
        "sound: {}, {}{} in {}, {} full",
        unit::things(check.trees, "tree"),
        unit::things(check.records, "record"),
        match check.versions == check.records {
            true => String::new(),
            false => format!(", kept as {} or messages,", unit::things(check.versions, "version")),
        },
        unit::things(check.nodes, "node"),
        unit::share(used)
    );
    if check.overflow_values > 0 {
        text += &format!(", {}", unit::things(check.overflow_values, "overflow value"));
    }
    if reclaimed > 0 {
        text += &format!("; freed {} left by a crash", unit::things(reclaimed, "page"));
    }
    print(&(text + "\n"))?;
    superblocks(damaged)
}

/// Fails if copies of the superblock are damaged, though one is enough.
fn superblocks(damaged: u64) -> anyhow::Result<()> {
    if damaged == 0 {
        return Ok(());
    }
    let are = if damaged == 1 { "is" } else { "are" };
    bail!(
        "{damaged} of 4 copies of the superblock {are} damaged: nothing is lost, and the next two checkpoints write them anew; look after the drive, and keep a backup"
    )
}

/// The sound trees, and the damage of the others. It fails with the first damage.
fn damage(db: &Db, first: flashgrain::Error, as_json: bool, interrupt: &Interrupt) -> anyhow::Result<()> {
    let looked = |name: String| {
        let tree = db.existing_tree(&name);
        let checked = interrupt.unless_wanted(move || tree.and_then(|tree| tree.check()))?;
        Ok::<_, anyhow::Error>((name, checked.map_err(|error| error.to_string())))
    };
    let trees = db.tree_names().into_iter().map(looked).collect::<Result<Vec<_>, _>>()?;
    if as_json {
        let row = |(name, checked): &(String, Result<_, String>)| match checked {
            Ok(check) => json!({ "name": name, "check": check }),
            Err(damage) => json!({ "name": name, "damage": damage }),
        };
        print_json(&json!({ "trees": trees.iter().map(row).collect::<Vec<_>>() }))?;
    } else {
        let line = |(name, checked): &(String, Result<flashgrain::Check, String>)| match checked {
            Ok(check) => format!("sound    {name}, {}\n", unit::things(check.records, "record")),
            Err(damage) => format!("damaged  {name}: {damage}\n"),
        };
        print(&trees.iter().map(line).collect::<String>())?;
    }
    Err(first.into())
}

pub fn stats(db: &Db, as_json: bool) -> anyhow::Result<()> {
    let stats = db.stats();
    let mut trees = Vec::new();
    for name in db.tree_names() {
        trees.push(db.existing_tree(&name)?);
    }
    if as_json {
        let row = |tree: &Tree| {
            let options = tree.options();
            json!({
                "name": tree.name(),
                "kind": name_of(options.index_kind()),
                "node_bytes": options.size_of_nodes(),
                "lsm": tree.lsm_stats(),
                "be_tree": tree.be_tree_stats(),
                "operations": tree.operations(),
            })
        };
        return print_json(&json!({ "trees": trees.iter().map(row).collect::<Vec<_>>(), "stats": stats }));
    }
    let text: String = trees.iter().map(tree_text).collect();
    Ok(print(&(text + &numbers(&stats)))?)
}

/// The description of a tree.
fn tree_text(tree: &Tree) -> String {
    let node = tree.options().size_of_nodes().map_or(String::new(), |bytes| unit::bytes(f64::from(bytes)));
    let name = tree.name();
    if let Some(lsm) = tree.lsm_stats() {
        let operations = operations_text(tree.operations());
        return format!("LSM-tree  {name}, blocks of {node}\n{}  {operations}\n", levels(&lsm));
    }
    match tree.be_tree_stats() {
        Some(stats) => {
            let operations = operations_text(tree.operations());
            format!("Bε-tree   {name}, basement nodes of {node}\n{}  {operations}\n", buffers(&stats))
        }
        None => format!("tree      {name}, nodes of {node}\n"),
    }
}

/// A line for each level of a Bε-tree, from the root's on.
fn buffers(tree: &BeTreeStats) -> String {
    let line = |(number, level): (usize, &BeTreeLevelStats)| {
        let flushed = unit::bytes(level.flushed_bytes as f64 / level.flushes.max(1) as f64);
        let amplification = level.rewritten_bytes as f64 / level.flushed_bytes.max(1) as f64;
        format!(
            "  level {number} {}, {} of messages; {} of {flushed}, {amplification:.1} bytes rewritten per byte; {} rebuilt\n",
            unit::things(level.pages, "page"),
            unit::bytes(level.buffered_bytes as f64),
            unit::things(level.flushes, "flush"),
            unit::things(level.rebuilds, "node"),
        )
    };
    tree.levels.iter().enumerate().rev().map(line).collect()
}

/// A line for each level of an LSM-tree, and one for deferred work.
fn levels(lsm: &LsmStats) -> String {
    let mut text = String::new();
    for (number, level) in lsm.levels.iter().enumerate() {
        text += &format!(
            "  level {number} {} in {} of {}, {}, with {}\n",
            unit::bytes(level.bytes as f64),
            unit::things(level.tables, "table"),
            unit::things(level.runs, "run"),
            unit::things(level.records, "version"),
            unit::things(level.tombstones, "removal"),
        );
    }
    let ranges: u64 = lsm.levels.iter().map(|level| level.range_tombstones).sum();
    if ranges > 0 {
        text += &format!("  {}\n", unit::things(ranges, "range removal"));
    }
    if lsm.loads > 0 {
        let (loads, bytes) = (unit::count(lsm.loads as f64), unit::bytes(lsm.loaded_bytes as f64));
        text += &format!("  loads that became tables at once: {loads}, of {bytes}\n");
    }
    if lsm.debt_bytes > 0 {
        text += &format!("  merges that are due write about {}\n", unit::bytes(lsm.debt_bytes as f64));
    }
    text
}

fn numbers(stats: &Stats) -> String {
    let Stats { cache, space, log, throttle, recovery, .. } = stats;
    let bytes = |bytes: u64| unit::bytes(bytes as f64);
    let used = space.segments_bytes - space.free_bytes;
    let mut text = format!("pages     {} in {}\n", unit::count(cache.pages as f64), bytes(space.live_bytes));
    text += &format!(
        "space     {} of {} in use, in segments of up to {}; {} live\n",
        bytes(used),
        bytes(space.device_bytes),
        bytes(space.segment_bytes),
        unit::share(space.live_bytes as f64 / used.max(1) as f64)
    );
    if space.owned_bytes > 0 {
        text += &format!("tables    {} of LSM-trees\n", bytes(space.owned_bytes));
    }
    if let Some(share) = cache.hit_share() {
        let (hits, misses) = (unit::things(cache.hits, "hit"), unit::things(cache.misses, "miss"));
        text += &format!("cache     {hits}, {misses}: {} hits\n", unit::share(share));
        if cache.record_hits > 0 {
            let hits = unit::count(cache.record_hits as f64);
            text +=
                &format!("records   {hits} found without their pages, in {}\n", bytes(cache.record_bytes));
        }
    }
    text += &format!("log       {} of {} in use\n", unit::share(log.fill), bytes(space.log_bytes));
    text += &match throttle.operations_per_s {
        None => format!("writers   {}\n", throttle.reason),
        Some(rate) => format!("writers   {} operations/s each: {}\n", unit::count(rate), throttle.reason),
    };
    text += &match recovery.was_closed {
        true => format!("opened    in {}, as it had been closed\n", unit::seconds(recovery.map_s)),
        false => format!(
            "opened    in {}: replayed {} from {} of log\n",
            unit::seconds(recovery.map_s + recovery.replay_s),
            unit::things(recovery.records, "commit"),
            bytes(recovery.log_bytes)
        ),
    };
    text
}
