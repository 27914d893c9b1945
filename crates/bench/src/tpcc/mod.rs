//! TPC-C 5.11 over any [`Engine`](crate::engine::Engine): load, the five transactions in their mix, and the
//! twelve consistency conditions.
//!
//! A table of the engine holds a table of the specification; two more are indexes, of customers by name and
//! of customers' newest orders. The result of [`load`] depends on its [`Dataset`] alone, and so does the
//! result of a run with one client.
//!
//! # Where this differs from the specification
//!
//! - There are no terminals: no keying time, no think time, no screens. A client begins a transaction as soon
//!   as its last one has ended, so warehouses do not limit the rate, and a rate of new orders is no tpmC.
//!   Committed transactions, and the 1 % of new orders that are rolled back, are counted apart.
//! - Clients may keep a warehouse, as terminals do (and the district of Stock-Level), or draw one for each
//!   transaction, as LeanStore does: [`Home`].
//! - The deck of 5.2.4.2 has 100 cards: 45 New-Order, 43 Payment, 4 of each other.
//! - Delivery is not deferred and writes no result file: the client does it and waits. Each of its ten
//!   districts is a transaction of the engine, as 2.7 allows. Districts without a new order are skipped, and
//!   counted in [`Outcome::Committed`].
//! - Isolation is the engine's, snapshot isolation with most; under it this mix is serializable. A
//!   transaction that loses to another one is tried again with the same input until it is done; its latency
//!   includes that, and the times it lost are counted.
//! - New-Order and Payment look for items and names, which never change, before they begin, and have stocks
//!   and customers brought into memory ([`Session::prefetch`](crate::engine::Session::prefetch), a look-up
//!   with most engines), all of a table by one call, so that engines can read them at once and transactions
//!   are short. Stocks and customers are read again in the transaction.
//! - Stock-Level reads its district and the lines in a transaction, and their stocks, all by one call:
//!   2.8.2.3 asks for committed data only.
//! - Dates are all those of the load ([`Dataset::date_seconds`]) or of the run ([`Options::date_seconds`]).
//! - Condition 11 holds for loaded databases only; [`check()`] adds the orders that were delivered since, by
//!   the counts in customers' rows. It also compares the indexes with their tables.
//! - The history has no key in the specification; here it has its writer and a number.

mod access;
mod benchmark;
mod check;
mod delivery;
mod keys;
mod load;
mod mix;
mod new_order;
mod order_status;
mod payment;
mod random;
mod rows;
mod stock_level;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;

pub use benchmark::Tpcc;
pub use check::{Condition, Violation, check};
pub use load::{Progress, load};
pub use mix::Kind;
pub use terminal::{Done, Home, Options, Outcome, Terminal};

use keys::DistrictId;

/// For [`Setup::tables`](crate::engine::Setup::tables): a database takes all of an engine's tables.
pub const TABLES: &[&str] = &[
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "item",
    "stock",
    "customer_name",
    "customer_order",
];

/// Lines of an order, on average.
const LINES_MEAN: u64 = 10;

/// Districts of a warehouse.
const DISTRICTS: u8 = 10;

/// How large a database is (4.3.3.1). Each district has as many orders as customers when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// At least 1.
    pub warehouses: u32,
    /// Also the stocks of each warehouse. At least 1.
    pub items: u32,
    /// At least 1.
    pub customers_per_district: u32,
    /// Those of a district's orders that are not yet delivered; at most all.
    pub new_orders_per_district: u32,
}

impl Scale {
    /// The scale of the specification.
    pub fn standard(warehouses: u32) -> Self {
        Self { warehouses, items: 100_000, customers_per_district: 3000, new_orders_per_district: 900 }
    }

    /// About the bytes of all keys and values of a database that was just loaded, indexes included.
    pub fn data_bytes(&self) -> u64 {
        use rows::{Customer, District, Field as _, History, Item, Order, OrderLine, Stock, Warehouse};
        /// Length of most keys.
        const KEY_BYTES: usize = 9;
        let (items, customers) = (u64::from(self.items), u64::from(self.customers_per_district));
        let of = |rows: u64, value_bytes: usize| rows * (KEY_BYTES + value_bytes) as u64;
        // Indexes have no values; their keys are longer.
        let customer = of(1, Customer::BYTES + History::BYTES + Order::BYTES) + of(5, 0);
        let district = of(1, District::BYTES)
            + customers * (customer + of(LINES_MEAN, OrderLine::BYTES))
            + of(self.new_orders_per_district.into(), 0);
        let warehouse = of(1, Warehouse::BYTES) + of(items, Stock::BYTES) + u64::from(DISTRICTS) * district;
        of(items, Item::BYTES) + u64::from(self.warehouses) * warehouse
    }

    fn delivered_per_district(&self) -> u32 {
        self.customers_per_district - self.new_orders_per_district
    }

    fn districts(&self) -> impl Iterator<Item = DistrictId> + use<> {
        (1..=self.warehouses).flat_map(districts_of)
    }

    /// A district's place in the database, from 0.
    fn district_index(of: DistrictId) -> usize {
        (of.warehouse as usize - 1) * usize::from(DISTRICTS) + usize::from(of.district - 1)
    }

    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.warehouses > 0 && self.items > 0 && self.customers_per_district > 0,
            "a TPC-C database needs at least one warehouse, one item and one customer per district: {self:?}"
        );
        anyhow::ensure!(
            self.new_orders_per_district <= self.customers_per_district,
            "there is one order per customer, so no more can be new: {self:?}"
        );
        Ok(())
    }
}

fn districts_of(warehouse: u32) -> impl Iterator<Item = DistrictId> {
    (1..=DISTRICTS).map(move |district| DistrictId { warehouse, district })
}

/// A database: equal ones are loaded with equal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Its size.
    pub scale: Scale,
    /// Seed of all that is random in it. A run needs it too, for the constants of its distributions.
    pub seed: u64,
    /// When it was loaded, in seconds since 1970; not 0.
    pub date_seconds: u64,
}
