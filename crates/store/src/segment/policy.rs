//! Placement by age, and the choice of the segments to clean.
//!
//! The age of a segment is the number of bytes that were written to the store since its youngest image was
//! changed. Pages whose last image lies in a young segment change often, and are gathered apart from those
//! that change rarely; the cleaner gathers moved images by their segment's age as well. So a segment becomes
//! garbage as a whole, or hardly at all.
//!
//! The exponent and the thresholds are those that did best over uniform and skewed updates together.

use super::Stream;

/// Groups of images of like lifetimes, each with an open segment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Changed soon after the previous change.
    FreshHot,
    FreshCold,
    /// Moved by the cleaner, and changed not long ago.
    MovedYoung,
    MovedOld,
    Overflow,
    Map,
}

pub(super) const TARGETS: usize = 6;

impl Target {
    pub const ALL: [Self; TARGETS] =
        [Self::FreshHot, Self::FreshCold, Self::MovedYoung, Self::MovedOld, Self::Overflow, Self::Map];

    /// The target to fall back to if there is no segment for this one.
    pub fn instead(self) -> Option<Self> {
        match self {
            Self::FreshHot => Some(Self::FreshCold),
            Self::FreshCold => Some(Self::FreshHot),
            _ => None,
        }
    }

    pub fn stream(self) -> Stream {
        match self {
            Self::FreshHot | Self::FreshCold => Stream::Fresh,
            Self::MovedYoung | Self::MovedOld => Stream::Moved,
            Self::Overflow => Stream::Overflow,
            Self::Map => Stream::Map,
        }
    }
}

/// A page is hot if less than this share of all that is live was written since it was last changed.
const HOT_FRACTION: f64 = 0.5;

/// An image is young if less than this share of all that is live was written since.
const YOUNG_FRACTION: f64 = 1.0;

/// A segment with a larger live fraction is not cleaned: it would cost more than 19 bytes moved for each byte
/// won.
const FULLEST: f64 = 0.95;

/// Target of a changed page, by the bytes that were written between this change and the one before.
pub(super) fn fresh(interval_bytes: Option<u64>, live_bytes: u64) -> Target {
    match interval_bytes {
        Some(interval) if (interval as f64) < HOT_FRACTION * live_bytes as f64 => Target::FreshHot,
        _ => Target::FreshCold,
    }
}

/// Target of an image that the cleaner moves, by the age of its segment, if that is known.
pub(super) fn moved(age_bytes: Option<u64>, live_bytes: u64) -> Target {
    match age_bytes {
        Some(age) if (age as f64) < YOUNG_FRACTION * live_bytes as f64 => Target::MovedYoung,
        _ => Target::MovedOld,
    }
}

/// Benefit of cleaning a segment: bytes won for each byte moved, times the root of its age, because live
/// images of an old segment will stay live for long (Rosenblum and Ousterhout's cost-benefit, with a weaker
/// age). `None` if it is not worth it. Of `filled_bytes` that were put into the segment, `live_bytes` are
/// left.
pub(super) fn worth(live_bytes: u64, filled_bytes: u64, age_bytes: u64) -> Option<f64> {
    let live_share = live_bytes as f64 / filled_bytes.max(1) as f64;
    let worth = (1.0 - live_share) / live_share.max(1e-3) * (age_bytes as f64 + 1.0).sqrt();
    (live_share <= FULLEST).then_some(worth)
}

/// The same when hardly a segment is free: the age does not count, and all of the segment counts as filled.
/// Images that fill less than half a segment certainly fit into one, however badly they pack.
pub(super) fn worth_now(live_bytes: u64, taken_bytes: u64) -> Option<f64> {
    worth(live_bytes, taken_bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emptier_and_older_segments_are_worth_more_and_full_ones_nothing() {
        assert!(worth(10, 100, 50) > worth(20, 100, 50));
        assert!(worth(20, 100, 60) > worth(20, 100, 50));
        // Age makes up for live bytes.
        assert!(worth(60, 100, 10_000) > worth(40, 100, 10));
        assert_eq!(worth(96, 100, 1 << 40), None);
        assert!(worth(0, 100, 0).unwrap().is_finite() && worth(0, 0, 0).is_some());
    }

    #[test]
    fn pages_that_change_again_soon_are_hot_and_new_ones_are_not() {
        assert_eq!(fresh(Some(499), 1000), Target::FreshHot);
        assert_eq!(fresh(Some(500), 1000), Target::FreshCold);
        assert_eq!(fresh(None, 1000), Target::FreshCold);
        assert_eq!((moved(Some(999), 1000), moved(Some(1000), 1000)), (Target::MovedYoung, Target::MovedOld));
    }
}
