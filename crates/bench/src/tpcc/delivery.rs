//! The Delivery transaction (2.7), of one district.

use super::access::{Access, Ending, decode, part};
use super::keys::{self, DistrictId};
use super::random::Random;
use super::rows::{Customer, Order, OrderLine};
use super::tables;
use crate::engine::Failure;

/// Input of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    carrier: u8,
    date: u64,
}

impl Delivery {
    pub fn draw(random: &mut Random, date: u64) -> Self {
        Self { carrier: random.between(1, 10) as u8, date }
    }

    /// Delivers the oldest new order of a district; none has a number below `from`. It gives its number;
    /// `None` if there is none.
    pub fn execute(
        &self,
        access: &mut Access<'_>,
        of: DistrictId,
        from: u32,
    ) -> Result<Ending<Option<u32>>, Failure> {
        let oldest = access.first_key(tables::NEW_ORDER, &keys::order(of, from), &keys::district(of))?;
        let Some(key) = oldest else { return Ok(Ending::Commit(None)) };
        access.remove(tables::NEW_ORDER, &key)?;
        let mut order: Order = access.get(&key)?;
        order.carrier = self.carrier;
        access.put(&key, &order)?;
        let mut lines: Vec<(u8, OrderLine)> = Vec::with_capacity(order.lines.into());
        access.scan(tables::ORDER_LINE, &key, &key, |key, value| {
            let (_, number) = part(keys::order_and_line(key))?;
            lines.push((number, decode(key, value)?));
            Ok(true)
        })?;
        let order_number = part(keys::last_number(&key))?;
        for (number, line) in &mut lines {
            line.delivered = self.date;
            access.put(&keys::order_line(of, order_number, *number), line)?;
        }
        let key = keys::customer(of, order.customer);
        let mut customer: Customer = access.get(&key)?;
        customer.balance += lines.iter().map(|(_, line)| line.amount).sum::<i64>();
        customer.deliveries += 1;
        access.put(&key, &customer)?;
        Ok(Ending::Commit(Some(order_number)))
    }
}
