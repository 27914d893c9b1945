//! The New-Order transaction (2.4).

use super::access::{Access, Ending};
use super::keys::{self, DistrictId};
use super::random::{Constants, ORIGINAL, Random};
use super::rows::{Customer, District, Item, Order, OrderLine, Stock, Warehouse};
use super::tables;
use super::{DISTRICTS, Scale};
use crate::engine::Failure;

const QUANTITY_MAX: u32 = 10;

/// Input of the transaction.
#[derive(Clone, Debug)]
pub(super) struct NewOrder {
    of: DistrictId,
    customer: u32,
    lines: Vec<Line>,
    date: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    item: u32,
    supplier: u32,
    quantity: u8,
}

/// Output of the transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Total {
    pub order: u32,
    pub amount_cents: f64,
    /// Lines whose item and stock both are originals (2.4.2.2).
    pub originals: u32,
}

impl NewOrder {
    pub fn draw(
        random: &mut Random,
        constants: &Constants,
        scale: &Scale,
        warehouse: u32,
        date: u64,
    ) -> Self {
        let of = DistrictId { warehouse, district: random.between(1, DISTRICTS.into()) as u8 };
        let customer = random.customer(constants, scale.customers_per_district);
        let lines = random.between(5, 15);
        let is_wrong = random.percent(1);
        let lines = (1..=lines).map(|number| {
            let item = random.item(constants, scale.items);
            let is_remote = random.percent(1);
            Line {
                item: if is_wrong && number == lines { scale.items + 1 } else { item },
                supplier: if is_remote { other_warehouse(random, scale, warehouse) } else { warehouse },
                quantity: random.between(1, QUANTITY_MAX) as u8,
            }
        });
        Self { of, customer, lines: lines.collect(), date }
    }

    /// Before the transaction: its items, which never change, by line; and prefetches the rows that it is
    /// going to read and few others do.
    pub fn look(&self, access: &mut Access<'_>) -> Result<Vec<Option<Item>>, Failure> {
        let mut items = vec![None; self.lines.len()];
        let item_keys: Vec<_> = self.lines.iter().map(|line| keys::item(line.item)).collect();
        let item_keys: Vec<&[u8]> = item_keys.iter().map(<[u8; 4]>::as_slice).collect();
        access.get_many(&item_keys, |place, item: Item| items[place] = Some(item))?;
        let stocks: Vec<_> = self.lines.iter().map(|line| keys::stock(line.supplier, line.item)).collect();
        let stocks: Vec<&[u8]> = stocks.iter().map(<[u8; 8]>::as_slice).collect();
        access.prefetch::<Stock>(&stocks)?;
        access.find::<Customer>(&keys::customer(self.of, self.customer))?;
        Ok(items)
    }

    /// With the items of its lines.
    pub fn execute(&self, items: &[Option<Item>], access: &mut Access<'_>) -> Result<Ending<Total>, Failure> {
        let of = self.of;
        let warehouse: Warehouse = access.get(&keys::warehouse(of.warehouse))?;
        let mut district: District = access.get(&keys::district(of))?;
        let number = district.next_order;
        district.next_order += 1;
        access.put(&keys::district(of), &district)?;
        let customer: Customer = access.get(&keys::customer(of, self.customer))?;
        let order = Order {
            customer: self.customer,
            entered: self.date,
            carrier: 0,
            lines: self.lines.len() as u8,
            all_local: self.lines.iter().all(|line| line.supplier == of.warehouse).into(),
        };
        access.put(&keys::order(of, number), &order)?;
        access.put_key(tables::NEW_ORDER, &keys::order(of, number))?;
        access.put_key(tables::CUSTOMER_ORDER, &keys::customer_order(of, self.customer, number))?;
        let (mut sum, mut originals) = (0, 0);
        for (place, (line, item)) in (1..).zip(self.lines.iter().zip(items)) {
            // The user has made a mistake.
            let Some(item) = item else { return Ok(Ending::RollBack) };
            let key = keys::stock(line.supplier, line.item);
            let mut stock: Stock = access.get(&key)?;
            line.take_from(&mut stock, of);
            access.put(&key, &stock)?;
            let amount = i64::from(line.quantity) * i64::from(item.price);
            sum += amount;
            originals += u32::from(item.data.contains(ORIGINAL) && stock.data.contains(ORIGINAL));
            let row = OrderLine {
                item: line.item,
                supplier: line.supplier,
                delivered: 0,
                quantity: line.quantity,
                amount,
                district_info: stock.districts[usize::from(of.district - 1)],
            };
            access.put(&keys::order_line(of, number, place), &row)?;
        }
        let rate = |hundredths_of_percent: u16| f64::from(hundredths_of_percent) / 10_000.0;
        let taxes = 1.0 + rate(warehouse.tax) + rate(district.tax);
        let amount_cents = sum as f64 * (1.0 - rate(customer.discount)) * taxes;
        Ok(Ending::Commit(Total { order: number, amount_cents, originals }))
    }
}

impl Line {
    fn take_from(&self, stock: &mut Stock, of: DistrictId) {
        let quantity = i32::from(self.quantity);
        let is_enough = stock.quantity >= quantity + 10;
        stock.quantity += if is_enough { -quantity } else { 91 - quantity };
        stock.ytd += u64::from(self.quantity);
        stock.orders += 1;
        stock.remote_orders += u32::from(self.supplier != of.warehouse);
    }
}

/// Any but this; this if there is no other.
pub(super) fn other_warehouse(random: &mut Random, scale: &Scale, than: u32) -> u32 {
    if scale.warehouses == 1 {
        return than;
    }
    let other = random.between(1, scale.warehouses - 1);
    other + u32::from(other >= than)
}

#[cfg(test)]
mod tests {
    use super::super::random::Stream;
    use super::*;

    #[test]
    fn one_line_in_a_hundred_is_remote_and_one_order_in_a_hundred_is_wrong() {
        let scale = Scale::standard(5);
        let (constants, mut random) = (Constants::new(1), Random::new(1, Stream::Client(0)));
        let orders: Vec<_> =
            (0..20_000).map(|_| NewOrder::draw(&mut random, &constants, &scale, 3, 1)).collect();
        let lines: Vec<_> = orders.iter().flat_map(|order| &order.lines).collect();
        let remote = lines.iter().filter(|line| line.supplier != 3).count() as f64 / lines.len() as f64;
        assert!((0.008..0.012).contains(&remote), "{remote}");
        let wrong = lines.iter().filter(|line| line.item > scale.items).count();
        assert!((140..270).contains(&wrong), "{wrong}");
        assert!(lines.iter().all(|line| (1..=5).contains(&line.supplier)));
        assert!(orders.iter().all(|order| (5..=15).contains(&order.lines.len())));
    }

    #[test]
    fn stock_that_runs_low_is_filled_up() {
        let stock = |quantity| Stock {
            quantity,
            districts: Default::default(),
            ytd: 0,
            orders: 0,
            remote_orders: 0,
            data: Default::default(),
        };
        let of = DistrictId { warehouse: 1, district: 1 };
        let line = Line { item: 1, supplier: 2, quantity: 5 };
        let (mut enough, mut low) = (stock(15), stock(14));
        line.take_from(&mut enough, of);
        line.take_from(&mut low, of);
        assert_eq!((enough.quantity, low.quantity), (10, 100));
        assert_eq!((enough.ytd, enough.orders, enough.remote_orders), (5, 1, 1));
    }
}
