//! Sums of the payments in the history.

use anyhow::ensure;

use super::super::access::{Access, decode};
use super::super::keys::DistrictId;
use super::super::rows::History;
use super::super::tables;
use super::super::{DISTRICTS, Scale};
use super::told::told;

/// Sums over the history.
#[derive(Debug, Default)]
pub(super) struct Paid {
    customers_per_district: u32,
    /// To each district of the database.
    to_districts: Vec<i64>,
    /// Sum of the payments by each customer of each district.
    by_customers: Vec<i64>,
}

impl Paid {
    pub fn new(scale: &Scale) -> Self {
        let districts = scale.districts().count();
        Self {
            customers_per_district: scale.customers_per_district,
            to_districts: vec![0; districts],
            by_customers: vec![0; districts * scale.customers_per_district as usize],
        }
    }

    pub fn add_history(&mut self, access: &mut Access<'_>) -> anyhow::Result<()> {
        told(access.scan(tables::HISTORY, &[0], &[], |key, value| {
            let row: History = decode(key, value)?;
            let to = DistrictId { warehouse: row.warehouse, district: row.district };
            let of = DistrictId { warehouse: row.customer_warehouse, district: row.customer_district };
            ensure!(
                self.has(to) && self.has(of) && (1..=self.customers_per_district).contains(&row.customer),
                "the history's row {key:?} is not of this database: {row:?}"
            );
            self.to_districts[Scale::district_index(to)] += row.amount;
            let place = self.place(of, row.customer);
            self.by_customers[place] += row.amount;
            Ok(true)
        }))
    }

    pub fn to_district(&self, of: DistrictId) -> i64 {
        self.to_districts[Scale::district_index(of)]
    }

    pub fn by_customer(&self, of: DistrictId, customer: u32) -> i64 {
        self.by_customers[self.place(of, customer)]
    }

    fn has(&self, of: DistrictId) -> bool {
        of.warehouse > 0
            && (1..=DISTRICTS).contains(&of.district)
            && Scale::district_index(of) < self.to_districts.len()
    }

    fn place(&self, of: DistrictId, customer: u32) -> usize {
        Scale::district_index(of) * self.customers_per_district as usize + customer as usize - 1
    }
}
