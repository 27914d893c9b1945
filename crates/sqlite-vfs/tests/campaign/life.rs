//! A drawn life of a database, and what may be found of it after a cut.
//!
//! Swarm testing: a life draws which features it has at all, and how large everything is.

use std::collections::BTreeMap;

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::Connection;

use crate::medium::{Medium, open};
use crate::tape::Event;

/// Keys and values.
pub type Records = BTreeMap<i64, Vec<u8>>;

const MODES: [&str; 4] = ["delete", "truncate", "persist", "wal"];

/// Each place of pages, with and without an aligned log and checksums, and none.
fn layouts() -> Vec<String> {
    let mut layouts = vec!["plain".to_owned()];
    for hot in ["hot:65536:32768", "hot:4096:0", "hot:5120:1536"] {
        for log in ["", "+log:4096", "+log:65536"] {
            for sums in ["", "+checksums"] {
                layouts.push(format!("{hot}{log}{sums}"));
            }
        }
    }
    layouts
}

/// What a life does, if at all.
#[derive(Debug)]
struct Features {
    vacuums: bool,
    resizes: bool,
    modes: bool,
    checkpoints: bool,
    reopens: bool,
    rolls_back: bool,
    removes: bool,
    split: bool,
    /// A second database takes part in each transaction.
    pair: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Life {
    layout: String,
    mode: &'static str,
    page_bytes: u32,
    cache_pages: u32,
    value_bytes_max: usize,
    changes_max: u32,
    steps: u32,
    features: Features,
}

impl Life {
    pub fn draw(seed: u64) -> (Self, Pcg64) {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut feature = || random.random_range(0..3) == 0;
        let mut features = Features {
            vacuums: feature(),
            resizes: feature(),
            modes: feature(),
            checkpoints: feature(),
            reopens: feature(),
            rolls_back: feature(),
            removes: feature(),
            split: feature(),
            pair: feature(),
        };
        // SQLite promises nothing of several databases if one of them has a log.
        let mode = MODES[random.random_range(0..if features.pair { 3 } else { 4 })];
        features.resizes |= features.pair && features.vacuums;
        let life = Self {
            layout: layouts().choose(&mut random).unwrap().clone(),
            mode,
            page_bytes: 512 << random.random_range(0..8),
            cache_pages: [1, 10, 1000][random.random_range(0..3)],
            value_bytes_max: 1 << random.random_range(3..14),
            changes_max: 1 << random.random_range(1..6),
            steps: random.random_range(3..30),
            features,
        };
        (life, random)
    }

    /// The same with plain databases.
    pub fn plain(self) -> Self {
        let features = Features { split: false, ..self.features };
        Self { layout: "plain".into(), features, ..self }
    }

    /// What connections ask for, whatever the database is.
    fn connect(&self, medium: &Medium) -> Connection {
        let split = if self.features.split { "&split=4096" } else { "" };
        let connection = open(medium, "one", &format!("{}{split}", self.layout));
        let setup = format!("PRAGMA synchronous = extra; PRAGMA cache_size = {}", self.cache_pages);
        connection.execute_batch(&setup).unwrap();
        connection.query_row("PRAGMA wal_autocheckpoint = 8", [], |_| Ok(())).unwrap();
        if self.features.pair {
            attach(&connection, medium, "plain");
        }
        connection
    }

    /// Lives, and gives the records after each transaction, from none on.
    pub fn live(&self, medium: &Medium, random: &mut Pcg64) -> Vec<Records> {
        let mut states = vec![Records::new()];
        let mut connection = self.connect(medium);
        let setup = format!(
            "PRAGMA page_size = {}; PRAGMA auto_vacuum = {}",
            self.page_bytes,
            random.random_range(0..3)
        );
        connection.execute_batch(&setup).unwrap();
        set_mode(&connection, self.mode);
        for database in self.databases() {
            connection
                .execute_batch(&format!(
                    "CREATE TABLE {database}.pairs (key INTEGER PRIMARY KEY, value BLOB)"
                ))
                .unwrap();
        }
        for _ in 0..self.steps {
            match random.random_range(0..10) {
                0 if self.features.vacuums => {
                    if self.features.resizes {
                        let size = 512 << random.random_range(0..8);
                        connection.execute_batch(&format!("PRAGMA page_size = {size}")).unwrap();
                    }
                    connection.execute_batch("VACUUM").unwrap();
                }
                1 if self.features.modes && !self.features.pair => {
                    set_mode(&connection, MODES[random.random_range(0..4)]);
                }
                2 if self.features.checkpoints => {
                    let kind = ["passive", "full", "restart", "truncate"][random.random_range(0..4)];
                    connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |_| Ok(())).unwrap();
                    connection.execute_batch("PRAGMA incremental_vacuum").unwrap();
                }
                3 if self.features.reopens => {
                    drop(connection);
                    connection = self.connect(medium);
                }
                _ => self.transaction(&connection, medium, &mut states, random),
            }
        }
        states
    }

    fn databases(&self) -> &[&str] {
        if self.features.pair { &["main", "two"] } else { &["main"] }
    }

    fn transaction(
        &self,
        connection: &Connection,
        medium: &Medium,
        states: &mut Vec<Records>,
        random: &mut Pcg64,
    ) {
        let mut records = states.last().unwrap().clone();
        connection.execute_batch("BEGIN").unwrap();
        for _ in 0..random.random_range(1..=self.changes_max) {
            let key = random.random_range(0..100_i64);
            if self.features.removes && random.random_range(0..3) == 0 {
                let end = key + random.random_range(0..40);
                for database in self.databases() {
                    let sql = format!("DELETE FROM {database}.pairs WHERE key BETWEEN ?1 AND ?2");
                    connection.execute(&sql, [key, end]).unwrap();
                }
                records.retain(|other, _| !(key..=end).contains(other));
                continue;
            }
            let value = vec![random.random::<u8>(); random.random_range(0..self.value_bytes_max)];
            for database in self.databases() {
                connection
                    .execute(&format!("REPLACE INTO {database}.pairs VALUES (?1, ?2)"), (key, &value))
                    .unwrap();
            }
            records.insert(key, value);
        }
        if self.features.rolls_back && random.random_range(0..4) == 0 {
            connection.execute_batch("ROLLBACK").unwrap();
            return;
        }
        let number = states.len();
        medium.note(Event::Submitted(number));
        connection.execute_batch("COMMIT").unwrap();
        medium.note(Event::Acknowledged(number));
        states.push(records);
    }

    /// Has SQLite recover what is left, and nothing else.
    pub fn recover(&self, medium: &Medium) {
        let connection = open(medium, "one", &self.layout);
        // What fails here fails when it is compared.
        let _ = connection.query_row("PRAGMA user_version", [], |_| Ok(()));
        if self.features.pair {
            attach(&connection, medium, "plain");
            let _ = connection.query_row("PRAGMA two.user_version", [], |_| Ok(()));
        }
    }

    /// Compares what a medium holds with the states, of which it may be one from `least` to `most`.
    pub fn compare(&self, medium: &Medium, states: &[Records], least: usize, most: usize, told: &str) {
        let told = format!("{told}, {least} to {most} of {self:?}");
        let connection = open(medium, "one", &self.layout);
        if self.features.pair {
            attach(&connection, medium, "plain");
        }
        let mut found = Vec::new();
        for database in self.databases() {
            let check: String = connection
                .query_row(&format!("PRAGMA {database}.integrity_check"), [], |row| row.get(0))
                .unwrap_or_else(|error| panic!("{told}: {database}: {error}"));
            assert_eq!(check, "ok", "{told}: {database}");
            let records = records(&connection, database).unwrap_or_else(|error| panic!("{told}: {error}"));
            found.push(records);
        }
        let state = (least..=most).rev().find(|state| states[*state] == found[0]);
        let others = || states.iter().position(|state| *state == found[0]);
        assert!(state.is_some(), "{told}: found state {:?}", others());
        assert!(found.iter().all(|records| *records == found[0]), "{told}: the databases differ");
        // It can be worked with.
        connection
            .execute_batch("CREATE TABLE IF NOT EXISTS pairs (key INTEGER PRIMARY KEY, value BLOB); REPLACE INTO pairs VALUES (-1, zeroblob(3000))")
            .unwrap_or_else(|error| panic!("{told}: {error}"));
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "{told}: after another transaction");
    }
}

fn set_mode(connection: &Connection, mode: &str) {
    let now: String =
        connection.query_row(&format!("PRAGMA main.journal_mode = {mode}"), [], |row| row.get(0)).unwrap();
    assert_eq!(now, mode);
}

fn attach(connection: &Connection, medium: &Medium, layout: &str) {
    let uri = medium.uri("two", layout);
    connection.execute_batch(&format!("ATTACH '{uri}' AS two; PRAGMA two.synchronous = extra")).unwrap();
}

fn records(connection: &Connection, database: &str) -> rusqlite::Result<Records> {
    let tables: i64 = connection.query_row(
        &format!("SELECT count(*) FROM {database}.sqlite_schema WHERE name = 'pairs'"),
        [],
        |row| row.get(0),
    )?;
    if tables == 0 {
        return Ok(Records::new());
    }
    let mut statement = connection.prepare(&format!("SELECT key, value FROM {database}.pairs"))?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
