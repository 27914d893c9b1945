//! The messages for a child are divided if they do not fit into it as a whole.
//!
//! The versions and the removals of ranges of one key go down in the order of commits: a look-up stops at the
//! first version that it finds, and operands apply to the result of earlier removals. The *least* piece is
//! one version of a key, or one removal of a range.

use super::content::{Content, Group};
use super::merging::Flushed;
use super::messages::Messages;
use crate::buffered::RangeTombstones;
use crate::index::behind;
use crate::sync::Arc;

/// A part whose content is divided.
pub(super) struct Taken {
    pub flushed: Flushed,
    /// The content that stays.
    pub rest: Content,
}

/// Takes a group out of a part, or as much of it as fits into `room_bytes`, but at least the least piece,
/// even if that is larger. `content` is the part without its `messages`. A removal of a range is cut at one
/// of the `keys`, which are those of the page below, or not at all.
pub(super) fn take(
    content: &Content,
    messages: &Arc<Messages>,
    group: &Group,
    room_bytes: u64,
    keys: &Messages,
) -> Taken {
    let (lower, upper) = content.interval(group.pivot);
    let mut flushed = Flushed {
        messages: Arc::clone(messages),
        range: group.messages.clone(),
        ranges: content.ranges_of(group.pivot),
    };
    let mut up_to = upper.map(<[u8]>::to_vec);
    while flushed.bytes() > room_bytes
        && let Some(middle) = middle_key(&flushed, keys)
    {
        flushed.take_from(&middle);
        up_to = Some(middle);
    }
    let mut ranges = content.ranges.clone();
    ranges.remove_between(lower, up_to.as_deref());
    if flushed.bytes() > room_bytes {
        ranges.extend(&flushed.take_newer(room_bytes));
        ranges.join();
    }
    let mut rest = Messages::default();
    let stays = usize::from(flushed.range.len() > 1 && planted!(MessageStaysAbove));
    rest.extend(messages, 0..flushed.range.start + stays);
    rest.extend(messages, flushed.range.end..messages.len());
    let rest = Content { level: content.level, pivots: content.pivots.clone(), ranges, messages: rest };
    Taken { flushed, rest }
}

impl Flushed {
    /// Takes out the messages and removals of this key and larger ones.
    pub fn take_from(&mut self, key: &[u8]) -> Self {
        let first = self.messages.first_from(key).clamp(self.range.start, self.range.end);
        let behind = Self {
            messages: Arc::clone(&self.messages),
            range: first..self.range.end,
            ranges: self.ranges.split_off(key),
        };
        self.range.end = first;
        behind
    }

    /// Takes the newer ones out of versions of one key and one range until the rest has room, or is the least
    /// piece. Returns the removals among them.
    fn take_newer(&mut self, room_bytes: u64) -> RangeTombstones {
        let version = |number: usize| self.messages.get(number).map(|(_, version, _)| version.timestamp());
        let of_key = (!self.range.is_empty()).then(|| self.messages.key(self.range.start));
        let over_key = of_key.and_then(|key| self.ranges.of(key));
        let oldest_removal = over_key.and_then(|range| range.removed_at.last().copied());
        let oldest_version = of_key.and_then(|_| version(self.range.end - 1));
        let removals_first = oldest_version.is_none() || oldest_removal < oldest_version;
        if removals_first && (oldest_removal.is_some() || oldest_version.is_none()) {
            self.range.start = self.range.end;
            let mut newer = self.ranges.take_newer_than(oldest_version);
            while self.bytes() > room_bytes
                && self.ranges.fragments().first().is_some_and(|range| range.removed_at.len() > 1)
            {
                let older = self.ranges.take_older();
                newer.extend(&std::mem::replace(&mut self.ranges, older));
            }
            return newer;
        }
        // Versions that no removal is before, the oldest first.
        let (mut first, mut bytes) = (self.range.end, 0);
        while first > self.range.start
            && oldest_removal.is_none_or(|removal| version(first - 1) < Some(removal))
        {
            bytes += self.messages.page_bytes(first - 1..first);
            if bytes > room_bytes && first < self.range.end {
                break;
            }
            first -= 1;
        }
        self.range.start = first;
        std::mem::take(&mut self.ranges)
    }
}

/// A key that has some of this before it, and some not; `None` if that is the versions of one key, or one
/// removal of a range that has none of `keys`.
pub(super) fn middle_key(flushed: &Flushed, keys: &Messages) -> Option<Vec<u8>> {
    let Flushed { messages, range, ranges } = flushed;
    let fragments = ranges.fragments();
    if !range.is_empty() {
        let first = messages.key(range.start);
        let middle = messages.key(range.start + range.len() / 2);
        let next = messages.key(messages.end_of_key(range.start, range.end));
        let later = [middle, next].into_iter().find(|key| *key > first);
        if let Some(key) = later.filter(|_| messages.end_of_key(range.start, range.end) < range.end) {
            return Some(key.to_vec());
        }
    }
    if fragments.len() > 1 {
        return Some(fragments[fragments.len() / 2].lower.clone());
    }
    let fragment = fragments.first()?;
    let is_within = |key: &[u8]| key > fragment.lower.as_slice() && key < fragment.upper.as_slice();
    if range.is_empty() {
        let within = keys.within(&behind(&fragment.lower), Some(&fragment.upper));
        let middle = within.start + within.len() / 2;
        return (!within.is_empty()).then(|| keys.key(middle).to_vec());
    }
    // One key, and one removal: the range before the key, the key, and the range after it.
    let key = messages.key(range.start);
    let borders = [key.to_vec(), behind(key)];
    borders.into_iter().find(|border| is_within(border))
}

#[cfg(test)]
mod tests {
    use super::super::content::Pivot;
    use super::*;
    use crate::header::PageId;
    use crate::index::Version;
    use crate::log::Timestamp;

    fn part(messages: &[(&str, u64)], ranges: &[(&str, &str, u64)]) -> (Content, Arc<Messages>) {
        let mut own = Messages::default();
        for (key, at) in messages {
            own.push(key.as_bytes(), Version::put(Timestamp(*at)), &[7; 40]);
        }
        let pivots = vec![Pivot { key: Vec::new(), child: PageId(1), weight: 1 }];
        let mut content = Content { level: 1, pivots, ..Content::default() };
        for (lower, upper, at) in ranges {
            content.ranges.add(lower.as_bytes(), upper.as_bytes(), Timestamp(*at));
        }
        (content, Arc::new(own))
    }

    /// The pieces that go down, if each is the least one.
    fn pieces(messages: &[(&str, u64)], ranges: &[(&str, &str, u64)], keys: &[(&str, u64)]) -> Vec<String> {
        let (mut content, mut messages) = part(messages, ranges);
        let (_, keys) = part(keys, &[]);
        let mut pieces = Vec::new();
        loop {
            let whole = Content { messages: Messages::clone(&messages), ..content.clone() };
            let Some(group) = whole.groups().pop() else { return pieces };
            let Taken { flushed, rest } = take(&content, &messages, &group, 1, &keys);
            assert!(!flushed.is_empty() && rest.buffered_bytes() < whole.buffered_bytes() + 64);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "0");
            let mut piece = Vec::new();
            for (key, version, _) in flushed.messages.iter(flushed.range.clone()) {
                piece.push(format!("{}@{}", text(key), version.timestamp().0));
            }
            for range in flushed.ranges.fragments() {
                let at: Vec<u64> = range.removed_at.iter().map(|at| at.0).collect();
                piece.push(format!("{}-{}@{at:?}", text(&range.lower), text(&range.upper)));
            }
            pieces.push(piece.join(" "));
            messages = Arc::new(rest.messages);
            content = Content { ranges: rest.ranges, ..content };
        }
    }

    #[test]
    fn the_least_is_one_version_or_one_removal() {
        assert_eq!(pieces(&[("a", 9), ("a", 8), ("b", 7)], &[], &[]), ["a@8", "a@9", "b@7"]);
        assert_eq!(pieces(&[], &[("a", "d", 5), ("a", "d", 7)], &[]), ["a-d@[5]", "a-d@[7]"]);
        assert_eq!(
            pieces(&[], &[("a", "d", 5)], &[("a", 1), ("b", 1), ("c", 1)]).concat(),
            "a-b@[5]b-c@[5]c-d@[5]"
        );
    }

    #[test]
    fn removals_of_ranges_never_go_before_what_they_hide() {
        let found = pieces(&[("b", 3), ("b", 2)], &[("a", "c", 9)], &[]);
        assert_eq!(found, ["a-b@[9]", "b@2", "b@3", "b-c@[9]"]);
    }

    #[test]
    fn regression_operands_never_go_before_a_removal_that_they_are_over() {
        let found = pieces(&[("b", 8), ("b", 2)], &[("b", "b\0", 9), ("b", "b\0", 5), ("b", "b\0", 1)], &[]);
        assert_eq!(found, ["b-b0@[1]", "b@2", "b-b0@[5]", "b@8", "b-b0@[9]"]);
    }
}
