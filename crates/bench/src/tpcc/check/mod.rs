//! The consistency conditions (3.3.2), over the whole database.

mod district;
mod paid;
mod told;

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use self::district::Checker;
use self::paid::Paid;
use super::Dataset;
use super::access::Access;
use crate::engine::{Engine, Session};

/// No more are told by a client of the check.
const VIOLATIONS_MAX: usize = 100;

/// A condition that must hold while no transaction is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// 1: a warehouse's earnings are the sum of its districts'.
    DistrictsOfWarehouse,
    /// 2: a district's next order follows its newest, which is the newest of the new ones, if there are any.
    NextOrder,
    /// 3: a district's new orders have no gaps.
    NewOrders,
    /// 4: a district has as many lines as its orders say.
    LinesOfDistrict,
    /// 5: an order has no carrier if and only if it is new.
    Carrier,
    /// 6: an order has as many lines as it says.
    LinesOfOrder,
    /// 7: a line has no delivery date if and only if its order has no carrier.
    Delivered,
    /// 8: a warehouse's earnings are the sum in the history.
    HistoryOfWarehouse,
    /// 9: a district's earnings are the sum in the history.
    HistoryOfDistrict,
    /// 10: a customer's balance is the sum of the delivered orders less the payments in the history.
    Balance,
    /// 11: a district's orders that are not new are those that were delivered, before the load or, as its
    /// customers say, since.
    OrdersOfDistrict,
    /// 12: a customer's balance and payments together are the sum of the delivered orders.
    Payments,
    /// Not in the specification: the index of names has a district's customers.
    CustomerNames,
    /// Not in the specification: the index of customers' orders has a district's orders.
    CustomerOrders,
}

impl Condition {
    /// Number of conditions.
    pub const COUNT: usize = Self::CustomerOrders as usize + 1;
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The condition.
    pub condition: Condition,
    /// The row, or the subject of the sum.
    pub key: String,
    /// The correct value; money in cents.
    pub expected: i64,
    /// The value found.
    pub found: i64,
}

impl Display for Violation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { condition, key, expected, found } = self;
        match *condition as u8 + 1 {
            number @ 1..=12 => write!(to, "condition 3.3.2.{number} ({condition:?})")?,
            _ => write!(to, "{condition:?}")?,
        }
        write!(to, " does not hold at {key}: {found} instead of {expected}")
    }
}

/// Finds the conditions that do not hold, by scans over all tables but items and stock. Nothing else may
/// write meanwhile.
///
/// # Errors
/// Errors of the engine, of records that are not TPC-C's, and of rows that are missing altogether.
pub fn check(engine: &dyn Engine, dataset: &Dataset, clients: usize) -> anyhow::Result<Vec<Violation>> {
    let scale = dataset.scale;
    scale.check()?;
    let paid = Arc::new(Mutex::new(Paid::new(&scale)));
    let to = Arc::clone(&paid);
    engine.run(1, Arc::new(move |_, session| lock(&to).add_history(&mut Access::new(session))))?;
    let paid = std::mem::take(&mut *lock(&paid));
    let found = Arc::new(Mutex::new(Vec::new()));
    let (to, next) = (Arc::clone(&found), AtomicU32::new(1));
    let clients = clients.clamp(1, scale.warehouses as usize);
    let client = move |_, session: &mut dyn Session| {
        let mut checker = Checker::new(Access::new(session), scale, &paid);
        loop {
            let warehouse = next.fetch_add(1, Ordering::Relaxed);
            if warehouse > scale.warehouses {
                break;
            }
            checker.check_warehouse(warehouse)?;
        }
        lock(&to).append(&mut checker.into_violations());
        Ok(())
    };
    engine.run(clients, Arc::new(client))?;
    let mut found = std::mem::take(&mut *lock(&found));
    found.sort_by(|one: &Violation, other| (one.condition, &one.key).cmp(&(other.condition, &other.key)));
    Ok(found)
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
