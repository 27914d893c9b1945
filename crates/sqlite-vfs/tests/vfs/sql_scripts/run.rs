//! Scripts on a connection.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::script::{Query, Record, Sort, hashed, told};

/// How many records go by before the connection is closed and opened again.
const RECORDS_PER_CONNECTION: usize = 60;

/// Runs a script, with a new connection now and then where no transaction is open, and gives it back with the
/// results that it has. What differs from a result in the script comes as a sentence.
pub fn run(connect: &dyn Fn() -> Connection, records: &[Record]) -> Result<Vec<Record>, String> {
    let mut connection = connect();
    let (mut threshold, mut labels, mut since) = (0, HashMap::new(), 0);
    let mut done = Vec::new();
    for record in records {
        since += 1;
        if since > RECORDS_PER_CONNECTION && connection.is_autocommit() {
            // The last connection closes a log, and removes it.
            drop(connection);
            (connection, since) = (connect(), 0);
        }
        done.push(match record {
            Record::HashThreshold(count) => {
                threshold = *count;
                record.clone()
            }
            Record::Statement { fails, sql, line } => {
                let outcome = connection.execute_batch(sql);
                if outcome.is_err() != *fails {
                    return Err(format!("line {line}: {outcome:?} of {sql}"));
                }
                record.clone()
            }
            Record::Query { query, expected, line } => {
                let values = values(&connection, query)
                    .map_err(|error| format!("line {line}: {error} of {}", query.sql))?;
                let hash = hashed(&values);
                if let Some(label) = &query.label {
                    let first = labels.entry(label.clone()).or_insert_with(|| hash.clone());
                    if *first != hash {
                        return Err(format!("line {line}: {hash} with the label {label}, first {first}"));
                    }
                }
                if let Some(expected) =
                    expected.as_ref().filter(|expected| **expected != values && **expected != [hash.clone()])
                {
                    return Err(format!("line {line}: {values:?}, expected {expected:?} of {}", query.sql));
                }
                let expected = Some(told(values, threshold));
                Record::Query { query: query.clone(), expected, line: *line }
            }
        });
    }
    let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if found == "ok" { Ok(done) } else { Err(found) }
}

/// The values of a query, in the order in which they are compared.
fn values(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&query.sql)?;
    let mut rows = statement.query([])?;
    let mut found: Vec<Vec<String>> = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = query.types.chars().enumerate();
        found.push(
            columns
                .map(|(column, kind)| Ok(shown(row.get_ref(column)?, kind)))
                .collect::<Result<_, rusqlite::Error>>()?,
        );
    }
    if query.sort == Sort::Rows {
        found.sort();
    }
    let mut values: Vec<String> = found.into_iter().flatten().collect();
    if query.sort == Sort::Values {
        values.sort();
    }
    Ok(values)
}

/// A value as scripts have it.
fn shown(value: ValueRef<'_>, kind: char) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match (kind, value) {
        (_, ValueRef::Null) => "NULL".into(),
        // The original takes 32 bits.
        ('I', ValueRef::Integer(number)) => (number as i32).to_string(),
        ('I', ValueRef::Real(number)) => (number as i64 as i32).to_string(),
        ('I', ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            (prefix::<f64>(&text(bytes)) as i64 as i32).to_string()
        }
        ('R', ValueRef::Integer(number)) => format!("{:.3}", number as f64),
        ('R', ValueRef::Real(number)) => format!("{number:.3}"),
        ('R', ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => format!("{:.3}", prefix::<f64>(&text(bytes))),
        (_, ValueRef::Integer(number)) => number.to_string(),
        (_, ValueRef::Real(number)) => format!("{number:?}"),
        (_, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) if bytes.is_empty() => "(empty)".into(),
        (_, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => bytes
            .iter()
            .map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '@' })
            .collect(),
    }
}

/// The number with which a text begins, or zero.
fn prefix<T: std::str::FromStr + Default>(text: &str) -> T {
    let text = text.trim_start();
    (1..=text.len())
        .rev()
        .filter_map(|end| text.get(..end))
        .find_map(|text| text.parse().ok())
        .unwrap_or_default()
}
