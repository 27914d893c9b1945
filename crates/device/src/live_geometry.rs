//! The geometry of a device that grows and shrinks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Geometry, Request};

/// A geometry whose capacity may change at any time.
pub(crate) struct LiveGeometry {
    geometry: Geometry,
    capacity_bytes: Arc<AtomicU64>,
}

impl LiveGeometry {
    pub fn new(geometry: Geometry, capacity_bytes: Arc<AtomicU64>) -> Self {
        Self { geometry, capacity_bytes }
    }

    /// As [`Geometry::check`], with the capacity of this moment.
    #[inline]
    pub fn check(&mut self, request: &Request) -> Result<(), Error> {
        self.geometry.capacity_bytes = self.capacity_bytes.load(Ordering::Acquire);
        self.geometry.check(request)
    }

    pub fn offset_align_bytes(&self) -> u32 {
        self.geometry.offset_align_bytes
    }
}
