//! Results of `flashgrain bench ... --json` (one object) and of `flashgrain-bench` (a line of JSON per run;
//! the last one counts).

use serde_json::Value;

use super::Seen;
use crate::workload::Durability;

pub(super) fn parse(text: &str) -> Result<Seen, String> {
    let value = serde_json::from_str::<Value>(text).or_else(|whole| {
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        serde_json::from_str(last).map_err(|_| format!("it is no JSON ({whole})"))
    })?;
    if value.get("operation").is_some() {
        of_experiment(&value)
    } else if value.get("kinds").is_some() {
        of_run(&value)
    } else {
        Err("its JSON has neither `operation` nor `kinds`".into())
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// One operation on the store alone.
fn of_experiment(value: &Value) -> Result<Seen, String> {
    let count = number(value, "operations").ok_or("it lacks `operations`")?;
    let mut seen = Seen {
        records: number(value, "records"),
        key_bytes: number(value, "key_bytes"),
        value_bytes: number(value, "value_bytes"),
        memory_bytes: number(value, "cache_bytes"),
        clients: number(value, "tasks"),
        skew: skew(word(value, "distribution")),
        ..Seen::default()
    };
    let operation = word(value, "operation");
    if operation.contains("lookup") || operation.contains("look-up") || operation.contains("reads") {
        seen.point_hits = count;
        // Look-ups say nothing about commits: the store's default promise is kept.
    } else if operation.contains("update") || operation.contains("commit") {
        seen.updates = count;
        seen.durability = durability(word(value, "durability"));
    } else if operation.contains("insert") || operation.contains("fill") {
        seen.inserts = count;
        seen.durability = durability(word(value, "durability"));
    } else if operation.contains("mix") {
        return Err("a mixed run does not tell its shares: use a result of flashgrain-bench".into());
    } else {
        return Err(format!("its operation {operation:?} is none that is known"));
    }
    Ok(seen)
}

/// A run of one engine.
fn of_run(value: &Value) -> Result<Seen, String> {
    let kinds = value.get("kinds").and_then(Value::as_object).ok_or("it lacks `kinds`")?;
    let rate = |name: &str| kinds.get(name).and_then(|kind| number(kind, "operations_per_s")).unwrap_or(0.0);
    let known = ["read", "update", "insert", "scan", "modify"];
    if let Some(other) = kinds.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("its kind of operation {other:?} is none that is known"));
    }
    let contents = value.get("contents").and_then(|contents| contents.get("records"));
    let contents = contents.ok_or("it has no table of records in `contents`")?;
    let (records, key_bytes) = (number(contents, "count"), number(contents, "key_bytes"));
    let value_bytes = number(contents, "value_bytes");
    let scanned = kinds.get("scan").and_then(|kind| number(kind, "records_per_s"));
    let record = key_bytes.zip(value_bytes).map(|(key, value)| key + value);
    let per_scan = scanned.zip(record).map(|(records, record)| records / rate("scan").max(1e-9) * record);
    Ok(Seen {
        // A modification is a read and an update.
        point_hits: rate("read") + rate("modify"),
        updates: rate("update") + rate("modify"),
        inserts: rate("insert"),
        ranges: rate("scan"),
        range_bytes: per_scan,
        records,
        key_bytes,
        value_bytes,
        memory_bytes: number(value, "cache_bytes"),
        clients: number(value, "clients"),
        skew: skew(word(value, "workload")),
        durability: durability(word(value, "durability")),
        ..Seen::default()
    })
}

fn skew(text: &str) -> Option<f64> {
    if text.contains("uniform") {
        return Some(0.0);
    }
    let after = text.to_lowercase().split_once("zipf")?.1.to_owned();
    let digits: String = after
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse().ok().filter(|skew| (0.0..=4.0).contains(skew))
}

fn durability(text: &str) -> Option<Durability> {
    match text.to_lowercase().as_str() {
        "sync" | "full" => Some(Durability::Sync),
        "buffered" | "none" => Some(Durability::None),
        _ => None,
    }
}
