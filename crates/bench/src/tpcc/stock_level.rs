//! The Stock-Level transaction (2.8).

use super::access::{Access, Ending, decode, part};
use super::keys::{self, DistrictId, tables};
use super::random::Random;
use super::rows::{District, OrderLine, Stock};
use crate::engine::Failure;

/// How many of a district's newest orders are looked at.
const ORDERS: u32 = 20;

/// What a user asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct StockLevel {
    pub of: DistrictId,
    pub threshold: i32,
}

impl StockLevel {
    pub fn draw(random: &mut Random, of: DistrictId) -> Self {
        Self { of, threshold: random.between(10, 20) as i32 }
    }

    /// How many of the items that were ordered last are low.
    pub fn execute(&self, access: &mut Access<'_>) -> Result<Ending<usize>, Failure> {
        let of = self.of;
        let district: District = access.get(&keys::district(of))?;
        let oldest = district.next_order.saturating_sub(ORDERS);
        let mut items = Vec::new();
        let from = keys::order_line(of, oldest, 0);
        access.scan(tables::ORDER_LINE, &from, &keys::district(of), |key, value| {
            let (order, _) = part(keys::order_and_line(key))?;
            if order >= district.next_order {
                return Ok(false);
            }
            items.push(decode::<OrderLine>(key, value)?.item);
            Ok(true)
        })?;
        items.sort_unstable();
        items.dedup();
        let stocks: Vec<_> = items.iter().map(|item| keys::stock(of.warehouse, *item)).collect();
        let stocks: Vec<&[u8]> = stocks.iter().map(<[u8; 8]>::as_slice).collect();
        let mut low = 0;
        access.get_many(&stocks, |stock: Stock| low += usize::from(stock.quantity < self.threshold))?;
        Ok(Ending::Commit(low))
    }
}
