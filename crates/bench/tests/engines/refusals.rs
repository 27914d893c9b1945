//! Impossible requests are refused with a reason.

use std::fs;
use std::sync::Arc;

use flashgrain_bench::engine::{Durability, EngineName, Setup};

use super::{scratch, setup, with_each};

#[test]
fn a_file_is_no_directory_for_a_store() {
    with_each(|name, dir| {
        let file = dir.join("file");
        fs::write(&file, "something else").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = name.open(&setup(&path, Durability::Buffered)).err().unwrap();
            assert!(format!("{error:#}").contains("is no directory"), "{name}: {error:#}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"something else", "{name}");
    });
}

#[test]
fn more_clients_than_promised_are_refused() {
    with_each(|name, dir| {
        let setup = setup(dir, Durability::Buffered);
        let engine = name.open(&setup).unwrap();
        let error = engine.run(setup.clients_max + 1, Arc::new(|_, _| Ok(()))).unwrap_err();
        assert!(error.to_string().contains("9 clients"), "{name}: {error:#}");
        engine.close().unwrap();
    });
}

#[test]
fn a_commit_without_a_transaction_is_refused() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let error = engine.run(1, Arc::new(|_, session| Ok(session.commit()?))).unwrap_err();
        assert!(error.to_string().contains("no transaction is under way"), "{name}: {error:#}");
        engine.close().unwrap();
    });
}

#[test]
fn engines_that_are_not_compiled_in_say_how_to_get_them() {
    for name in EngineName::all().iter().filter(|name| !name.is_compiled_in()) {
        let error = name.open(&setup(scratch().path(), Durability::Full)).err().unwrap().to_string();
        assert!(error.contains(&format!("--features {name}")), "{error}");
        let needs_library = !matches!(name, EngineName::Fjall | EngineName::Redb | EngineName::LeanStore);
        assert_eq!(error.contains("scripts/install-peers.sh"), needs_library, "{error}");
    }
}

#[test]
fn only_wiredtiger_takes_a_page_size() {
    with_each(|name, dir| {
        let setup = Setup { page_bytes: Some(32_768), ..setup(dir, Durability::None) };
        match name.open(&setup) {
            Ok(engine) => {
                assert_eq!(name, EngineName::WiredTiger);
                let pages =
                    |(name, value): &(String, String)| name == "pages" && value.contains("leaf 32768");
                assert!(engine.settings().iter().any(pages), "{:?}", engine.settings());
                engine.close().unwrap();
            }
            Err(error) => {
                assert_ne!(name, EngineName::WiredTiger, "{error:#}");
                assert!(error.to_string().contains("only WiredTiger"), "{name}: {error:#}");
            }
        }
    });
}
