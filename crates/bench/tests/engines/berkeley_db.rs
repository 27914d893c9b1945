//! Berkeley DB without log and transactions, its files around the kernel's page cache.

use flashgrain_bench::engine::{Direction, Durability, Engine, EngineName, Settings, Setup};

use super::{Record, ask, records, scratch, setup};

fn bare(setup: Setup, table: &str) -> Setup {
    let settings = Some(Settings { store: "bare".into(), table: table.into() });
    Setup { clients_max: 1, settings, ..setup }
}

fn all(engine: &dyn Engine) -> Vec<Record> {
    ask(engine, |session| Ok(records(session, 0, &[0], Direction::Forward, usize::MAX)?)).unwrap()
}

#[test]
fn records_around_the_page_cache_are_there_when_the_store_is_opened_again() {
    let scratch = scratch();
    // Most of them are not in memory.
    let setup = Setup { cache_bytes: 1 << 20, ..setup(scratch.path(), Durability::None) };
    let setup = bare(setup, "page_bytes=16384");
    let expected: Vec<Record> =
        (0..20_000_u32).map(|key| (key.to_be_bytes().to_vec(), vec![key as u8; 300])).collect();
    let engine = EngineName::BerkeleyDb.open(&setup).unwrap();
    let written = expected.clone();
    ask(&*engine, move |session| {
        session.begin()?;
        for (key, value) in &written {
            session.put(0, key, value)?;
        }
        Ok(session.commit()?)
    })
    .unwrap();
    engine.settle().unwrap();
    engine.close().unwrap();
    let engine = EngineName::BerkeleyDb.open(&setup).unwrap();
    assert_eq!(all(&*engine), expected);
    assert!(engine.settings().iter().any(|(name, value)| name == "pages" && value.contains("16384")));
    engine.close().unwrap();
    // As the benchmarks open it.
    let usual = Setup { settings: None, ..setup };
    let engine = EngineName::BerkeleyDb.open(&usual).unwrap();
    assert_eq!(all(&*engine), expected);
    engine.close().unwrap();
}

#[test]
fn settings_that_it_does_not_know_are_refused() {
    let scratch = scratch();
    let usual = || setup(scratch.path(), Durability::None);
    let fast = Some(Settings { store: "fast".into(), table: String::new() });
    for setup in [bare(usual(), "pages=4096"), Setup { settings: fast, ..usual() }] {
        let error = EngineName::BerkeleyDb.open(&setup).err().unwrap();
        assert!(format!("{error:#}").contains("unknown settings"), "{error:#}");
    }
    let several = Setup { clients_max: 2, ..bare(usual(), "page_bytes=4096") };
    let error = EngineName::BerkeleyDb.open(&several).err().unwrap();
    assert!(format!("{error:#}").contains("one client"), "{error:#}");
    // This one is Berkeley DB's own message.
    let error = EngineName::BerkeleyDb.open(&bare(usual(), "page_bytes=5000")).err().unwrap();
    assert!(format!("{error:#}").contains("Invalid argument"), "{error:#}");
}
