//! The Order-Status transaction (2.6).

use super::access::{Access, Ending, decode, part};
use super::keys::{self, DistrictId};
use super::payment::Who;
use super::random::{Constants, Random};
use super::rows::{Customer, Order, OrderLine};
use super::tables;
use super::{DISTRICTS, Scale};
use crate::engine::Failure;

/// Input of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderStatus {
    pub of: DistrictId,
    pub who: Who,
}

/// Output of the transaction, in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub customer: Customer,
    pub order: Order,
    pub lines: Vec<OrderLine>,
}

impl OrderStatus {
    pub fn draw(random: &mut Random, constants: &Constants, scale: &Scale, warehouse: u32) -> Self {
        let of = DistrictId { warehouse, district: random.between(1, DISTRICTS.into()) as u8 };
        Self { of, who: Who::draw(random, constants, scale) }
    }

    pub fn execute(&self, access: &mut Access<'_>) -> Result<Ending<Status>, Failure> {
        let of = self.of;
        let number = self.who.find(access, of)?;
        let customer = access.get(&keys::customer(of, number))?;
        let newest = keys::customer_order(of, number, u32::MAX);
        let newest = access.first_key(tables::CUSTOMER_ORDER, &newest, &keys::customer(of, number))?;
        // Each customer has had an order since the load.
        let newest = part(newest.as_deref().and_then(keys::order_of_customer))?;
        let key = keys::order(of, newest);
        let order = access.get(&key)?;
        let mut lines = Vec::new();
        access.scan(tables::ORDER_LINE, &key, &key, |key, value| {
            lines.push(decode::<OrderLine>(key, value)?);
            Ok(true)
        })?;
        Ok(Ending::Commit(Status { customer, order, lines }))
    }
}
