//! The whole of it, on Flashgrain.

mod broken;
mod transactions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::access::{Access, Ending, Intent};
use super::benchmark::bytes_held;
use super::keys::{self, DistrictId};
use super::rows::{District, Row, Stock};
use super::tables;
use super::*;
use crate::drive::UserBytes;
use crate::engine::{Durability, Engine, EngineName, Failure, Setup, Table};

const SMALL: Dataset = Dataset {
    scale: Scale { warehouses: 2, items: 100, customers_per_district: 30, new_orders_per_district: 9 },
    seed: 11,
    date_seconds: 1,
};

/// A store that is gone at its end.
struct Store {
    engine: Box<dyn Engine>,
    _dir: tempfile::TempDir,
}

impl Store {
    fn empty() -> Self {
        Self::empty_of(EngineName::Flashgrain)
    }

    fn empty_of(engine: EngineName) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup {
            dir: dir.path().to_owned(),
            cache_bytes: 64 << 20,
            durability: Durability::None,
            clients_max: 16,
            cores: 2,
            tables: TABLES,
            settings: None,
            page_bytes: None,
        };
        Self { engine: engine.open(&setup).unwrap(), _dir: dir }
    }

    fn loaded(dataset: &Dataset) -> Self {
        let store = Self::empty();
        store.load(dataset, 4);
        store
    }

    fn load(&self, dataset: &Dataset, clients: usize) {
        load(&*self.engine, dataset, clients, Arc::new(|_| Ok(()))).unwrap();
    }

    /// Lets each of `clients` clients do `transactions` transactions.
    fn run(&self, dataset: &Dataset, options: &Options, clients: usize, transactions: u64) -> Vec<Done> {
        let all = Arc::new(Mutex::new(Vec::new()));
        let (to, dataset, options) = (Arc::clone(&all), *dataset, *options);
        let job = move |client, session: &mut dyn crate::engine::Session| {
            let mut terminal = Terminal::new(session, &dataset, &options, client)?;
            for _ in 0..transactions {
                let done = terminal.transact()?;
                to.lock().unwrap().push(done);
            }
            Ok(())
        };
        self.engine.run(clients, Arc::new(job)).unwrap();
        std::mem::take(&mut *all.lock().unwrap())
    }

    fn check(&self, dataset: &Dataset) -> Vec<Violation> {
        check(&*self.engine, dataset, 2).unwrap()
    }

    /// Returns the result of a client's `work`.
    fn with<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Access<'_>) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> T {
        let result = Arc::new(Mutex::new(None));
        let to = Arc::clone(&result);
        let job = move |_, session: &mut dyn crate::engine::Session| {
            *to.lock().unwrap() = Some(work(&mut Access::new(session))?);
            Ok(())
        };
        self.engine.run(1, Arc::new(job)).unwrap();
        result.lock().unwrap().take().unwrap()
    }

    fn rows<R: Row + Send + 'static>(&self) -> BTreeMap<Vec<u8>, R> {
        let records = self.records(R::TABLE);
        records.into_iter().map(|(key, value)| (key, R::decode(&value).unwrap())).collect()
    }

    fn records(&self, table: Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.with(move |access| {
            let mut records = BTreeMap::new();
            access.scan(table, &[0], &[], |key, value| {
                records.insert(key.to_vec(), value.to_vec());
                Ok(true)
            })?;
            Ok(records)
        })
    }

    fn all_records(&self) -> Vec<BTreeMap<Vec<u8>, Vec<u8>>> {
        (0..TABLES.len()).map(|table| self.records(table)).collect()
    }
}

const RANDOM: Options = Options { home: Home::Random, seed: 5, date_seconds: 2 };

fn committed(all: &[Done], kind: Kind) -> usize {
    all.iter().filter(|done| done.kind == kind && done.outcome != Outcome::RolledBack).count()
}

#[test]
fn a_loaded_database_has_the_rows_of_its_scale_and_every_condition_holds() {
    let store = Store::loaded(&SMALL);
    assert_eq!(store.check(&SMALL), []);
    let counts: Vec<_> = store.all_records().iter().map(BTreeMap::len).collect();
    let lines = counts[tables::ORDER_LINE];
    assert_eq!(counts, [2, 20, 600, 600, 180, 600, lines, 100, 200, 600, 600]);
    assert!((5500..6500).contains(&lines), "{lines}");
    let district = store.rows::<District>()[&keys::district(DistrictId { warehouse: 2, district: 10 })[..]];
    assert_eq!((district.ytd, district.next_order), (30_000, 31));
}

#[test]
fn a_database_does_not_depend_on_how_many_clients_load_it() {
    let (one, many) = (Store::empty(), Store::empty());
    one.load(&SMALL, 1);
    many.load(&SMALL, 11);
    assert!(one.all_records() == many.all_records());
}

#[test]
fn progress_ends_near_what_it_expects() {
    let (store, last) = (Store::empty(), Arc::new(Mutex::new(None)));
    let to = Arc::clone(&last);
    let note = move |progress| {
        *to.lock().unwrap() = Some(progress);
        Ok(())
    };
    load(&*store.engine, &SMALL, 1, Arc::new(note)).unwrap();
    let last = last.lock().unwrap().unwrap();
    let rows: usize = store.all_records().iter().map(BTreeMap::len).sum();
    assert_eq!(last.rows, rows as u64);
    assert!(last.rows_expected.abs_diff(last.rows) < last.rows / 20, "{last:?}");
}

#[test]
fn every_condition_holds_after_many_clients_have_run_the_mix() {
    for home in [Home::Fixed, Home::Random] {
        run_the_mix(EngineName::Flashgrain, home);
    }
}

#[test]
fn every_condition_holds_over_the_other_engines_that_are_compiled_in() {
    let others = EngineName::all().iter().filter(|engine| **engine != EngineName::Flashgrain);
    let usable = |engine: &&EngineName| engine.is_compiled_in() && engine.has_transactions();
    others.filter(usable).for_each(|engine| run_the_mix(*engine, Home::Random));
}

fn run_the_mix(engine: EngineName, home: Home) {
    let store = Store::empty_of(engine);
    store.load(&SMALL, 4);
    let all = store.run(&SMALL, &Options { home, ..RANDOM }, 8, 300);
    println!("{engine}, {home:?}: {} conflicts", all.iter().map(|done| done.conflicts).sum::<u64>());
    assert_eq!(store.check(&SMALL), [], "{engine}");
    let ended = Kind::ALL.map(|kind| all.iter().filter(|done| done.kind == kind).count());
    assert_eq!(ended, [1080, 1032, 96, 96, 96]);
    let entered = committed(&all, Kind::NewOrder);
    assert!(entered < 1080, "one in a hundred is rolled back");
    let orders: u64 =
        store.rows::<District>().values().map(|district| u64::from(district.next_order) - 31).sum();
    assert_eq!(orders, entered as u64, "no order is lost, and none is there twice");
    let quantities: u64 = store.rows::<Stock>().values().map(|stock| stock.ytd).sum();
    assert!(quantities > 5 * orders, "{quantities} pieces in {orders} orders");
}

#[test]
fn a_second_run_adds_to_the_first() {
    let store = Store::loaded(&SMALL);
    let all = [(); 2].map(|()| store.run(&SMALL, &RANDOM, 4, 100));
    assert_eq!(store.check(&SMALL), []);
    let payments: usize = all.iter().map(|run| committed(run, Kind::Payment)).sum();
    assert_eq!(store.records(tables::HISTORY).len(), 600 + payments);
}

#[test]
fn the_same_seed_leaves_the_same_database() {
    let left = |seed| {
        let store = Store::loaded(&SMALL);
        store.run(&SMALL, &Options { seed, ..RANDOM }, 1, 500);
        store.all_records()
    };
    let first = left(1);
    assert!(first == left(1));
    assert!(first != left(2));
}

#[test]
fn a_load_ends_when_it_is_told() {
    let store = Store::empty();
    let stop = |_| Err(anyhow::anyhow!("told"));
    let error = load(&*store.engine, &SMALL, 2, Arc::new(stop)).unwrap_err();
    assert_eq!(error.to_string(), "told");
}

#[test]
fn what_a_database_holds_is_known_before_it_is_loaded() {
    let store = Store::loaded(&SMALL);
    let records = store.all_records();
    let sizes = records.iter().flatten().map(|(key, value)| key.len() + value.len());
    let (expected, found) = (SMALL.scale.data_bytes() as f64, sizes.sum::<usize>() as f64);
    assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected}");
    assert_eq!(bytes_held(&*store.engine).unwrap(), found as u64);
}

#[test]
fn bytes_are_counted_once_however_often_a_transaction_is_tried() {
    let user = Store::empty().with(|access| {
        let (mut tries, mut conflicts) = (0, 0);
        let twice = |access: &mut Access<'_>| {
            access.put_bytes(0, b"key", b"value")?;
            access.last_key(0, b"key")?;
            tries += 1;
            if tries == 1 { Err(Failure::Conflict) } else { Ok(Ending::Commit(())) }
        };
        access.transaction(Intent::Write, &mut conflicts, twice)?;
        assert_eq!(conflicts, 1);
        Ok(access.take_user())
    });
    assert_eq!(user, UserBytes { read: 8, written: 8 });
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let store = Store::empty();
    for scale in [
        Scale { warehouses: 0, ..SMALL.scale },
        Scale { items: 0, ..SMALL.scale },
        Scale { new_orders_per_district: 31, ..SMALL.scale },
    ] {
        let dataset = Dataset { scale, ..SMALL };
        assert!(load(&*store.engine, &dataset, 1, Arc::new(|_| Ok(()))).is_err(), "{scale:?}");
    }
    assert!(check(&*store.engine, &SMALL, 1).is_err(), "nothing was loaded");
}
