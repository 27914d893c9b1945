//! Scripts from a seed: tables with indexes that change, in transactions and out of them, and queries whose
//! results SQLite's own VFS is to say.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::script::{Query, Record, Sort};

const TABLES: u32 = 3;

/// Columns with their types: a key, numbers that repeat, quarters whose sums are exact, and texts of all
/// lengths.
const COLUMNS: [(&str, char); 5] = [("k", 'I'), ("a", 'I'), ("b", 'I'), ("c", 'R'), ("d", 'T')];

struct Generator {
    random: Pcg64,
    records: Vec<Record>,
    is_open: bool,
    savepoints: u32,
    labels: u32,
    next_key: i64,
}

/// A script of about so many records.
pub fn script(seed: u64, records: usize) -> Vec<Record> {
    let random = Pcg64::seed_from_u64(seed);
    let mut generator =
        Generator { random, records: Vec::new(), is_open: false, savepoints: 0, labels: 0, next_key: 0 };
    generator.records.push(Record::HashThreshold(8));
    for table in 0..TABLES {
        let end = ["", " WITHOUT ROWID", ""][table as usize];
        let sql = format!(
            "CREATE TABLE t{table}(k INTEGER PRIMARY KEY, a INTEGER, b INTEGER NOT NULL, c FLOAT, d TEXT){end}"
        );
        generator.ok(sql);
    }
    (0..TABLES).for_each(|table| generator.insert(table, 40));
    generator.ok("CREATE VIEW v AS SELECT t0.k AS k, t0.a AS a, t1.b AS b, t1.c AS c, t0.d AS d FROM t0 JOIN t1 ON t0.a = t1.b".into());
    while generator.records.len() < records {
        generator.step();
    }
    generator.end_transaction();
    generator.records
}

impl Generator {
    fn number(&mut self, end: u32) -> u32 {
        self.random.random_range(0..end)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())]
    }

    fn ok(&mut self, sql: String) {
        self.records.push(Record::Statement { fails: false, sql, line: 0 });
    }

    fn error(&mut self, sql: String) {
        self.records.push(Record::Statement { fails: true, sql, line: 0 });
    }

    fn step(&mut self) {
        let table = self.number(TABLES);
        match self.number(20) {
            0..4 => {
                let rows = self.pick(&[1, 1, 3, 30]);
                self.insert(table, rows);
            }
            4..6 => self.update(table),
            6 => self.delete(table),
            7 => self.transaction(),
            8 => self.structure(table),
            9 => self.refused(table),
            _ => self.query(table),
        }
    }

    /// A text that is short, or long enough for pages of its own.
    fn text(&mut self) -> String {
        let number = self.number(1000);
        match self.number(8) {
            0 => "NULL".into(),
            1 => format!("hex(zeroblob({}))", number * 9),
            2 => "''".into(),
            _ => format!("'text {number}'"),
        }
    }

    fn insert(&mut self, table: u32, rows: u32) {
        if self.number(6) == 0 {
            let (from, begin) = (self.number(TABLES), self.next_key);
            self.next_key += 1_000_000;
            self.ok(format!(
                "INSERT INTO t{table} SELECT {begin} + row_number() OVER (ORDER BY k), b, coalesce(a, 7), c, d FROM t{from} ORDER BY k LIMIT 20"
            ));
            return;
        }
        let mut values = Vec::new();
        for _ in 0..rows {
            let (a, b, quarters, text) = (self.number(50), self.number(100), self.number(4000), self.text());
            self.next_key += i64::from(self.number(5)) + 1;
            let a = if a == 0 { "NULL".into() } else { a.to_string() };
            values.push(format!("({}, {a}, {b}, {}, {text})", self.next_key, f64::from(quarters) / 4.0));
        }
        self.ok(format!("INSERT INTO t{table}(k, a, b, c, d) VALUES {}", values.join(", ")));
    }

    fn update(&mut self, table: u32) {
        let (condition, text) = (self.condition(), self.text());
        let change = match self.number(4) {
            0 => "b = b + 1".into(),
            1 => "a = NULL, c = c * 0.5".into(),
            2 => "c = c + a".into(),
            _ => format!("d = {text}"),
        };
        self.ok(format!("UPDATE t{table} SET {change} WHERE {condition}"));
    }

    fn delete(&mut self, table: u32) {
        let condition = self.condition();
        self.ok(format!("DELETE FROM t{table} WHERE {condition} AND k % 3 = {}", table % 3));
    }

    fn end_transaction(&mut self) {
        if self.is_open {
            let end = self.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]);
            self.ok(end.into());
        }
        (self.is_open, self.savepoints) = (false, 0);
    }

    fn transaction(&mut self) {
        match (self.is_open, self.number(3)) {
            (false, _) => {
                let begin = self.pick(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]);
                self.ok(begin.into());
                self.is_open = true;
            }
            (true, 0) => {
                self.savepoints += 1;
                self.ok(format!("SAVEPOINT s{}", self.savepoints));
            }
            (true, 1) if self.savepoints > 0 => {
                let end = self.pick(&["ROLLBACK TO", "RELEASE"]);
                self.ok(format!("{end} s{}", self.savepoints));
                self.savepoints -= u32::from(end == "RELEASE");
            }
            (true, _) => self.end_transaction(),
        }
    }

    fn structure(&mut self, table: u32) {
        let column = self.pick(&["a", "b", "c", "d", "b, a", "c, k"]);
        let index = format!("i{table}_{}", self.number(3));
        let sql = match self.number(8) {
            0..3 => format!("CREATE INDEX IF NOT EXISTS {index} ON t{table}({column})"),
            3 => format!("DROP INDEX IF EXISTS {index}"),
            4 => "ANALYZE".into(),
            5 => "REINDEX".into(),
            6 if !self.is_open => "VACUUM".into(),
            _ => format!("CREATE TEMP TABLE IF NOT EXISTS x{table} AS SELECT * FROM t{table}"),
        };
        self.ok(sql);
    }

    fn refused(&mut self, table: u32) {
        let sql = match self.number(4) {
            0 => format!(
                "INSERT INTO t{table} SELECT k, a, b, c, d FROM t{table} UNION ALL SELECT 1, 1, NULL, 1, 1"
            ),
            1 => format!("INSERT INTO t{table}(k, a) VALUES (-1, 5)"),
            2 => "SELECT k FROM nowhere".into(),
            _ => format!("CREATE TABLE t{table}(k)"),
        };
        self.error(sql);
    }

    fn condition(&mut self) -> String {
        let (number, wider) = (self.number(100), self.number(50));
        match self.number(8) {
            0 => format!("a = {}", number / 2),
            1 => format!("b BETWEEN {number} AND {}", number + wider),
            2 => format!("c > {}", number * 10),
            3 => "d IS NOT NULL".into(),
            4 => format!("d LIKE 'text {}%'", number / 10),
            5 => format!("k % 7 = {} OR b < {wider}", number % 7),
            6 => format!("a IN (SELECT b FROM t1 WHERE b > {number})"),
            _ => format!("(a IS NULL OR b <> {number}) AND c < {}", number * 20),
        }
    }

    /// Rows are in an order that the query says wholly, or are sorted afterwards.
    fn query(&mut self, table: u32) {
        let condition = self.condition();
        let from = if self.number(6) == 0 { "v".into() } else { format!("t{table}") };
        let (types, sql, ordered) = match self.number(6) {
            0 => {
                let sql =
                    format!("SELECT count(*), sum(b), avg(c), min(d), max(k) FROM {from} WHERE {condition}");
                ("IIRTI".into(), sql, Some(Sort::No))
            }
            1 => {
                let sql = format!("SELECT a, count(*), sum(c) FROM {from} WHERE {condition} GROUP BY a");
                ("IIR".into(), sql, None)
            }
            2 => {
                let other = self.number(TABLES);
                let sql = format!(
                    "SELECT x.k, y.b, length(y.d) FROM t{table} AS x JOIN t{other} AS y ON x.a = y.a WHERE x.b < 40"
                );
                ("III".into(), sql, None)
            }
            3 => {
                let other = self.number(TABLES);
                let word = self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                let sql =
                    format!("SELECT a, b FROM t{table} WHERE {condition} {word} SELECT b, a FROM t{other}");
                ("II".into(), sql, None)
            }
            _ => self.columns(&from, &condition),
        };
        let sorted = self.pick(&[Sort::Rows, Sort::Values]);
        self.labels += 1;
        let label = (self.number(4) == 0).then(|| format!("label-{}", self.labels));
        let query = Query { types, sort: ordered.unwrap_or(sorted), label, sql };
        if query.label.is_some() {
            self.records.push(Record::Query { query: query.clone(), expected: None, line: 0 });
        }
        self.records.push(Record::Query { query, expected: None, line: 0 });
    }

    /// Some columns, with or without an order.
    fn columns(&mut self, from: &str, condition: &str) -> (String, String, Option<Sort>) {
        let chosen: Vec<(&str, char)> = (0..1 + self.number(5)).map(|_| self.pick(&COLUMNS)).collect();
        let types = chosen.iter().map(|(_, kind)| *kind).collect();
        let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
        let mut sql = format!("SELECT {} FROM {from} WHERE {condition}", names.join(", "));
        if self.number(2) == 0 {
            return (types, sql, None);
        }
        let places: Vec<String> = (1..=names.len()).map(|place| place.to_string()).collect();
        sql += &format!(" ORDER BY {} LIMIT {}", places.join(" DESC, "), 1 + self.number(200));
        (types, sql, Some(Sort::No))
    }
}
