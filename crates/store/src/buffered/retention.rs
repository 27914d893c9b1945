//! Decides which versions stay when tables are merged.

use super::ranges::Fragment;
use super::versions::{Held, KeyVersions};
use crate::index::{ActiveSnapshots, Horizon, Version};
use crate::log::Timestamp;

/// Decides which versions may go. All versions of a merge are judged by the same value, as those that stay
/// and those that hide them must be judged by the same snapshots. If some of these end meanwhile, the merge
/// keeps more than it needs to.
pub(crate) struct Retention {
    /// All commits up to this one can be seen. It was read before snapshots were looked at, so that a
    /// snapshot that comes later sees at least these.
    pub visible: Timestamp,
    snapshots: ActiveSnapshots,
    /// No commit up to this one is replayed.
    replayed_behind: Timestamp,
}

impl Retention {
    /// The present state.
    pub fn new(horizon: &dyn Horizon) -> Self {
        let visible = horizon.visible();
        Self { visible, snapshots: horizon.snapshots().now(), replayed_behind: horizon.replayed_behind() }
    }

    /// Whether a snapshot sees a version that was committed at `from` and replaced at `until`.
    fn is_seen(&self, from: Timestamp, until: Timestamp) -> bool {
        self.snapshots.any_within(from, until)
    }

    /// Removes from the versions of a key, the newest first, those that no reader will see, and returns them.
    /// `removed`: the removals of ranges that have the key. `is_oldest`: no older version of the key is
    /// anywhere else.
    pub fn take_unneeded(
        &self,
        versions: &mut Vec<Held>,
        removed: Option<&Fragment>,
        is_oldest: bool,
    ) -> Vec<Held> {
        // The next newer one that is not made of operands, which go with this one.
        let mut newer: Option<Timestamp> = None;
        let gone = versions.extract_if(.., |own| {
            let timestamp = own.version.timestamp();
            let removed_from = removed.and_then(|removed| removed.first_after(timestamp));
            let hidden_from = earlier(newer, removed_from);
            if !own.version.is_operands() || planted!(BaseUnderOperandsDropped) {
                newer = Some(timestamp);
            }
            // A snapshot sees a version from its own commit on until the next one's.
            hidden_from.is_some_and(|until| {
                until <= self.visible
                    && (!self.is_seen(timestamp, until) || planted!(VersionDroppedUnderSnapshot))
            })
        });
        let mut gone: Vec<Held> = gone.collect();
        while is_oldest
            && let Some(last) = versions.pop_if(|last| {
                let timestamp = last.version.timestamp();
                last.version.is_tombstone()
                    && timestamp <= self.visible
                    && !self.is_seen(Timestamp(0), timestamp)
                    && !(last.version.is_merged_away() && self.may_be_replayed(timestamp))
            })
        {
            gone.push(last);
        }
        gone
    }

    /// Whether, after a crash, the log may be replayed from this commit or an earlier one. The log has
    /// operands of keys that merges have left nothing of, and the base of these operands is gone.
    fn may_be_replayed(&self, timestamp: Timestamp) -> bool {
        timestamp > self.replayed_behind
    }

    /// Whether operands of two commits, the older one first, may become one version, of the newer one.
    pub fn may_join(&self, older: Timestamp, newer: Timestamp) -> bool {
        newer <= self.visible && (!self.is_seen(older, newer) || planted!(OperandsJoinedAcrossSnapshot))
    }

    /// The removals of a range that are still needed, the newest first. `is_oldest`: no older version of its
    /// keys is anywhere else.
    pub fn needed(&self, range: &Fragment, is_oldest: bool) -> Vec<Timestamp> {
        let mut versions = KeyVersions::default();
        for removed_at in &range.removed_at {
            versions.push(Version::tombstone(*removed_at), &[]);
        }
        self.take_unneeded(&mut versions.all, None, is_oldest);
        versions.all.iter().map(|held| held.version.timestamp()).collect()
    }

    /// The newest of a range's removals that all readers see: none of them sees an older version there.
    pub fn known(&self, range: &Fragment) -> Option<Timestamp> {
        let is_known = |at: &Timestamp| *at <= self.visible && !self.is_seen(Timestamp(0), *at);
        range.removed_at.iter().copied().find(is_known)
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffered::versions::KeyVersions;
    use crate::index::{FixedHorizon, Version};

    fn versions(all: &[i64]) -> Vec<Held> {
        let mut versions = KeyVersions::default();
        for number in all {
            let timestamp = Timestamp(number.unsigned_abs());
            let version = if *number < 0 { Version::tombstone(timestamp) } else { Version::put(timestamp) };
            versions.push(version, &[]);
        }
        versions.all
    }

    /// The versions that are left, with snapshots of these timestamps. Negative numbers are tombstones.
    fn left(all: &[i64], visible: u64, taken: &[u64], is_oldest: bool) -> Vec<i64> {
        left_of(all, &[], visible, taken, is_oldest)
    }

    /// The same for a key in a range with these removals.
    fn left_of(all: &[i64], removed: &[u64], visible: u64, taken: &[u64], is_oldest: bool) -> Vec<i64> {
        let removed_at: Vec<Timestamp> = removed.iter().copied().map(Timestamp).collect();
        let range = Fragment { lower: vec![0], upper: vec![9], removed_at };
        let removed = Some(range).filter(|range| !range.removed_at.is_empty());
        let horizon = FixedHorizon::new(visible, visible, taken);
        let mut versions = versions(all);
        let count = versions.len();
        let gone = Retention::new(&horizon).take_unneeded(&mut versions, removed.as_ref(), is_oldest);
        assert_eq!(versions.len() + gone.len(), count);
        let number = |own: &Held| {
            let number = own.version.timestamp().0 as i64;
            if own.version.is_tombstone() { -number } else { number }
        };
        versions.iter().map(number).collect()
    }

    #[test]
    fn versions_stay_for_the_snapshots_that_see_them() {
        assert_eq!(left(&[9, 7, 5, 3], 20, &[], false), [9]);
        assert_eq!(left(&[9, 7, 5, 3], 20, &[7], false), [9, 7]);
        assert_eq!(left(&[9, 7, 5, 3], 20, &[4, 8], false), [9, 7, 3]);
        assert_eq!(left(&[9, 7, 5, 3], 20, &[2], false), [9]);
        // The newer one may not be visible yet: a snapshot that comes would miss it.
        assert_eq!(left(&[9, 7, 5], 8, &[], false), [9, 7]);
        assert_eq!(left(&[9, 7, 5], 6, &[], false), [9, 7, 5]);
    }

    #[test]
    fn what_a_range_removes_goes_unless_a_snapshot_sees_it() {
        assert!(left_of(&[7, 5], &[9], 20, &[], false).is_empty());
        assert_eq!(left_of(&[7, 5], &[9], 20, &[8], false), [7]);
        assert_eq!(left_of(&[7, 5], &[9], 8, &[], false), [7]);
        assert_eq!(left_of(&[7, 5], &[6], 20, &[], false), [7]);
        assert_eq!(left_of(&[7, 5], &[6], 20, &[5], false), [7, 5]);
        assert_eq!(left_of(&[7, 5], &[9, 6, 2], 20, &[5, 8], false), [7, 5]);
        assert_eq!(left_of(&[7, 5], &[4], 20, &[], true), [7]);
    }

    #[test]
    fn regression_a_snapshot_that_comes_meanwhile_keeps_nothing_whose_removal_went() {
        let horizon = FixedHorizon::new(20, 20, &[]);
        let retention = Retention::new(&horizon);
        let range = Fragment { lower: vec![0], upper: vec![9], removed_at: vec![Timestamp(9)] };
        assert!(retention.needed(&range, true).is_empty());
        let taken = horizon.snapshots().take(Timestamp(0), |_| {
            let mut versions = versions(&[5]);
            assert_eq!(retention.take_unneeded(&mut versions, Some(&range), true).len(), 1);
            Ok(Timestamp(20))
        });
        taken.unwrap();
    }

    #[test]
    fn what_merges_have_removed_stays_as_long_as_they_may_be_replayed() {
        let left = |replayed_behind, is_oldest| {
            let mut versions = KeyVersions::default();
            versions.push(Version::merged_away(Timestamp(7)), &[]);
            let horizon = FixedHorizon::new(20, replayed_behind, &[]);
            Retention::new(&horizon).take_unneeded(&mut versions.all, None, is_oldest);
            versions.all.len()
        };
        assert_eq!([left(6, true), left(7, true), left(7, false)], [1, 0, 1]);
    }

    #[test]
    fn a_tombstone_goes_where_it_hides_nothing() {
        assert!(left(&[-9, 7], 20, &[], true).is_empty());
        assert_eq!(left(&[-9, 7], 20, &[], false), [-9]);
        assert_eq!(left(&[-9, 7], 8, &[], true), [-9, 7]);
        assert_eq!(left(&[-9, 7], 20, &[8], true), [-9, 7]);
        assert!(left(&[-9, 7], 20, &[9], true).is_empty());
        assert_eq!(left(&[9, -7, 5], 20, &[7], true), [9]);
        assert_eq!(left(&[9, -7, 5], 20, &[6, 7], true), [9, -7, 5]);
    }
}
