//! Properties of a database.

use std::ffi::c_char;
use std::fmt::Write;
use std::slice;

use flashgrain::{LsmStats, Readable};

use super::database::Database;
use crate::argument;
use crate::call::{catching, quietly};
use crate::memory;

const MIB: f64 = (1 << 20) as f64;

/// A property as a text of `malloc`; null if there is none of that name.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_property_value(database: Option<&Database>, name: *const c_char) -> *mut c_char {
    let value = catching(|| {
        // SAFETY: LevelDB's contract: a text with its end.
        let name = unsafe { argument::utf8(name, "name") }.ok()?;
        memory::copy_text(property(database?, name.strip_prefix("leveldb.")?)?.as_bytes()).ok()
    });
    value.ok().flatten().unwrap_or(std::ptr::null_mut())
}

fn property(database: &Database, name: &str) -> Option<String> {
    let lsm = || database.tree.lsm_stats();
    match name {
        "stats" => lsm().map(|stats| levels(&stats)),
        "approximate-memory-usage" => Some(database.db.stats().cache.budget_bytes.to_string()),
        _ => {
            let level: usize = name.strip_prefix("num-files-at-level")?.parse().ok()?;
            Some(lsm()?.levels.get(level).map_or(0, |level| level.tables).to_string())
        }
    }
}

/// A line for each level.
fn levels(stats: &LsmStats) -> String {
    let mut text = String::from("Level  Tables  Size (MiB)  Read (MiB)  Written (MiB)\n");
    for (number, level) in stats.levels.iter().enumerate() {
        let mib = |bytes: u64| bytes as f64 / MIB;
        let (size, read, written) = (mib(level.bytes), mib(level.read_bytes), mib(level.written_bytes));
        let _infallible =
            writeln!(text, "{number:>5} {:>7} {size:>11.1} {read:>11.1} {written:>14.1}", level.tables);
    }
    text
}

/// Bytes of the keys and values in each range, which are read for that.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_approximate_sizes(
    database: Option<&Database>,
    count: i32,
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
    sizes: *mut u64,
) {
    let Ok(count) = usize::try_from(count) else { return };
    if count == 0
        || [starts.is_null(), start_lengths.is_null(), limits.is_null(), limit_lengths.is_null()]
            .contains(&true)
        || sizes.is_null()
    {
        return;
    }
    // SAFETY: LevelDB's contract: each array has `count` elements, until the function returns.
    let (starts, start_lengths) =
        unsafe { (slice::from_raw_parts(starts, count), slice::from_raw_parts(start_lengths, count)) };
    // SAFETY: the same.
    let (limits, limit_lengths) =
        unsafe { (slice::from_raw_parts(limits, count), slice::from_raw_parts(limit_lengths, count)) };
    for at in 0..count {
        let mut bytes = 0;
        quietly(|| {
            // SAFETY: LevelDB's contract: the bytes are there until the function returns.
            let start = unsafe { argument::bytes(starts[at].cast(), start_lengths[at], "start") };
            // SAFETY: the same.
            let limit = unsafe { argument::bytes(limits[at].cast(), limit_lengths[at], "limit") };
            if let (Some(database), Ok(start), Ok(limit)) = (database, start, limit) {
                bytes = size(database, start, limit);
            }
        });
        // SAFETY: the same; it need not be initialized.
        unsafe { sizes.add(at).write(bytes) };
    }
}

/// Bytes of keys and values; of those that can be read.
fn size(database: &Database, start: &[u8], limit: &[u8]) -> u64 {
    let records = database.db.range(&database.tree, start..limit);
    let records = records.into_iter().flatten().map_while(Result::ok);
    records.map(|(key, value)| (key.len() + value.len()) as u64).sum()
}
