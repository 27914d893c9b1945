//! Write units and the borders of images, shared by a store and its price model.

/// Smallest and largest unit: one holds the largest node; beyond the upper end it gains nothing and costs
/// buffers.
pub const UNIT_BYTES: (u32, u32) = (64 << 10, 4 << 20);
/// The unit where a profile says nothing.
pub const DEFAULT_UNIT_BYTES: u32 = 256 << 10;
/// Largest distance of borders that images keep within, but for a unit's.
const BORDER_BYTES_MAX: u32 = 64 << 10;
const BORDER_BYTES_MIN: u32 = 4096;

/// A learned size, rounded up to a power of two within a minimum and a maximum.
pub fn fitting(bytes: u64, (min, max): (u32, u32)) -> u32 {
    bytes.clamp(1, 1 << 30).next_power_of_two().clamp(min.into(), max.into()) as u32
}

/// Smallest and largest distance of the borders that images keep within, in write units of `unit_bytes`.
pub fn border_bytes(unit_bytes: u32) -> (u32, u32) {
    (BORDER_BYTES_MIN, unit_bytes.min(BORDER_BYTES_MAX))
}
