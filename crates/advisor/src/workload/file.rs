//! The workload file: TOML whose fields are all known and units are in the names.

use flashgrain_settings::parse_bytes;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Durability, Lifetime, Operations, Records, Workload, checked};
use crate::Error;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(deserialize_with = "size")]
    memory_bytes: u64,
    #[serde(default = "one_client")]
    clients: i64,
    #[serde(default)]
    skew: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_per_second: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cores: Option<u32>,
    operations: OperationsTable,
    records: RecordsTable,
    #[serde(default)]
    durability: DurabilityTable,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime: Option<LifetimeTable>,
}

fn one_client() -> i64 {
    1
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OperationsTable {
    point_hits: f64,
    point_misses: f64,
    inserts: f64,
    updates: f64,
    deletes: f64,
    ranges: f64,
    #[serde(deserialize_with = "size", skip_serializing_if = "is_zero")]
    range_bytes: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordsTable {
    count: u64,
    #[serde(deserialize_with = "size")]
    key_bytes: u64,
    #[serde(deserialize_with = "size")]
    value_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DurabilityTable {
    promise: Promise,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_us: Option<u64>,
}

/// Without a word about durability, none may be given up.
impl Default for DurabilityTable {
    fn default() -> Self {
        Self { promise: Promise::Sync, window_us: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Promise {
    Sync,
    Group,
    None,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LifetimeTable {
    drive_writes_per_day: f64,
    #[serde(deserialize_with = "size")]
    drive_bytes: u64,
}

/// A size as a number of bytes or as people type it.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Number(u64),
        Text(String),
    }
    match Size::deserialize(deserializer) {
        Ok(Size::Number(bytes)) => Ok(bytes),
        Ok(Size::Text(text)) => parse_bytes(&text).map_err(serde::de::Error::custom),
        Err(_) => Err(serde::de::Error::custom(
            "expected a number of bytes from 0 on, or a text such as \"4KiB\" or \"1.5GiB\"",
        )),
    }
}

/// A workload from the TOML text of its file.
///
/// # Errors
/// [`Error::Syntax`] if it is no TOML or has an unknown field, [`Error::Field`] if a value is out of its
/// range or contradicts another one.
pub fn parse(text: &str) -> Result<Workload, Error> {
    let file: File = toml::from_str(text).map_err(|error| Error::Syntax(error.to_string()))?;
    let durability = match (file.durability.promise, file.durability.window_us) {
        (Promise::Group, Some(window_us)) => Durability::Group { window_us },
        (Promise::Group, None) => {
            let allowed = "1 to 60000000, as the promise \"group\" needs one";
            return Err(Error::field("durability.window_us", "missing", allowed));
        }
        (_, Some(window_us)) => {
            let allowed = "nothing, unless durability.promise is \"group\"";
            return Err(Error::field("durability.window_us", window_us, allowed));
        }
        (Promise::Sync, None) => Durability::Sync,
        (Promise::None, None) => Durability::None,
    };
    let clients =
        u32::try_from(file.clients).map_err(|_| Error::field("clients", file.clients, "1 to 65536"))?;
    let operations = Operations {
        point_hits: file.operations.point_hits,
        point_misses: file.operations.point_misses,
        inserts: file.operations.inserts,
        updates: file.operations.updates,
        deletes: file.operations.deletes,
        ranges: file.operations.ranges,
        range_bytes: file.operations.range_bytes,
    };
    checked(Workload {
        name: file.name.unwrap_or_else(|| "workload".to_owned()),
        operations,
        records: Records {
            count: file.records.count,
            key_bytes: file.records.key_bytes,
            value_bytes: file.records.value_bytes,
        },
        memory_bytes: file.memory_bytes,
        skew: file.skew,
        clients,
        rate_per_second: file.rate_per_second,
        cores: file.cores,
        durability,
        lifetime: file.lifetime.map(|lifetime| Lifetime {
            drive_writes_per_day: lifetime.drive_writes_per_day,
            drive_bytes: lifetime.drive_bytes,
        }),
        assumptions: Vec::new(),
    })
}

/// The workload as the text of a file that [`parse`] reads.
pub fn print(workload: &Workload) -> String {
    let (promise, window_us) = match workload.durability {
        Durability::Sync => (Promise::Sync, None),
        Durability::Group { window_us } => (Promise::Group, Some(window_us)),
        Durability::None => (Promise::None, None),
    };
    let Operations { point_hits, point_misses, inserts, updates, deletes, ranges, range_bytes } =
        workload.operations;
    let file = File {
        name: Some(workload.name.clone()),
        memory_bytes: workload.memory_bytes,
        clients: i64::from(workload.clients),
        skew: workload.skew,
        rate_per_second: workload.rate_per_second,
        cores: workload.cores,
        operations: OperationsTable {
            point_hits,
            point_misses,
            inserts,
            updates,
            deletes,
            ranges,
            range_bytes,
        },
        records: RecordsTable {
            count: workload.records.count,
            key_bytes: workload.records.key_bytes,
            value_bytes: workload.records.value_bytes,
        },
        durability: DurabilityTable { promise, window_us },
        lifetime: workload.lifetime.map(|lifetime| LifetimeTable {
            drive_writes_per_day: lifetime.drive_writes_per_day,
            drive_bytes: lifetime.drive_bytes,
        }),
    };
    let assumed: String = workload.assumptions.iter().map(|text| format!("# {text}\n")).collect();
    // Every field is a number, a text or a table of these, and tables come last.
    assumed + &toml::to_string(&file).unwrap_or_default()
}
