//! `SHOW GLOBAL STATUS` of MariaDB or MySQL, as clients print it: with tabs, as a table, as CSV, or
//! vertically (`\G`); variables of the server may follow.

use std::collections::BTreeMap;

use super::Seen;
use crate::workload::Durability;

/// From this many flushes per commit on, commits are taken to be durable one by one; group commit shares
/// them.
const FLUSHES_PER_COMMIT_MIN: f64 = 0.2;
/// A pool whose reads miss less often holds all data.
const MISSES_MIN: f64 = 0.001;
/// Data over the pool where it does not.
const DATA_OVER_POOL: f64 = 4.0;
const KEY_BYTES: f64 = 8.0;
const VALUE_BYTES: f64 = 200.0;

pub(super) fn parse(text: &str) -> Result<Seen, String> {
    let values = values(text);
    let value = |name: &str| values.get(name).copied();
    let count = |name: &str| value(name).unwrap_or(0.0);
    if value("Com_select").is_none() {
        return Err("it lacks Com_select: print all of SHOW GLOBAL STATUS".into());
    }
    // A look-up by key and the rows after it: ranges are look-ups with rows after them.
    let keys = count("Handler_read_key");
    let following = count("Handler_read_next") + count("Handler_read_prev");
    let selects = count("Com_select");
    let changes = count("Handler_update") + count("Handler_delete");
    // Updates and deletes look their rows up, too.
    let lookups = (keys - changes).max(0.0).min(keys);
    let per_lookup = if lookups > 0.0 { following / lookups } else { 0.0 };
    let is_ranged = per_lookup >= 1.0;
    let (hits, ranges) = if is_ranged { (lookups / 2.0, lookups / 2.0) } else { (lookups, 0.0) };
    let mut notes = vec![
        format!("rows taken as {KEY_BYTES} + {VALUE_BYTES} bytes: a status does not have their size"),
        "misses and hits of look-ups are not told apart in a status: all count as hits".to_owned(),
    ];
    if is_ranged {
        notes.push(format!(
            "{per_lookup:.0} rows follow a look-up on average: half of the look-ups count as ranges"
        ));
    }
    if selects == 0.0 && keys == 0.0 {
        notes.push("nothing was read".into());
    }
    let record = KEY_BYTES + VALUE_BYTES;
    let page = value("Innodb_page_size").unwrap_or(16384.0);
    let pool = value("Innodb_buffer_pool_pages_total").map(|pages| pages * page);
    let requests = count("Innodb_buffer_pool_read_requests");
    let miss_share = if requests > 0.0 { count("Innodb_buffer_pool_reads") / requests } else { 0.0 };
    let in_pool = value("Innodb_buffer_pool_pages_data").map(|pages| pages * page);
    let data = match miss_share < MISSES_MIN {
        true => in_pool,
        false => {
            notes.push(format!("the pool misses: data taken as {DATA_OVER_POOL} times the pool"));
            pool.map(|pool| pool * DATA_OVER_POOL)
        }
    };
    let Statements { inserts, writes } = Statements::of(&values, &mut notes);
    let commits = count("Com_commit").max(if count("Com_commit") > 0.0 { 0.0 } else { writes });
    let durability = durability(&values, commits, &mut notes);
    Ok(Seen {
        point_hits: hits,
        inserts,
        updates: count("Handler_update"),
        deletes: count("Handler_delete"),
        ranges,
        range_bytes: is_ranged.then_some(2.0 * per_lookup * record),
        records: data.map(|bytes| (bytes / record / 1.4).max(1.0)),
        key_bytes: Some(KEY_BYTES),
        value_bytes: Some(VALUE_BYTES),
        memory_bytes: pool,
        clients: value("Max_used_connections").or(value("Threads_connected")).map(|clients| clients.max(1.0)),
        durability,
        notes,
        ..Seen::default()
    })
}

/// Whether commits were made durable; `None` if the text cannot tell. That is a variable of the server, which
/// a status does not have. Many flushes show it; few may be commits that share them, or that changed nothing.
fn durability(values: &BTreeMap<&str, f64>, commits: f64, notes: &mut Vec<String>) -> Option<Durability> {
    let value = |name: &str| values.get(name).copied();
    if let Some(mode) = value("innodb_flush_log_at_trx_commit") {
        // The other modes flush about once a second.
        let lazily = Durability::Group { window_us: 1_000_000 };
        return Some(if mode == 0.0 || mode == 2.0 { lazily } else { Durability::Sync });
    }
    let flushes = value("Innodb_os_log_fsyncs").or(value("Innodb_data_fsyncs")).filter(|_| commits > 0.0)?;
    if flushes >= FLUSHES_PER_COMMIT_MIN * commits {
        return Some(Durability::Sync);
    }
    notes.push(format!(
        "{flushes:.0} flushes of {commits:.0} commits: commits share them, change nothing, or do not wait; SHOW GLOBAL VARIABLES \
         LIKE 'innodb_flush_log_at_trx_commit' after the status tells"
    ));
    None
}

/// Counts of rows and statements that changed data.
struct Statements {
    /// Rows that were inserted.
    inserts: f64,
    /// Statements that wrote.
    writes: f64,
}

impl Statements {
    fn of(values: &BTreeMap<&str, f64>, notes: &mut Vec<String>) -> Self {
        let count = |name: &str| values.get(name).copied().unwrap_or(0.0);
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<f64>();
        let insertions =
            sum(&["Com_insert", "Com_replace", "Com_insert_select", "Com_replace_select", "Com_load"]);
        // Statements on several tables have counters of their own.
        let writes = insertions + sum(&["Com_update", "Com_update_multi", "Com_delete", "Com_delete_multi"]);
        // Statements of many rows: InnoDB counts these, where it does. `Handler_write` also has those of
        // temporary tables.
        let inserts = insertions.max(count("Innodb_rows_inserted"));
        if inserts > insertions {
            notes.push(format!(
                "{inserts:.0} rows were inserted by {insertions:.0} statements: each row counts"
            ));
        }
        Self { inserts, writes }
    }
}

/// Names and numbers, whichever form they are in.
fn values(text: &str) -> BTreeMap<&str, f64> {
    let is_border = |character: char| character.is_whitespace() || "|\",;'".contains(character);
    let mut values = BTreeMap::new();
    // Of a row that is printed vertically, the name is in one line and the value in the next.
    let mut named = None;
    for line in text.lines() {
        let inner = line.trim_matches(is_border);
        if let Some(name) = inner.strip_prefix("Variable_name:") {
            named = Some(name.trim());
            continue;
        }
        let (name, number) = match (named.take(), inner.strip_prefix("Value:")) {
            (Some(name), Some(number)) => (name, number),
            _ => inner.split_once(is_border).unwrap_or_default(),
        };
        if let Ok(number) = number.trim_matches(is_border).parse::<f64>() {
            values.insert(name, number);
        }
    }
    values
}
