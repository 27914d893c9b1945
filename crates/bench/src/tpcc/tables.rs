//! Places in [`TABLES`](super::TABLES).

use crate::engine::Table;

pub const WAREHOUSE: Table = 0;
pub const DISTRICT: Table = 1;
pub const CUSTOMER: Table = 2;
pub const HISTORY: Table = 3;
pub const NEW_ORDER: Table = 4;
pub const ORDERS: Table = 5;
pub const ORDER_LINE: Table = 6;
pub const ITEM: Table = 7;
pub const STOCK: Table = 8;
/// Customers of a district by last name, then by first name. Its values are empty.
pub const CUSTOMER_NAME: Table = 9;
/// Orders of a customer, the newest first. Its values are empty.
pub const CUSTOMER_ORDER: Table = 10;
