//! Where requests begin within a stripe, against how long they are: the axes of the paper's Figures 6 to 8.

use std::collections::HashMap;

use flashgrain_model::Access;
use serde::Serialize;

/// The most different points of one file.
const POINTS_MAX: usize = 2000;

/// Requests of one operation, length and offset within a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpreadPoint {
    /// Whether they are reads; else they are writes.
    pub is_read: bool,
    /// The offset within a stripe, in bytes.
    pub offset_bytes: u64,
    /// The length, in bytes.
    pub length_bytes: u64,
    /// How many.
    pub requests: u64,
}

/// The points of one file.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    stripe_bytes: u64,
    points: HashMap<(bool, u64, u64), u64>,
    /// Requests that found no room.
    pub unshown: u64,
}

impl Spread {
    pub fn new(stripe_bytes: u64) -> Self {
        Self { stripe_bytes: stripe_bytes.max(1), points: HashMap::new(), unshown: 0 }
    }

    pub fn add(&mut self, access: Access, offset: u64, length: u64) {
        let key = (access == Access::Read, offset % self.stripe_bytes, length);
        let is_full = self.points.len() >= POINTS_MAX;
        match self.points.get_mut(&key) {
            Some(count) => *count += 1,
            None if is_full => self.unshown += 1,
            None => {
                self.points.insert(key, 1);
            }
        }
    }

    /// The points in order.
    pub fn points(&self) -> Vec<SpreadPoint> {
        let point = |(&(is_read, offset_bytes, length_bytes), &requests): (&(bool, u64, u64), &u64)| {
            SpreadPoint { is_read, offset_bytes, length_bytes, requests }
        };
        let mut points: Vec<_> = self.points.iter().map(point).collect();
        points.sort_by_key(|point| (point.is_read, point.offset_bytes, point.length_bytes));
        points
    }
}
