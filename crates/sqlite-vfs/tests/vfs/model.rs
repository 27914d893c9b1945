//! Random transactions beside an ordered map.

use std::collections::BTreeMap;
use std::path::Path;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::Connection;

use crate::support::{LAYOUTS, check, open, pragma};

type Model = BTreeMap<i64, Vec<u8>>;

const TRANSACTIONS: u32 = 120;

fn change(connection: &Connection, model: &mut Model, random: &mut Pcg64) {
    for _ in 0..random.random_range(1..30) {
        let key = random.random_range(0..400_i64);
        match random.random_range(0..10) {
            0 => {
                connection.execute("DELETE FROM pairs WHERE key BETWEEN ?1 AND ?1 + 20", [key]).unwrap();
                model.retain(|other, _| !(key..=key + 20).contains(other));
            }
            1..4 => {
                connection.execute("DELETE FROM pairs WHERE key = ?1", [key]).unwrap();
                model.remove(&key);
            }
            _ => {
                let value = vec![random.random::<u8>(); random.random_range(0..3000)];
                connection.execute("REPLACE INTO pairs VALUES (?1, ?2)", (key, &value)).unwrap();
                model.insert(key, value);
            }
        }
    }
}

fn content(connection: &Connection) -> Model {
    let mut statement = connection.prepare("SELECT key, value FROM pairs").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn reopen(path: &Path, mode: &str) -> Connection {
    let connection = open(path, "plain");
    pragma::<String>(&connection, &format!("journal_mode = {mode}"));
    connection.execute_batch("PRAGMA cache_size = 10; PRAGMA synchronous = off").unwrap();
    connection
}

pub fn live(path: &Path, layout: &str, mode: &str, seed: u64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let page_bytes = 512_u32 << random.random_range(0..8);
    let connection = open(path, layout);
    let setup = format!(
        "PRAGMA page_size = {page_bytes}; PRAGMA auto_vacuum = {}; CREATE TABLE pairs (key INTEGER PRIMARY KEY, value BLOB)",
        random.random_range(0..3)
    );
    connection.execute_batch(&setup).unwrap();
    drop(connection);
    let (mut connection, mut model) = (reopen(path, mode), Model::new());
    for _ in 0..TRANSACTIONS {
        let before = model.clone();
        connection.execute_batch("BEGIN").unwrap();
        change(&connection, &mut model, &mut random);
        if random.random_range(0..4) == 0 {
            connection.execute_batch("ROLLBACK").unwrap();
            model = before;
        } else {
            connection.execute_batch("COMMIT").unwrap();
        }
        match random.random_range(0..20) {
            0 => connection = reopen(path, mode),
            1 => connection.execute_batch("VACUUM").unwrap(),
            2 => connection.execute_batch("PRAGMA incremental_vacuum").unwrap(),
            _ => {}
        }
        assert!(content(&connection) == model, "{layout} {mode} seed {seed}");
    }
    check(&connection);
    drop(connection);
    assert!(content(&open(path, "plain")) == model, "{layout} {mode} seed {seed}");
}

#[test]
fn random_transactions_do_what_a_map_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 1;
    for layout in LAYOUTS {
        for mode in ["delete", "truncate", "persist", "memory", "wal"] {
            live(&folder.path().join(format!("{layout}-{mode}")), layout, mode, seed);
            seed += 1;
        }
    }
}
