//! Each condition is broken once, and found at its place.

use super::super::keys::Writer;
use super::super::rows::{Customer, History, Order, OrderLine, Warehouse};
use super::*;

const SOME: DistrictId = DistrictId { warehouse: 2, district: 3 };

/// Conditions and places that the check reports for a database in which `work` was done.
fn found(
    work: impl Fn(&mut Access<'_>) -> Result<(), Failure> + Send + Sync + 'static,
) -> Vec<(Condition, String)> {
    let store = Store::loaded(&SMALL);
    store.run(&SMALL, &RANDOM, 2, 100);
    assert_eq!(store.check(&SMALL), []);
    store.with(work);
    let violations = store.check(&SMALL).into_iter();
    violations.map(|violation| (violation.condition, violation.key)).collect()
}

fn change<R: Row>(access: &mut Access<'_>, key: &[u8], how: impl Fn(&mut R)) -> Result<(), Failure> {
    let mut row = access.get(key)?;
    how(&mut row);
    access.put(key, &row)
}

/// At the warehouse, the district, or a part of it.
fn at(condition: Condition, part: &str) -> (Condition, String) {
    (
        condition,
        if part.is_empty() {
            "warehouse 2, district 3".into()
        } else {
            format!("warehouse 2, district 3, {part}")
        },
    )
}

/// Order 1 is delivered since the load, order 30 is not: the run was short.
const DELIVERED: u32 = 1;

#[test]
fn conditions_1_and_8_what_a_warehouse_has_earned() {
    let found = found(|access| change(access, &keys::warehouse(2), |row: &mut Warehouse| row.ytd += 1));
    let place = || "warehouse 2".to_owned();
    assert_eq!(found, [(Condition::DistrictsOfWarehouse, place()), (Condition::HistoryOfWarehouse, place())]);
}

#[test]
fn condition_2_the_next_order() {
    let found =
        found(|access| change(access, &keys::district(SOME), |row: &mut District| row.next_order += 1));
    let place = || at(Condition::NextOrder, "");
    assert_eq!(found, [place(), place()], "of orders, and of new orders");
}

#[test]
fn conditions_3_and_5_new_orders() {
    // Between the oldest and the newest.
    let missing = found(|access| access.remove(tables::NEW_ORDER, &keys::order(SOME, 29)));
    let conditions: Vec<_> = missing.iter().map(|found| found.0).collect();
    assert_eq!(conditions, [Condition::NewOrders, Condition::Carrier, Condition::OrdersOfDistrict]);
    assert_eq!(missing[1], at(Condition::Carrier, "order 29"));
    let too_many = found(|access| access.put_key(tables::NEW_ORDER, &keys::order(SOME, DELIVERED)));
    assert!(too_many.contains(&at(Condition::NewOrders, "")), "{too_many:?}");
    assert!(too_many.contains(&at(Condition::Carrier, "order 1")), "{too_many:?}");
}

#[test]
fn conditions_4_and_6_lines() {
    let missing = found(|access| access.remove(tables::ORDER_LINE, &keys::order_line(SOME, DELIVERED, 2)));
    assert_eq!(missing, [at(Condition::LinesOfDistrict, ""), at(Condition::LinesOfOrder, "order 1")]);
    let without_order = found(|access| {
        let line: OrderLine = access.get(&keys::order_line(SOME, DELIVERED, 2))?;
        access.put(&keys::order_line(SOME, 1_000_000, 1), &line)
    });
    assert_eq!(without_order, [at(Condition::LinesOfDistrict, "")]);
}

#[test]
fn conditions_5_and_7_carriers() {
    let found =
        found(|access| change(access, &keys::order(SOME, DELIVERED), |row: &mut Order| row.carrier = 0));
    assert_eq!(found[0], at(Condition::Carrier, "order 1"));
    assert!(found.len() > 5 && found[1..].iter().all(|found| found.0 == Condition::Delivered), "{found:?}");
}

#[test]
fn condition_7_dates_of_delivery() {
    let found = found(|access| {
        change(access, &keys::order_line(SOME, DELIVERED, 2), |row: &mut OrderLine| row.delivered = 0)
    });
    // Delivered before the load, for nothing: no sum changes.
    assert_eq!(found, [at(Condition::Delivered, "order 1, line 2")]);
}

#[test]
fn conditions_8_to_10_the_history() {
    let found = found(|access| {
        // The third district's first customer.
        change(access, &keys::history(Writer::Load(2), 2 * 30), |row: &mut History| row.amount += 1)
    });
    let expected = [
        (Condition::HistoryOfWarehouse, "warehouse 2".to_owned()),
        at(Condition::HistoryOfDistrict, ""),
        at(Condition::Balance, "customer 1"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn condition_9_what_a_district_has_earned() {
    let found = found(|access| change(access, &keys::district(SOME), |row: &mut District| row.ytd += 1));
    assert_eq!(
        found,
        [(Condition::DistrictsOfWarehouse, "warehouse 2".to_owned()), at(Condition::HistoryOfDistrict, "")]
    );
}

#[test]
fn conditions_10_and_12_balances() {
    let found =
        found(|access| change(access, &keys::customer(SOME, 4), |row: &mut Customer| row.balance += 1));
    assert_eq!(found, [at(Condition::Balance, "customer 4"), at(Condition::Payments, "customer 4")]);
}

#[test]
fn conditions_10_and_12_amounts_that_were_delivered() {
    let found = found(|access| {
        change(access, &keys::order_line(SOME, DELIVERED, 2), |row: &mut OrderLine| row.amount += 1)
    });
    let conditions: Vec<_> = found.iter().map(|found| found.0).collect();
    assert_eq!(conditions, [Condition::Balance, Condition::Payments]);
}

#[test]
fn condition_11_deliveries() {
    let found =
        found(|access| change(access, &keys::customer(SOME, 4), |row: &mut Customer| row.deliveries += 1));
    assert_eq!(found, [at(Condition::OrdersOfDistrict, "")]);
}

#[test]
fn condition_12_payments() {
    let found =
        found(|access| change(access, &keys::customer(SOME, 4), |row: &mut Customer| row.ytd_payment += 1));
    assert_eq!(found, [at(Condition::Payments, "customer 4")]);
}

#[test]
fn the_indexes() {
    let missing = found(|access| {
        let first = access.first_key(tables::CUSTOMER_NAME, &keys::district(SOME), &keys::district(SOME))?;
        access.remove(tables::CUSTOMER_NAME, &first.unwrap_or_default())
    });
    assert_eq!(missing.iter().map(|found| found.0).collect::<Vec<_>>(), [Condition::CustomerNames]);
    let too_many =
        found(|access| access.put_key(tables::CUSTOMER_ORDER, &keys::customer_order(SOME, 4, 1_000_000)));
    assert_eq!(too_many.iter().map(|found| found.0).collect::<Vec<_>>(), [Condition::CustomerOrders]);
}

#[test]
fn a_violation_says_where_and_how_much() {
    let violation =
        Violation { condition: Condition::Balance, key: "warehouse 1".into(), expected: 5, found: 7 };
    let text = violation.to_string();
    assert_eq!(text, "condition 3.3.2.10 (Balance) does not hold at warehouse 1: 7 instead of 5");
}
