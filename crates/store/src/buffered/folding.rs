//! Operands become values as tables are written.
//!
//! The versions of a key are folded from the oldest on:
//!
//! 1. Operands that no snapshot sees apart are gathered.
//! 2. Over a known value, or over nothing, they become the value that the merge operator makes of both, as
//!    one version, of the newest one's commit.
//! 3. Otherwise they join: they become one list, with fewer operands if the operator has one for several.
//!
//! Operands that the operator cannot merge, or whose result would be too long for a table's record, stay as
//! they are.

use super::ranges::Fragment;
use super::retention::Retention;
use super::versions::KeyVersions;
use crate::index::{TreeOperator, Version, operands};
use crate::log::Timestamp;

/// See the module.
pub(crate) struct Folding<'a> {
    pub operator: Option<&'a TreeOperator>,
    pub retention: &'a Retention,
    /// The removals of ranges that have the key.
    pub removed: Option<&'a Fragment>,
    /// Whether all versions of the key that are elsewhere are older than these removals, or newer than all
    /// versions here.
    pub is_removed_for_good: bool,
    /// Whether no older version of the key is anywhere else.
    pub is_oldest: bool,
    /// Bytes that a version has at most.
    pub bytes_max: usize,
}

/// The base of the next operands.
enum Below {
    Unknown,
    Nothing,
    Value(Vec<u8>),
}

/// Versions from the oldest on, as they are made.
struct Folded<'a> {
    key: &'a [u8],
    below: Below,
    /// Lists of operands that no snapshot sees apart.
    gathered: Vec<(Timestamp, &'a [u8])>,
    versions: Vec<(Version, Vec<u8>)>,
    failures: u64,
}

impl Folding<'_> {
    /// Folds the versions of a key, the newest first. It returns how often the operator failed.
    pub fn fold(&self, versions: &mut KeyVersions) -> u64 {
        let below = if self.is_oldest { Below::Nothing } else { Below::Unknown };
        let (key, gathered) = (versions.key(), Vec::new());
        let mut folded = Folded { key, below, gathered, versions: Vec::new(), failures: 0 };
        let mut before = Timestamp(0);
        for held in versions.all.iter().rev() {
            self.add(&mut folded, before, held.version, versions.value(held));
            before = held.version.timestamp();
        }
        self.end(&mut folded);
        let (key, made, failures) = (folded.key.to_vec(), folded.versions, folded.failures);
        versions.begin(&key);
        made.iter().rev().for_each(|(version, value)| versions.push(*version, value));
        failures
    }

    /// Adds the version that follows the one of `before`.
    fn add<'a>(&self, folded: &mut Folded<'a>, before: Timestamp, version: Version, value: &'a [u8]) {
        let timestamp = version.timestamp();
        let removed_at = self.removed.and_then(|range| range.first_after(before));
        if removed_at.is_some_and(|removed_at| removed_at < timestamp) {
            self.end(folded);
            folded.below = if self.is_removed_for_good { Below::Nothing } else { Below::Unknown };
        }
        if version.is_operands() {
            let newest = folded.gathered.last().map(|(newest, _)| *newest);
            if newest.is_some_and(|newest| !self.retention.may_join(newest, timestamp)) {
                self.end(folded);
            }
            folded.gathered.push((timestamp, value));
            return;
        }
        self.end(folded);
        folded.below = match version {
            _ if version.is_overflow() => Below::Unknown,
            _ if version.is_tombstone() => Below::Nothing,
            _ => Below::Value(value.to_vec()),
        };
        folded.versions.push((version, value.to_vec()));
    }

    /// Ends a sequence of gathered operands.
    fn end(&self, folded: &mut Folded<'_>) {
        let gathered = std::mem::take(&mut folded.gathered);
        let Some((newest, _)) = gathered.last().copied() else { return };
        let below = std::mem::replace(&mut folded.below, Below::Unknown);
        let existing = match &below {
            Below::Unknown => return self.join(folded, &gathered),
            Below::Nothing => None,
            Below::Value(value) => Some(value.as_slice()),
        };
        let lists: Option<Vec<_>> = gathered.iter().map(|(_, list)| operands::all(list)).collect();
        let merged = self.operator.zip(lists).map(|(operator, lists)| {
            let mut all = lists.concat();
            if all.len() > 1 && planted!(OperandsMergedNewestFirst) {
                all.reverse();
            }
            operator.full_merge(folded.key, existing, &all)
        });
        match merged {
            Some(Ok(Some(value))) if value.len() <= self.bytes_max => {
                folded.versions.push((Version::put(newest), value.clone()));
                folded.below = Below::Value(value);
            }
            Some(Ok(None)) => {
                folded.versions.push((Version::merged_away(newest), Vec::new()));
                folded.below = Below::Nothing;
            }
            other => {
                folded.failures += u64::from(matches!(other, Some(Err(_))));
                self.join(folded, &gathered);
            }
        }
    }

    /// Joins the gathered operands into as few lists as possible.
    fn join(&self, folded: &mut Folded<'_>, gathered: &[(Timestamp, &[u8])]) {
        let (mut list, mut newest) = (Vec::new(), Timestamp(0));
        for (timestamp, next) in gathered {
            if list.len() + next.len() > self.bytes_max {
                self.shorten(folded.key, &mut list);
                if !list.is_empty() && list.len() + next.len() > self.bytes_max {
                    folded.versions.push((Version::operands(newest), std::mem::take(&mut list)));
                }
            }
            list.extend_from_slice(next);
            newest = *timestamp;
        }
        self.shorten(folded.key, &mut list);
        folded.versions.push((Version::operands(newest), list));
    }

    /// Merges the operands of a list into one, if the operator can.
    fn shorten(&self, key: &[u8], list: &mut Vec<u8>) {
        let all = operands::all(list).filter(|all| all.len() > 1);
        let Some((operator, all)) = self.operator.zip(all) else { return };
        if let Some(one) = operator.partial_merge(key, &all)
            && operands::length(&one) <= self.bytes_max
        {
            list.clear();
            operands::push(list, &one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{AppendOperator, FixedHorizon, own_operators};

    fn list(operand: &[u8]) -> Vec<u8> {
        let mut list = Vec::new();
        operands::push(&mut list, operand);
        list
    }

    /// The folded versions, the newest first: a letter for operands, `=` and a value, or `-`.
    fn folded(all: &[(u64, &str)], taken: &[u64], is_oldest: bool, removed: &[u64]) -> Vec<(u64, String)> {
        folded_over(all, taken, is_oldest, (removed, true))
    }

    /// The same with removals of ranges that may cover newer versions.
    fn folded_over(
        all: &[(u64, &str)],
        taken: &[u64],
        is_oldest: bool,
        (removed, is_removed_for_good): (&[u64], bool),
    ) -> Vec<(u64, String)> {
        let horizon = FixedHorizon::new(90, 90, taken);
        let retention = Retention::new(&horizon);
        let operators = own_operators();
        let operator = operators.of_tree(AppendOperator::NAME);
        let removed_at = removed.iter().copied().map(Timestamp).collect();
        let range = Fragment { lower: vec![0], upper: vec![255], removed_at };
        let mut versions = KeyVersions::default();
        versions.begin(b"k");
        for (timestamp, what) in all {
            let timestamp = Timestamp(*timestamp);
            match what.strip_prefix('=') {
                Some(value) => versions.push(Version::put(timestamp), value.as_bytes()),
                None if *what == "-" => versions.push(Version::tombstone(timestamp), &[]),
                None => versions.push(Version::operands(timestamp), &list(what.as_bytes())),
            }
        }
        let folding = Folding {
            operator: Some(&operator),
            retention: &retention,
            removed: Some(&range).filter(|_| !removed.is_empty()),
            is_removed_for_good,
            is_oldest,
            bytes_max: 8,
        };
        assert_eq!(folding.fold(&mut versions), 0);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let one = |held: &super::super::versions::Held| {
            let value = versions.value(held);
            let what = match held.version {
                version if version.is_operands() => shown(&operands::all(value).unwrap().join(&b","[..])),
                version if version.is_tombstone() => "-".into(),
                _ => format!("={}", shown(value)),
            };
            (held.version.timestamp().0, what)
        };
        versions.all.iter().map(one).collect()
    }

    fn expect(all: &[(u64, &str)]) -> Vec<(u64, String)> {
        all.iter().map(|(timestamp, what)| (*timestamp, (*what).to_owned())).collect()
    }

    #[test]
    fn operands_become_a_value_where_what_they_are_over_is_known() {
        assert_eq!(
            folded(&[(9, "c"), (8, "b"), (5, "=a")], &[], false, &[]),
            expect(&[(9, "=abc"), (5, "=a")])
        );
        assert_eq!(folded(&[(9, "c"), (8, "b")], &[], true, &[]), expect(&[(9, "=bc")]));
        assert_eq!(folded(&[(9, "c"), (5, "-")], &[], false, &[]), expect(&[(9, "=c"), (5, "-")]));
        assert_eq!(folded(&[(9, "c"), (8, "b")], &[], false, &[]), expect(&[(9, "bc")]));
    }

    #[test]
    fn operands_of_different_sides_of_a_snapshot_do_not_join() {
        assert_eq!(folded(&[(9, "c"), (8, "b")], &[8], false, &[]), expect(&[(9, "c"), (8, "b")]));
        assert_eq!(folded(&[(9, "c"), (8, "b")], &[8], true, &[]), expect(&[(9, "=bc"), (8, "=b")]));
        assert_eq!(folded(&[(9, "c"), (8, "b"), (7, "a")], &[8], false, &[]), expect(&[(9, "c"), (8, "ab")]));
        // The newer one may not be visible yet.
        assert_eq!(folded(&[(99, "c"), (8, "b")], &[], false, &[]), expect(&[(99, "c"), (8, "b")]));
    }

    #[test]
    fn what_a_range_has_removed_is_not_below_operands() {
        assert_eq!(folded(&[(9, "c"), (5, "=a")], &[], false, &[7]), expect(&[(9, "=c"), (5, "=a")]));
        assert_eq!(folded(&[(9, "c"), (5, "a")], &[], false, &[7]), expect(&[(9, "=c"), (5, "a")]));
        assert_eq!(folded(&[(9, "c"), (5, "=a")], &[], false, &[4]), expect(&[(9, "=ac"), (5, "=a")]));
    }

    #[test]
    fn operands_over_a_removal_wait_for_what_may_lie_below() {
        assert_eq!(folded_over(&[(9, "c")], &[], false, (&[7], true)), expect(&[(9, "=c")]));
        assert_eq!(folded_over(&[(9, "c")], &[], false, (&[7], false)), expect(&[(9, "c")]));
    }

    #[test]
    fn what_would_be_too_long_stays() {
        let long = [(9, "ddd"), (8, "ccc"), (7, "bbb"), (6, "aaa"), (5, "=x")];
        assert_eq!(folded(&long, &[], false, &[]), expect(&[(9, "cccddd"), (7, "aaabbb"), (5, "=x")]));
    }
}
