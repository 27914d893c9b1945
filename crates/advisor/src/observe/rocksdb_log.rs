//! The LOG of RocksDB: its last dump of statistics, the properties of its tables and its options.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Seen;
use crate::workload::Durability;

/// From this share of groups of commits with a sync on, every commit is taken to be durable. Clients that
/// commit at the same time share a write of the log and its sync: there are fewer syncs than commits.
const SYNCED_FRACTION: f64 = 0.5;

pub(super) fn parse(text: &str) -> Result<Seen, String> {
    let counts = last_counts(text);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0.0);
    if !counts.contains_key("rocksdb.number.keys.written") {
        return Err("it has no dump of statistics: open the database with Options::statistics, and wait for stats_dump_period_sec".into());
    }
    let (reads, writes) = (count("rocksdb.number.keys.read"), count("rocksdb.number.keys.written"));
    let hits = ["rocksdb.memtable.hit", "rocksdb.l0.hit", "rocksdb.l1.hit", "rocksdb.l2andup.hit"].map(count);
    let hits: f64 = hits.iter().sum::<f64>().min(reads);
    let tables = Tables::of(text);
    let mut notes =
        vec!["inserts and updates are not told apart in a LOG: all writes count as updates".to_owned()];
    let deletes = writes * tables.deletions_share();
    let seeks = count("rocksdb.number.db.seek");
    let range_bytes = (seeks > 0.0).then(|| count("rocksdb.db.iter.bytes.read") / seeks);
    let records = tables.live_records(text);
    if records.is_some() {
        notes.push(
            "the number of records is that of the last table of compactions, without records in memory"
                .into(),
        );
    }
    let durability = durability(text, &counts, &mut notes);
    let cache = option(text, "capacity :").or_else(|| option(text, "capacity:"));
    let memtables = option(text, "Options.write_buffer_size:")
        .zip(option(text, "Options.max_write_buffer_number:"))
        .map(|(bytes, number)| bytes * number);
    Ok(Seen {
        point_hits: hits,
        point_misses: reads - hits,
        updates: writes - deletes,
        deletes,
        ranges: seeks,
        range_bytes,
        records,
        key_bytes: tables.key_bytes(),
        value_bytes: tables.value_bytes(),
        memory_bytes: cache.zip(memtables).map(|(cache, memtables)| cache + memtables),
        durability,
        notes,
        ..Seen::default()
    })
}

/// Whether commits were made durable, from the syncs and the groups of commits that shared one; `None` if the
/// LOG cannot tell. `WriteOptions::sync` is said by each write alone: of some syncs, the LOG does not tell
/// which commits wanted them.
fn durability(text: &str, counts: &BTreeMap<&str, f64>, notes: &mut Vec<String>) -> Option<Durability> {
    let count = |name: &str| counts.get(name).copied().filter(|count| *count > 0.0);
    let logged = count("rocksdb.write.wal")?;
    let groups = count("rocksdb.write.self").or_else(|| commit_groups(text)).unwrap_or(logged).min(logged);
    let synced = *counts.get("rocksdb.wal.synced")?;
    let (durability, kept) = match synced {
        0.0 => (Some(Durability::None), "no commit waited for the log"),
        some if some >= SYNCED_FRACTION * groups => (Some(Durability::Sync), "every commit was durable"),
        _ => (None, "some commits were durable, and no LOG tells which had to be"),
    };
    notes.push(format!("{kept}: {logged:.0} writes in {groups:.0} groups, {synced:.0} syncs of the log"));
    durability
}

/// `Cumulative writes: 3000 writes, 3000 keys, 190 commit groups, 15.8 writes per commit group, ...`, rounded
/// to thousands from some on; the last one.
fn commit_groups(text: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.starts_with("Cumulative writes:"))?;
    let number = line.split_once(" commit groups")?.0.rsplit(' ').next()?;
    let (digits, factor) = match number.char_indices().next_back()? {
        (at, 'K') => (&number[..at], 1e3),
        (at, 'M') => (&number[..at], 1e6),
        (at, 'G') => (&number[..at], 1e9),
        _ => (number, 1.0),
    };
    Some(digits.parse::<f64>().ok()? * factor).filter(|groups| *groups > 0.0)
}

/// Tickers of the last dump: later lines replace earlier ones.
fn last_counts(text: &str) -> BTreeMap<&str, f64> {
    let ticker = |line: &'_ str| -> Option<(usize, f64)> {
        let (name, count) = line.split_once(" COUNT : ")?;
        name.starts_with("rocksdb.").then_some(())?;
        // Histograms have more words before theirs.
        (!name.contains(' ')).then_some(())?;
        Some((name.len(), count.trim().parse().ok()?))
    };
    text.lines()
        .filter_map(|line| ticker(line).and_then(|(end, count)| Some((line.get(..end)?, count))))
        .collect()
}

/// The number after a name in the options at the LOG's beginning.
fn option(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(name))?;
    line.split_once(name)?.1.split_whitespace().next()?.parse().ok()
}

/// Sums over all tables that were made.
#[derive(Default)]
struct Tables {
    entries: f64,
    deletions: f64,
    key_bytes: f64,
    value_bytes: f64,
    file_bytes: f64,
}

/// RocksDB adds a number and a type to each key.
const INTERNAL_KEY_BYTES: f64 = 8.0;

impl Tables {
    fn of(text: &str) -> Self {
        let mut sums = Self::default();
        let events = text.lines().filter_map(|line| line.split_once("EVENT_LOG_v1 "));
        for (_, event) in events {
            let Ok(event) = serde_json::from_str::<Value>(event.trim()) else { continue };
            if event.get("event").and_then(Value::as_str) != Some("table_file_creation") {
                continue;
            }
            let Some(properties) = event.get("table_properties") else { continue };
            let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_f64).unwrap_or(0.0);
            sums.entries += number(properties, "num_entries");
            sums.deletions += number(properties, "num_deletions");
            sums.key_bytes += number(properties, "raw_key_size");
            sums.value_bytes += number(properties, "raw_value_size");
            sums.file_bytes += number(&event, "file_size");
        }
        sums
    }

    fn deletions_share(&self) -> f64 {
        if self.entries > 0.0 { self.deletions / self.entries } else { 0.0 }
    }

    fn key_bytes(&self) -> Option<f64> {
        (self.entries > 0.0).then(|| (self.key_bytes / self.entries - INTERNAL_KEY_BYTES).max(1.0))
    }

    fn value_bytes(&self) -> Option<f64> {
        let values = self.entries - self.deletions;
        (values > 0.0).then(|| self.value_bytes / values)
    }

    /// Records in the files of the last table of compactions.
    fn live_records(&self, text: &str) -> Option<f64> {
        let sum = text.lines().rev().find(|line| line.trim_start().starts_with("Sum "))?;
        let words: Vec<&str> = sum.split_whitespace().collect();
        let size: f64 = words.get(2)?.parse().ok()?;
        let unit = match *words.get(3)? {
            "KB" => 1024.0,
            "MB" => 1_048_576.0,
            "GB" => 1_073_741_824.0,
            "TB" => 1_099_511_627_776.0,
            _ => return None,
        };
        let per_record = self.file_bytes / self.entries;
        (self.entries > 0.0 && size > 0.0 && per_record > 0.0).then(|| size * unit / per_record)
    }
}
