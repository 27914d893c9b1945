//! The Stock-Level transaction (2.8).

use super::access::{Access, Ending, decode, part};
use super::keys::{self, DistrictId};
use super::random::Random;
use super::rows::{District, OrderLine, Stock};
use super::tables;
use crate::engine::Failure;

/// How many of a district's newest orders are looked at.
const ORDERS: u32 = 20;

/// Input of the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct StockLevel {
    pub of: DistrictId,
    pub threshold: i32,
}

impl StockLevel {
    pub fn draw(random: &mut Random, of: DistrictId) -> Self {
        Self { of, threshold: random.between(10, 20) as i32 }
    }

    /// The items that were ordered last.
    pub fn items(&self, access: &mut Access<'_>) -> Result<Ending<Vec<u32>>, Failure> {
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
        Ok(Ending::Commit(items))
    }

    /// How many of them are low. Outside of the transaction, so that engines can look for all of them at once
    /// (2.8.2.3 asks for no more).
    pub fn low(&self, access: &mut Access<'_>, items: &[u32]) -> Result<usize, Failure> {
        let stocks: Vec<_> = items.iter().map(|item| keys::stock(self.of.warehouse, *item)).collect();
        let stocks: Vec<&[u8]> = stocks.iter().map(<[u8; 8]>::as_slice).collect();
        let mut low = 0;
        access.get_many(&stocks, |_, stock: Stock| low += usize::from(stock.quantity < self.threshold))?;
        Ok(low)
    }
}
