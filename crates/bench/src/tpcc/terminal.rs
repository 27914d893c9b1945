//! A client: the next transaction, and its input.

use std::time::Duration;

use anyhow::ensure;
use clap::ValueEnum;
use flashgrain_device::Nanos;
use serde::{Deserialize, Serialize};

use super::access::{Access, Intent};
use super::delivery::Delivery;
use super::keys::{self, DistrictId, Writer};
use super::mix::{Deck, Kind};
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::random::{Constants, Random, Stream};
use super::stock_level::StockLevel;
use super::tables;
use super::{DISTRICTS, Dataset, Scale, districts_of};
use crate::drive;
use crate::engine::{Failure, Session};

/// The warehouse of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// At a warehouse of its own, and for Stock-Level in a district of its own, as the specification's
    /// terminals.
    Fixed,
    /// At a warehouse that is drawn for each transaction, so that the whole database is in use with few
    /// clients, as in LeanStore's measurements.
    Random,
}

/// How clients work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The warehouse of clients.
    pub home: Home,
    /// Seed of all random choices.
    pub seed: u64,
    /// The date that transactions write, in seconds since 1970; not 0.
    pub date_seconds: u64,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Kind of the transaction.
    pub kind: Kind,
    /// How it has ended.
    pub outcome: Outcome,
    /// How often it lost to another one and was tried again.
    pub conflicts: u64,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its writes are done.
    Committed {
        /// Districts that a Delivery has left out because they had no new order.
        districts_skipped: u32,
    },
    /// A New-Order with a wrong item: nothing was done.
    RolledBack,
}

/// A client with its session.
pub struct Terminal<'a> {
    access: Access<'a>,
    dataset: Dataset,
    home: Home,
    date: u64,
    constants: Constants,
    random: Random,
    deck: Deck,
    client: usize,
    /// Rows of the history that it has written, here and in earlier runs.
    history_rows: u64,
    /// By district of the database: no order below this is new. Spares engines the search among records that
    /// were removed.
    new_orders_from: Vec<u32>,
}

impl<'a> Terminal<'a> {
    /// Client `client` of a run.
    ///
    /// # Errors
    /// Errors of the engine, and of records that are not TPC-C's.
    pub fn new(
        session: &'a mut dyn Session,
        dataset: &Dataset,
        options: &Options,
        client: usize,
    ) -> anyhow::Result<Self> {
        dataset.scale.check()?;
        ensure!(options.date_seconds > 0, "a run needs a date: 0 stands for orders that are not delivered");
        let mut access = Access::new(session);
        let writer = Writer::Client(client);
        let last = access.last_key(tables::HISTORY, &keys::history(writer, u64::MAX))?;
        let history_rows = last.and_then(|key| keys::history_number(writer, &key)).map_or(0, |last| last + 1);
        Ok(Self {
            access,
            dataset: *dataset,
            home: options.home,
            date: options.date_seconds,
            constants: Constants::new(dataset.seed),
            random: Random::new(options.seed, Stream::Client(client)),
            deck: Deck::new(),
            client,
            history_rows,
            new_orders_from: vec![0; dataset.scale.districts().count()],
        })
    }

    /// Does the next transaction, until it is committed or rolled back as it should be.
    ///
    /// # Errors
    /// Errors of the engine, and of records that are not TPC-C's.
    pub fn transact(&mut self) -> anyhow::Result<Done> {
        let kind = self.deck.deal(&mut self.random);
        let mut conflicts = 0;
        self.access.take_user();
        let outcome = match kind {
            Kind::NewOrder => self.new_order(&mut conflicts)?,
            Kind::Payment => self.payment(&mut conflicts)?,
            Kind::OrderStatus => self.order_status(&mut conflicts)?,
            Kind::Delivery => self.delivery(&mut conflicts)?,
            Kind::StockLevel => self.stock_level(&mut conflicts)?,
        };
        Ok(Done { kind, outcome, conflicts })
    }

    fn warehouse(&mut self) -> u32 {
        let warehouses = self.dataset.scale.warehouses;
        match self.home {
            Home::Fixed => self.client as u32 % warehouses + 1,
            Home::Random => self.random.between(1, warehouses),
        }
    }

    fn new_order(&mut self, conflicts: &mut u64) -> anyhow::Result<Outcome> {
        let warehouse = self.warehouse();
        let order =
            NewOrder::draw(&mut self.random, &self.constants, &self.dataset.scale, warehouse, self.date);
        let items = order.look(&mut self.access)?;
        let execute = |access: &mut Access<'_>| order.execute(&items, access);
        let total = self.access.transaction(Intent::Write, conflicts, execute)?;
        Ok(total.map_or(Outcome::RolledBack, |_| committed()))
    }

    fn payment(&mut self, conflicts: &mut u64) -> anyhow::Result<Outcome> {
        let warehouse = self.warehouse();
        let history = (Writer::Client(self.client), self.history_rows);
        let scale = &self.dataset.scale;
        let payment = Payment::draw(&mut self.random, &self.constants, scale, warehouse, self.date, history);
        let customer = payment.look(&mut self.access)?;
        let execute = |access: &mut Access<'_>| payment.execute(customer, access);
        self.access.transaction(Intent::Write, conflicts, execute)?;
        self.history_rows += 1;
        Ok(committed())
    }

    fn order_status(&mut self, conflicts: &mut u64) -> anyhow::Result<Outcome> {
        let warehouse = self.warehouse();
        let asked = OrderStatus::draw(&mut self.random, &self.constants, &self.dataset.scale, warehouse);
        self.access.transaction(Intent::Read, conflicts, |access| asked.execute(access))?;
        Ok(committed())
    }

    fn delivery(&mut self, conflicts: &mut u64) -> anyhow::Result<Outcome> {
        let warehouse = self.warehouse();
        let delivery = Delivery::draw(&mut self.random, self.date);
        let mut districts_skipped = 0;
        for of in districts_of(warehouse) {
            let from = &mut self.new_orders_from[Scale::district_index(of)];
            let deliver = |access: &mut Access<'_>| delivery.execute(access, of, *from);
            match self.access.transaction(Intent::Write, conflicts, deliver)?.flatten() {
                Some(delivered) => *from = delivered + 1,
                None => districts_skipped += 1,
            }
        }
        Ok(Outcome::Committed { districts_skipped })
    }

    fn stock_level(&mut self, conflicts: &mut u64) -> anyhow::Result<Outcome> {
        let warehouse = self.warehouse();
        let districts = u32::from(DISTRICTS);
        let district = match self.home {
            Home::Fixed => self.client as u32 / self.dataset.scale.warehouses % districts + 1,
            Home::Random => self.random.between(1, districts),
        };
        let of = DistrictId { warehouse, district: district as u8 };
        let asked = StockLevel::draw(&mut self.random, of);
        let items = self.access.transaction(Intent::Read, conflicts, |access| asked.items(access))?;
        asked.low(&mut self.access, &items.unwrap_or_default())?;
        Ok(committed())
    }
}

impl drive::Client for Terminal<'_> {
    fn step(&mut self) -> anyhow::Result<drive::Done> {
        let Done { kind, outcome, conflicts } = self.transact()?;
        let kind = match outcome {
            Outcome::Committed { .. } => kind.name(),
            Outcome::RolledBack => ROLLED_BACK,
        };
        Ok(drive::Done { kind, count: 1, records: 0, conflicts, user: self.access.take_user() })
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        self.access.wait_until(until)
    }

    fn now(&self) -> Nanos {
        self.access.now()
    }
}

/// New orders with a wrong item, in results.
const ROLLED_BACK: &str = "new-order-rolled-back";

fn committed() -> Outcome {
    Outcome::Committed { districts_skipped: 0 }
}
