//! The conditions of a warehouse and of its districts.

use anyhow::ensure;

use super::super::access::{Access, decode, part};
use super::super::keys::{self, DistrictId};
use super::super::rows::{Customer, District, Order, OrderLine, Row, Warehouse};
use super::super::tables;
use super::super::{Scale, districts_of};
use super::paid::Paid;
use super::told::told;
use super::{Condition, VIOLATIONS_MAX, Violation};
use crate::engine::Table;

/// A client of the check.
pub(super) struct Checker<'a> {
    access: Access<'a>,
    scale: Scale,
    paid: &'a Paid,
    violations: Vec<Violation>,
}

/// An order, and the lines found for it.
struct FoundOrder {
    number: u32,
    order: Order,
    lines: i64,
}

impl<'a> Checker<'a> {
    pub fn new(access: Access<'a>, scale: Scale, paid: &'a Paid) -> Self {
        Self { access, scale, paid, violations: Vec::new() }
    }

    pub fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    fn expect(&mut self, condition: Condition, key: impl FnOnce() -> String, expected: i64, found: i64) {
        if expected != found && self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { condition, key: key(), expected, found });
        }
    }

    pub fn check_warehouse(&mut self, number: u32) -> anyhow::Result<()> {
        let warehouse: Warehouse = told(self.access.get(&keys::warehouse(number)))?;
        let (mut of_districts, mut of_history) = (0, 0);
        for of in districts_of(number) {
            of_districts += self.check_district(of)?;
            of_history += self.paid.to_district(of);
        }
        let key = || format!("warehouse {number}");
        self.expect(Condition::DistrictsOfWarehouse, key, of_districts, warehouse.ytd);
        self.expect(Condition::HistoryOfWarehouse, key, of_history, warehouse.ytd);
        Ok(())
    }

    /// Checks a district and returns its earnings.
    fn check_district(&mut self, of: DistrictId) -> anyhow::Result<i64> {
        let district: District = told(self.access.get(&keys::district(of)))?;
        self.expect(Condition::HistoryOfDistrict, || name(of), self.paid.to_district(of), district.ytd);
        let new_orders = self.new_orders(of)?;
        let mut orders = self.orders(of)?;
        self.check_order_numbers(of, &district, &new_orders, &orders);
        let delivered_cents = self.check_lines(of, &mut orders)?;
        self.check_orders(of, &new_orders, &orders);
        let deliveries = self.check_customers(of, &delivered_cents)?;
        let expected = i64::from(self.scale.delivered_per_district()) + deliveries;
        let found = orders.len() as i64 - new_orders.len() as i64;
        self.expect(Condition::OrdersOfDistrict, || name(of), expected, found);
        let index =
            orders.iter().map(|seen| keys::customer_order(of, seen.order.customer, seen.number).to_vec());
        self.check_index(Condition::CustomerOrders, tables::CUSTOMER_ORDER, of, index.collect())?;
        Ok(district.ytd)
    }

    fn new_orders(&mut self, of: DistrictId) -> anyhow::Result<Vec<u32>> {
        let (district, mut numbers) = (keys::district(of), Vec::new());
        told(self.access.scan(tables::NEW_ORDER, &district, &district, |key, _| {
            numbers.push(part(keys::last_number(key))?);
            Ok(true)
        }))?;
        Ok(numbers)
    }

    fn orders(&mut self, of: DistrictId) -> anyhow::Result<Vec<FoundOrder>> {
        let (mut orders, customers) = (Vec::new(), self.scale.customers_per_district);
        self.rows(of, |key, order: Order| {
            let number = part(keys::last_number(key))?;
            ensure!(
                (1..=customers).contains(&order.customer),
                "{}, order {number} is of the missing customer {}",
                name(of),
                order.customer
            );
            orders.push(FoundOrder { number, order, lines: 0 });
            Ok(())
        })?;
        Ok(orders)
    }

    /// The rows of a district, in the order of their keys.
    fn rows<R: Row>(
        &mut self,
        of: DistrictId,
        mut visit: impl FnMut(&[u8], R) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let district = keys::district(of);
        told(self.access.scan(R::TABLE, &district, &district, |key, value| {
            visit(key, decode(key, value)?)?;
            Ok(true)
        }))
    }

    fn check_order_numbers(
        &mut self,
        of: DistrictId,
        district: &District,
        new: &[u32],
        orders: &[FoundOrder],
    ) {
        let key = || name(of);
        let newest = i64::from(district.next_order) - 1;
        let of_orders = orders.last().map_or(0, |seen| seen.number.into());
        self.expect(Condition::NextOrder, key, newest, of_orders);
        if let (Some(&first), Some(&last)) = (new.first(), new.last()) {
            self.expect(Condition::NextOrder, key, newest, last.into());
            self.expect(Condition::NewOrders, key, i64::from(last - first) + 1, new.len() as i64);
        }
    }

    /// Counts the orders' lines. It returns the sum delivered to each of the district's customers, in cents.
    fn check_lines(&mut self, of: DistrictId, orders: &mut [FoundOrder]) -> anyhow::Result<Vec<i64>> {
        let mut delivered_cents = vec![0; self.scale.customers_per_district as usize];
        let (mut lines, mut not_as_order) = (0, Vec::new());
        self.rows(of, |key, line: OrderLine| {
            let (number, place) = part(keys::order_and_line(key))?;
            lines += 1;
            // Lines without an order are too many for the district.
            let Ok(at) = orders.binary_search_by_key(&number, |seen| seen.number) else { return Ok(()) };
            let seen = &mut orders[at];
            seen.lines += 1;
            if line.delivered != 0 {
                delivered_cents[seen.order.customer as usize - 1] += line.amount;
            }
            if (line.delivered != 0) != (seen.order.carrier != 0) {
                not_as_order.push((number, place, seen.order.carrier != 0));
            }
            Ok(())
        })?;
        for (number, place, is_delivered) in not_as_order {
            let key = || format!("{}, line {place}", order_name(of, number));
            self.expect(Condition::Delivered, key, is_delivered.into(), (!is_delivered).into());
        }
        let expected = orders.iter().map(|seen| i64::from(seen.order.lines)).sum();
        self.expect(Condition::LinesOfDistrict, || name(of), expected, lines);
        Ok(delivered_cents)
    }

    fn check_orders(&mut self, of: DistrictId, new: &[u32], orders: &[FoundOrder]) {
        for seen in orders {
            let key = || order_name(of, seen.number);
            self.expect(Condition::LinesOfOrder, key, seen.order.lines.into(), seen.lines);
            let is_new = new.binary_search(&seen.number).is_ok();
            self.expect(Condition::Carrier, key, is_new.into(), (seen.order.carrier == 0).into());
        }
        for number in new {
            // A new order that is no order has no carrier either.
            let is_there = orders.binary_search_by_key(number, |seen| seen.number).is_ok();
            self.expect(Condition::Carrier, || order_name(of, *number), 1, is_there.into());
        }
    }

    /// Gives how many orders customers say were delivered to them since the load.
    fn check_customers(&mut self, of: DistrictId, delivered_cents: &[i64]) -> anyhow::Result<i64> {
        let mut customers: Vec<(u32, i64, i64)> = Vec::new();
        let (mut names, mut deliveries) = (Vec::new(), 0);
        self.rows(of, |key, customer: Customer| {
            let number = part(keys::last_number(key))?;
            names.push(keys::customer_name(of, &customer.last, &customer.first, number).to_vec());
            customers.push((number, customer.balance, customer.ytd_payment));
            deliveries += i64::from(customer.deliveries);
            Ok(())
        })?;
        ensure!(
            customers.iter().map(|customer| customer.0).eq(1..=self.scale.customers_per_district),
            "{} has {} customers, or other ones than 1 to {}",
            name(of),
            customers.len(),
            self.scale.customers_per_district
        );
        for (&(number, balance, payments), &delivered) in customers.iter().zip(delivered_cents) {
            let key = || format!("{}, customer {number}", name(of));
            let paid = self.paid.by_customer(of, number);
            self.expect(Condition::Balance, key, delivered - paid, balance);
            self.expect(Condition::Payments, key, delivered, balance + payments);
        }
        self.check_index(Condition::CustomerNames, tables::CUSTOMER_NAME, of, names)?;
        Ok(deliveries)
    }

    /// Whether an index has just these keys of a district.
    fn check_index(
        &mut self,
        condition: Condition,
        table: Table,
        of: DistrictId,
        mut expected: Vec<Vec<u8>>,
    ) -> anyhow::Result<()> {
        expected.sort_unstable();
        let (district, mut found) = (keys::district(of), Vec::new());
        told(self.access.scan(table, &district, &district, |key, _| {
            found.push(key.to_vec());
            Ok(true)
        }))?;
        for key in found.iter().filter(|key| expected.binary_search(key).is_err()) {
            self.expect(condition, || format!("{}, entry {key:?}", name(of)), 0, 1);
        }
        for key in expected.iter().filter(|key| found.binary_search(key).is_err()) {
            self.expect(condition, || format!("{}, entry {key:?}", name(of)), 1, 0);
        }
        Ok(())
    }
}

fn name(of: DistrictId) -> String {
    format!("warehouse {}, district {}", of.warehouse, of.district)
}

fn order_name(of: DistrictId, number: u32) -> String {
    format!("{}, order {number}", name(of))
}
