//! Compares each transaction with the result of a look at every row.

use super::super::access::{Ending, Intent};
use super::super::new_order::NewOrder;
use super::super::order_status::OrderStatus;
use super::super::payment::Who;
use super::super::random::{Constants, Random, Stream};
use super::super::rows::{Customer, Order, OrderLine, Text};
use super::super::stock_level::StockLevel;
use super::*;

const TINY: Dataset = Dataset {
    scale: Scale { warehouses: 1, items: 20, customers_per_district: 5, new_orders_per_district: 2 },
    seed: 3,
    date_seconds: 1,
};
const SOME: DistrictId = DistrictId { warehouse: 1, district: 7 };

fn result<T>(ending: Ending<T>) -> T {
    match ending {
        Ending::Commit(result) => result,
        Ending::RollBack => panic!("rolled back"),
    }
}

#[test]
fn an_order_with_a_wrong_item_leaves_nothing() {
    let store = Store::loaded(&TINY);
    let (constants, mut random) = (Constants::new(TINY.seed), Random::new(1, Stream::Client(0)));
    for _ in 0..1000 {
        let before = store.all_records();
        let order = NewOrder::draw(&mut random, &constants, &TINY.scale, 1, 2);
        let total = store.with(move |access| {
            let items = order.look(access)?;
            Ok(access.transaction(Intent::Write, &mut 0, |access| order.execute(&items, access))?)
        });
        let changed = store.all_records() != before;
        assert_eq!(changed, total.is_some());
        if total.is_none() {
            return;
        }
    }
    panic!("one in a hundred is wrong");
}

#[test]
fn of_several_customers_of_a_name_the_one_in_the_middle_is_meant() {
    let store = Store::empty();
    let last = Text::new(b"SAME");
    for (count, middle) in [(1, 40), (2, 40), (3, 30), (4, 30), (5, 20)] {
        let found = store.with(move |access| {
            // First names are in the opposite order of numbers.
            let firsts = [(b'a', 40), (b'b', 30), (b'c', 20), (b'd', 10), (b'e', 5)];
            for &(first, number) in &firsts[..count] {
                let key = keys::customer_name(SOME, &last, &Text::new(&[first]), number);
                access.put_key(tables::CUSTOMER_NAME, &key)?;
            }
            let longer = keys::customer_name(SOME, &Text::new(b"SAMENESS"), &Text::new(b"a"), 1);
            access.put_key(tables::CUSTOMER_NAME, &longer)?;
            Who::LastName(last).find(access, SOME)
        });
        assert_eq!(found, middle, "of {count}");
    }
}

#[test]
fn a_customer_s_status_has_the_newest_order_with_all_of_its_lines() {
    let store = Store::loaded(&SMALL);
    store.run(&SMALL, &RANDOM, 2, 200);
    let (orders, lines) = (store.rows::<Order>(), store.rows::<OrderLine>());
    let mut later = 0;
    for customer in 1..=30 {
        let asked = OrderStatus { of: SOME, who: Who::Number(customer) };
        let status = store.with(move |access| Ok(result(asked.execute(access)?)));
        let mut of_district = orders.iter().filter(|(key, _)| key.starts_with(&keys::district(SOME)));
        let newest = of_district.rfind(|(_, order)| order.customer == customer);
        let (key, order) = newest.unwrap();
        assert_eq!(status.order, *order);
        let expected = lines.iter().filter(|(line, _)| line.starts_with(key)).map(|(_, line)| *line);
        assert_eq!(status.lines, expected.collect::<Vec<_>>());
        assert_eq!(status.customer, store.rows::<Customer>()[&keys::customer(SOME, customer)[..]]);
        later += u32::from(keys::last_number(key) > Some(30));
    }
    assert!(later > 0, "some have ordered since the load");
}

#[test]
fn the_stock_level_counts_each_low_item_of_the_last_twenty_orders_once() {
    let store = Store::loaded(&SMALL);
    store.run(&SMALL, &RANDOM, 2, 200);
    let (lines, stocks) = (store.rows::<OrderLine>(), store.rows::<Stock>());
    let district = store.rows::<District>()[&keys::district(SOME)[..]];
    let (from, to) = (district.next_order - 20, district.next_order);
    let recent = lines.range(keys::order(SOME, from).to_vec()..keys::order(SOME, to).to_vec());
    let items: std::collections::BTreeSet<_> = recent.map(|(_, line)| line.item).collect();
    let quantity = |item: &u32| stocks[&keys::stock(SOME.warehouse, *item)[..]].quantity;
    for threshold in [10, 20, 50, 200] {
        let asked = StockLevel { of: SOME, threshold };
        let found = store.with(move |access| {
            let items = result(asked.items(access)?);
            asked.low(access, &items)
        });
        assert_eq!(found, items.iter().filter(|item| quantity(item) < threshold).count());
    }
    assert!(items.iter().any(|item| quantity(item) < 50));
}
