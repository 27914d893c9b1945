//! Ranges of keys between bounds that may be missing.

use std::ops::Bound;

/// From `lower`, with it, to `upper`, without it.
pub fn range<'a>(lower: Option<&'a [u8]>, upper: Option<&'a [u8]>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (lower.map_or(Bound::Unbounded, Bound::Included), upper.map_or(Bound::Unbounded, Bound::Excluded))
}
