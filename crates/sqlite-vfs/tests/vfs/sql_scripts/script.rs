//! Scripts in the format of sqllogictest: records of statements and queries, with blank lines between.
//!
//! ```text
//! hash-threshold 8
//!
//! statement ok|error
//! SQL
//!
//! [skipif|onlyif DATABASE]
//! query TYPES nosort|rowsort|valuesort [LABEL]
//! SQL
//! ----
//! a value a line, or `N values hashing to MD5`
//!
//! halt
//! ```

use super::md5::md5;

/// The name by which scripts know SQLite.
const DATABASE: &str = "sqlite";

/// What a script asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Statement {
        fails: bool,
        sql: String,
        line: usize,
    },
    Query {
        query: Query,
        expected: Option<Vec<String>>,
        line: usize,
    },
    /// More values than this are hashed; 0 for never.
    HashThreshold(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// A letter for each column: `T`, `I` or `R`.
    pub types: String,
    pub sort: Sort,
    /// Queries with the same one have the same results.
    pub label: Option<String>,
    pub sql: String,
}

/// How values are ordered before they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    No,
    Rows,
    Values,
}

impl Sort {
    fn word(self) -> &'static str {
        match self {
            Self::No => "nosort",
            Self::Rows => "rowsort",
            Self::Values => "valuesort",
        }
    }
}

/// The records of a script.
///
/// # Panics
/// With the line, if it is no script.
pub fn parse(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = text.lines().map(str::trim_end).enumerate().peekable();
    let mut is_for_others = false;
    while let Some((number, line)) = lines.next() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut block = || {
            let mut block: Vec<&str> = Vec::new();
            while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
                block.push(line);
            }
            block
        };
        let record = match words.as_slice() {
            [] => continue,
            ["halt"] if is_for_others => None,
            ["halt"] => return records,
            ["skipif", database] => {
                is_for_others |= *database == DATABASE;
                continue;
            }
            ["onlyif", database] => {
                is_for_others |= *database != DATABASE;
                continue;
            }
            ["hash-threshold", count] => Some(Record::HashThreshold(count.parse().unwrap())),
            ["statement", outcome @ ("ok" | "error"), ..] => {
                let (fails, sql) = (*outcome == "error", block().join("\n"));
                Some(Record::Statement { fails, sql, line: number + 1 })
            }
            ["query", types, rest @ ..] => Some(query(types, rest, &block(), number + 1)),
            _ => panic!("line {}: `{line}` begins no record", number + 1),
        };
        records.extend(record.filter(|_| !is_for_others));
        is_for_others = false;
    }
    records
}

fn query(types: &str, rest: &[&str], block: &[&str], line: usize) -> Record {
    let sort = match rest.first() {
        None | Some(&"nosort") => Sort::No,
        Some(&"rowsort") => Sort::Rows,
        Some(&"valuesort") => Sort::Values,
        Some(other) => panic!("line {line}: `{other}` is no way to sort"),
    };
    let mut parts = block.splitn(2, |line| *line == "----");
    let sql = parts.next().unwrap_or_default().join("\n");
    let expected = parts.next().map(|values| values.iter().map(ToString::to_string).collect());
    let label = rest.get(1).map(ToString::to_string);
    Record::Query { query: Query { types: types.into(), sort, label, sql }, expected, line }
}

/// A script of these records.
pub fn write(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        text += &match record {
            Record::HashThreshold(count) => format!("hash-threshold {count}\n\n"),
            Record::Statement { fails, sql, .. } => {
                format!("statement {}\n{sql}\n\n", if *fails { "error" } else { "ok" })
            }
            Record::Query { query, expected, .. } => {
                let label = query.label.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
                let results = expected.iter().map(|values| format!("----\n{}\n", values.join("\n")));
                let results = results.collect::<String>();
                format!("query {} {}{label}\n{}\n{results}\n", query.types, query.sort.word(), query.sql)
            }
        };
    }
    text
}

/// What a script says of so many values: themselves, or their hash if they are more than the threshold.
pub fn told(values: Vec<String>, threshold: usize) -> Vec<String> {
    if threshold == 0 || values.len() <= threshold {
        return values;
    }
    vec![hashed(&values)]
}

/// The hash of values.
pub fn hashed(values: &[String]) -> String {
    let all: String = values.iter().flat_map(|value| [value.as_str(), "\n"]).collect();
    format!("{} values hashing to {}", values.len(), md5(all.as_bytes()))
}

#[test]
fn a_script_reads_back() {
    let text = "# a comment\nhash-threshold 8\n\nskipif mysql # not there\nstatement ok\nCREATE TABLE\nt(a)\n\n\
                onlyif mysql\nstatement ok\nother\n\nstatement error\nnonsense\n\nquery TI rowsort x1\nSELECT 1\n\
                FROM t\n----\na\n1\n\nquery I\nSELECT 2\n\nhalt\n\nstatement ok\nnever\n";
    let records = parse(text);
    assert_eq!(records.len(), 5, "{records:?}");
    assert!(
        matches!(&records[1], Record::Statement { fails: false, sql, line: 5 } if sql == "CREATE TABLE\nt(a)")
    );
    let Record::Query { query, expected, .. } = &records[3] else { panic!("{records:?}") };
    assert_eq!((query.types.as_str(), query.sort, query.label.as_deref()), ("TI", Sort::Rows, Some("x1")));
    assert_eq!((query.sql.as_str(), expected.as_ref().unwrap().len()), ("SELECT 1\nFROM t", 2));
    let without_lines = |records: &[Record]| write(records);
    assert_eq!(without_lines(&parse(&write(&records))), write(&records));
}
