//! The load (4.3.3.1).
//!
//! Each table is filled by one client, from its first key to its last, so that trees grow at their end;
//! several tables are filled at a time. Relations between tables, such as the customer of each order, come
//! from sequences of random numbers that each table draws again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::access::{Access, Ending, Intent};
use super::keys::{self, DistrictId, Writer};
use super::payment::BAD_CREDIT;
use super::random::{Constants, Random, Stream};
use super::rows::{
    Address, Customer, District, History, Item, Order, OrderLine, Row, Stock, Text, Warehouse,
};
use super::tables;
use super::{DISTRICTS, Dataset, LINES_MEAN, Scale, districts_of};
use crate::engine::{Engine, Session, Table};

/// Rows of a transaction of the load.
const BATCH_ROWS: usize = 500;
/// Payment of each customer before the load.
const FIRST_PAYMENT_CENTS: i64 = 1000;
const CREDIT_LIMIT_CENTS: i64 = 5_000_000;
/// Those that take longest first, so that they do not end alone.
const TABLES_BY_SIZE: [Table; 11] = [
    tables::STOCK,
    tables::ORDER_LINE,
    tables::CUSTOMER,
    tables::HISTORY,
    tables::CUSTOMER_NAME,
    tables::ORDERS,
    tables::CUSTOMER_ORDER,
    tables::NEW_ORDER,
    tables::ITEM,
    tables::DISTRICT,
    tables::WAREHOUSE,
];

/// How far a load has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows that are there, those of the indexes included.
    pub rows: u64,
    /// About how many there will be.
    pub rows_expected: u64,
}

/// Fills an engine whose tables are empty, by at most `clients` clients; more than there are tables are of no
/// use. `progress` gets the rows done now and then, from any of them, and ends the load with an error.
///
/// # Errors
/// Errors of the engine, and of `progress`.
pub fn load(
    engine: &dyn Engine,
    dataset: &Dataset,
    clients: usize,
    progress: Arc<dyn Fn(Progress) -> anyhow::Result<()> + Send + Sync>,
) -> anyhow::Result<()> {
    dataset.scale.check()?;
    anyhow::ensure!(
        dataset.date_seconds > 0,
        "a load needs a date: 0 stands for orders that are not delivered"
    );
    let shared = Arc::new(Shared {
        dataset: *dataset,
        tables_begun: AtomicUsize::new(0),
        rows: AtomicU64::new(0),
        rows_expected: rows_expected(&dataset.scale),
        progress,
    });
    let clients = clients.clamp(1, TABLES_BY_SIZE.len());
    engine.run(clients, Arc::new(move |_, session| shared.client(session)))
}

fn rows_expected(scale: &Scale) -> u64 {
    let (items, customers) = (u64::from(scale.items), u64::from(scale.customers_per_district));
    // Customer, name, payment, order, its place among the customer's, and the lines.
    let district = 1 + customers * (5 + LINES_MEAN) + u64::from(scale.new_orders_per_district);
    items + u64::from(scale.warehouses) * (1 + items + u64::from(DISTRICTS) * district)
}

struct Shared {
    dataset: Dataset,
    tables_begun: AtomicUsize,
    rows: AtomicU64,
    rows_expected: u64,
    progress: Arc<dyn Fn(Progress) -> anyhow::Result<()> + Send + Sync>,
}

impl Shared {
    fn client(&self, session: &mut dyn Session) -> anyhow::Result<()> {
        let mut to = Appender { access: Access::new(session), batch: Vec::new(), shared: self };
        while let Some(&table) = TABLES_BY_SIZE.get(self.tables_begun.fetch_add(1, Ordering::Relaxed)) {
            self.dataset.fill(table, &mut to)?;
            to.write()?;
        }
        Ok(())
    }
}

/// Rows on their way to the end of a table.
struct Appender<'a> {
    access: Access<'a>,
    batch: Vec<(Table, Vec<u8>, Vec<u8>)>,
    shared: &'a Shared,
}

impl Appender<'_> {
    fn row<R: Row>(&mut self, key: &[u8], row: &R) -> anyhow::Result<()> {
        let mut value = Vec::with_capacity(R::BYTES);
        row.write(&mut value);
        self.record(R::TABLE, key, value)
    }

    fn record(&mut self, table: Table, key: &[u8], value: Vec<u8>) -> anyhow::Result<()> {
        self.batch.push((table, key.to_vec(), value));
        if self.batch.len() == BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let (batch, mut conflicts) = (&self.batch, 0);
        self.access.transaction(Intent::Write, &mut conflicts, |access| {
            for (table, key, value) in batch {
                access.put_bytes(*table, key, value)?;
            }
            Ok(Ending::Commit(()))
        })?;
        let rows = self.batch.len() as u64;
        self.batch.clear();
        let rows = self.shared.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        (self.shared.progress)(Progress { rows, rows_expected: self.shared.rows_expected })
    }
}

/// An order as it is loaded.
struct NewlyLoaded {
    customer: u32,
    lines: u8,
    carrier: u8,
}

impl Dataset {
    fn fill(&self, table: Table, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let warehouses = 1..=self.scale.warehouses;
        let mut districts = self.scale.districts();
        match table {
            tables::WAREHOUSE => self.fill_warehouses(to),
            tables::DISTRICT => self.fill_districts(to),
            tables::ITEM => self.fill_items(to),
            tables::STOCK => warehouses.into_iter().try_for_each(|warehouse| self.fill_stock(warehouse, to)),
            tables::HISTORY => {
                warehouses.into_iter().try_for_each(|warehouse| self.fill_history(warehouse, to))
            }
            tables::CUSTOMER => districts.try_for_each(|of| self.fill_customers(of, to)),
            tables::CUSTOMER_NAME => districts.try_for_each(|of| self.fill_customer_names(of, to)),
            tables::ORDERS => districts.try_for_each(|of| self.fill_orders(of, to)),
            tables::ORDER_LINE => districts.try_for_each(|of| self.fill_order_lines(of, to)),
            tables::NEW_ORDER => districts.try_for_each(|of| self.fill_new_orders(of, to)),
            _ => districts.try_for_each(|of| self.fill_customer_orders(of, to)),
        }
    }

    fn random(&self, stream: Stream) -> Random {
        Random::new(self.seed, stream)
    }

    /// Earnings of a district before the load.
    fn district_ytd(&self) -> i64 {
        i64::from(self.scale.customers_per_district) * FIRST_PAYMENT_CENTS
    }

    fn fill_items(&self, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::Items);
        for number in 1..=self.scale.items {
            let item = Item {
                image: random.between(1, 10_000),
                name: random.text(14, 24),
                price: random.between(100, 10_000),
                data: random.data(),
            };
            to.row(&keys::item(number), &item)?;
        }
        Ok(())
    }

    fn fill_warehouses(&self, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::Warehouses);
        for number in 1..=self.scale.warehouses {
            let warehouse = Warehouse {
                name: random.text(6, 10),
                address: address(&mut random),
                tax: random.between(0, 2000) as u16,
                ytd: i64::from(DISTRICTS) * self.district_ytd(),
            };
            to.row(&keys::warehouse(number), &warehouse)?;
        }
        Ok(())
    }

    fn fill_districts(&self, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::Districts);
        for of in self.scale.districts() {
            let district = District {
                name: random.text(6, 10),
                address: address(&mut random),
                tax: random.between(0, 2000) as u16,
                ytd: self.district_ytd(),
                next_order: self.scale.customers_per_district + 1,
            };
            to.row(&keys::district(of), &district)?;
        }
        Ok(())
    }

    fn fill_stock(&self, warehouse: u32, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::Stock(warehouse));
        for item in 1..=self.scale.items {
            let stock = Stock {
                quantity: random.between(10, 100) as i32,
                districts: std::array::from_fn(|_| random.full_text()),
                ytd: 0,
                orders: 0,
                remote_orders: 0,
                data: random.data(),
            };
            to.row(&keys::stock(warehouse, item), &stock)?;
        }
        Ok(())
    }

    /// First and last names of a district's customers.
    fn names(&self, of: DistrictId) -> Vec<(Text<16>, Text<16>)> {
        let constants = Constants::new(self.seed);
        let mut random = self.random(Stream::Names(Scale::district_index(of)));
        let customers = self.scale.customers_per_district;
        let name = |customer| {
            let last = random.last_name_of_new(&constants, customer, customers);
            (random.text(8, 16), last)
        };
        (1..=customers).map(name).collect()
    }

    fn fill_customers(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::Customers(Scale::district_index(of)));
        for (number, (first, last)) in (1..).zip(self.names(of)) {
            let credit = if random.percent(10) { BAD_CREDIT } else { b"GC" };
            let customer = Customer {
                first,
                middle: Text::new(b"OE"),
                last,
                address: address(&mut random),
                phone: random.digits(),
                since: self.date_seconds,
                credit: Text::new(credit),
                credit_limit: CREDIT_LIMIT_CENTS,
                discount: random.between(0, 5000) as u16,
                balance: -FIRST_PAYMENT_CENTS,
                ytd_payment: FIRST_PAYMENT_CENTS,
                payments: 1,
                deliveries: 0,
                data: random.text(300, 500),
            };
            to.row(&keys::customer(of, number), &customer)?;
        }
        Ok(())
    }

    fn fill_customer_names(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let names = (1..).zip(self.names(of));
        let mut keys: Vec<_> =
            names.map(|(number, (first, last))| keys::customer_name(of, &last, &first, number)).collect();
        keys.sort_unstable();
        keys.iter().try_for_each(|key| to.record(tables::CUSTOMER_NAME, key, Vec::new()))
    }

    fn fill_history(&self, warehouse: u32, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::History(warehouse));
        let customers = self.scale.customers_per_district;
        let customers =
            districts_of(warehouse).flat_map(|of| (1..=customers).map(move |customer| (of, customer)));
        for (count, (of, customer)) in (0..).zip(customers) {
            let history = History {
                customer_warehouse: warehouse,
                customer_district: of.district,
                customer,
                warehouse,
                district: of.district,
                date: self.date_seconds,
                amount: FIRST_PAYMENT_CENTS,
                data: random.text(12, 24),
            };
            to.row(&keys::history(Writer::Load(warehouse), count), &history)?;
        }
        Ok(())
    }

    /// A district's orders: each customer has one.
    fn orders(&self, of: DistrictId) -> Vec<NewlyLoaded> {
        let mut random = self.random(Stream::Orders(Scale::district_index(of)));
        let mut customers: Vec<_> = (1..=self.scale.customers_per_district).collect();
        random.shuffle(&mut customers);
        let order = |(number, customer)| {
            let (lines, carrier) = (random.between(5, 15) as u8, random.between(1, 10) as u8);
            NewlyLoaded { customer, lines, carrier: if self.is_delivered(number) { carrier } else { 0 } }
        };
        (1..).zip(customers).map(order).collect()
    }

    fn is_delivered(&self, order: u32) -> bool {
        order <= self.scale.delivered_per_district()
    }

    fn fill_orders(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        for (number, loaded) in (1..).zip(self.orders(of)) {
            let order = Order {
                customer: loaded.customer,
                entered: self.date_seconds,
                carrier: loaded.carrier,
                lines: loaded.lines,
                all_local: 1,
            };
            to.row(&keys::order(of, number), &order)?;
        }
        Ok(())
    }

    fn fill_order_lines(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut random = self.random(Stream::OrderLines(Scale::district_index(of)));
        for (order, loaded) in (1..).zip(self.orders(of)) {
            for number in 1..=loaded.lines {
                let amount = i64::from(random.between(1, 999_999));
                let (delivered, amount) =
                    if self.is_delivered(order) { (self.date_seconds, 0) } else { (0, amount) };
                let line = OrderLine {
                    item: random.between(1, self.scale.items),
                    supplier: of.warehouse,
                    delivered,
                    quantity: 5,
                    amount,
                    district_info: random.full_text(),
                };
                to.row(&keys::order_line(of, order, number), &line)?;
            }
        }
        Ok(())
    }

    fn fill_new_orders(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let mut new = self.scale.delivered_per_district() + 1..=self.scale.customers_per_district;
        new.try_for_each(|order| to.record(tables::NEW_ORDER, &keys::order(of, order), Vec::new()))
    }

    fn fill_customer_orders(&self, of: DistrictId, to: &mut Appender<'_>) -> anyhow::Result<()> {
        let orders = (1..).zip(self.orders(of));
        let mut keys: Vec<_> =
            orders.map(|(number, order)| keys::customer_order(of, order.customer, number)).collect();
        keys.sort_unstable();
        keys.iter().try_for_each(|key| to.record(tables::CUSTOMER_ORDER, key, Vec::new()))
    }
}

fn address(random: &mut Random) -> Address {
    Address {
        street_1: random.text(10, 20),
        street_2: random.text(10, 20),
        city: random.text(10, 20),
        state: random.full_text(),
        zip: random.zip(),
    }
}
