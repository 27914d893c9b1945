//! Keys of the nine tables and of two indexes: numbers big-endian, so that keys are in their order.

use super::rows::Text;

/// A district of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DistrictId {
    pub warehouse: u32,
    /// 1 to 10.
    pub district: u8,
}

/// Writer of a row of the history: the table has no key, so each writer appends to a part of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// The load, for a warehouse.
    Load(u32),
    /// A client of a run.
    Client(usize),
}

macro_rules! key {
    ($bytes:expr; $($part:expr),*) => {{
        let mut key = [0; $bytes];
        let mut at = 0;
        $(
            let part = $part;
            key[at..at + part.len()].copy_from_slice(&part);
            at += part.len();
        )*
        debug_assert_eq!(at, $bytes);
        key
    }};
}

pub(super) fn warehouse(warehouse: u32) -> [u8; 4] {
    warehouse.to_be_bytes()
}

pub(super) fn district(of: DistrictId) -> [u8; 5] {
    key!(5; of.warehouse.to_be_bytes(), [of.district])
}

pub(super) fn customer(of: DistrictId, customer: u32) -> [u8; 9] {
    key!(9; district(of), customer.to_be_bytes())
}

/// `number` counts its writer's rows.
pub(super) fn history(writer: Writer, number: u64) -> [u8; 13] {
    let (kind, part) = match writer {
        Writer::Load(warehouse) => (0, warehouse),
        Writer::Client(client) => (1, client as u32),
    };
    key!(13; [kind], part.to_be_bytes(), number.to_be_bytes())
}

/// The number of a key of [`history`]; `None` if another has written it.
pub(super) fn history_number(writer: Writer, key: &[u8]) -> Option<u64> {
    let number = u64::from_be_bytes(*key.last_chunk()?);
    (history(writer, number) == key).then_some(number)
}

/// Key in the tables of orders and of new orders.
pub(super) fn order(of: DistrictId, order: u32) -> [u8; 9] {
    key!(9; district(of), order.to_be_bytes())
}

/// `line` 0 is before all of them.
pub(super) fn order_line(of: DistrictId, number: u32, line: u8) -> [u8; 10] {
    key!(10; order(of, number), [line])
}

pub(super) fn item(item: u32) -> [u8; 4] {
    item.to_be_bytes()
}

pub(super) fn stock(warehouse: u32, item: u32) -> [u8; 8] {
    key!(8; warehouse.to_be_bytes(), item.to_be_bytes())
}

/// Prefix of the keys of customers with that last name.
pub(super) fn last_name(of: DistrictId, last: &Text<16>) -> [u8; 21] {
    key!(21; district(of), *last.padded())
}

pub(super) fn customer_name(of: DistrictId, last: &Text<16>, first: &Text<16>, customer: u32) -> [u8; 41] {
    key!(41; last_name(of, last), *first.padded(), customer.to_be_bytes())
}

/// Order `u32::MAX` is before all of the customer's.
pub(super) fn customer_order(of: DistrictId, number: u32, order: u32) -> [u8; 13] {
    key!(13; customer(of, number), (u32::MAX - order).to_be_bytes())
}

/// The last number of a key; `None` if it has none.
pub(super) fn last_number(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*key.last_chunk()?))
}

/// The order of a key of [`customer_order`].
pub(super) fn order_of_customer(key: &[u8]) -> Option<u32> {
    Some(u32::MAX - last_number(key)?)
}

/// The order and the line's number of a key of [`order_line`].
pub(super) fn order_and_line(key: &[u8]) -> Option<(u32, u8)> {
    let (line, rest) = key.split_last()?;
    Some((last_number(rest)?, *line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_parts() {
        let (first, second) =
            (DistrictId { warehouse: 1, district: 10 }, DistrictId { warehouse: 256, district: 1 });
        assert!(order_line(first, 1, 15) < order_line(first, 2, 1));
        assert!(order_line(first, 300, 1) < order_line(second, 1, 1));
        assert!(customer_order(first, 7, 3001) < customer_order(first, 7, 3000), "the newest is first");
        let (short, long) = (Text::new(b"BARBAR"), Text::new(b"BARBARABLE"));
        let (a, z) = (Text::new(b"a"), Text::new(b"z"));
        assert!(customer_name(first, &short, &z, 2) < customer_name(first, &long, &a, 1));
        assert!(customer_name(first, &short, &a, 2) < customer_name(first, &short, &z, 1));
    }

    #[test]
    fn what_a_key_was_made_of_can_be_read() {
        let of = DistrictId { warehouse: 3, district: 4 };
        assert_eq!(order_and_line(&order_line(of, 5, 6)), Some((5, 6)));
        assert_eq!(order_of_customer(&customer_order(of, 5, 77)), Some(77));
        assert_eq!(last_number(&order(of, 9)), Some(9));
    }
}
