//! Pages come back as they were written, and lead look-ups to what is in them.

use proptest::prelude::*;

use super::content::{Content, Pivot};
use super::messages::Messages;
use super::part::{Part, kind_of, write};
use crate::buffered::RangeTombstones;
use crate::header::{Header, PAGE_HEADER_BYTES, PageId};
use crate::index::Version;
use crate::log::Timestamp;
use crate::page::OwnPage;

const PAGE_BYTES: u32 = 16 << 10;

fn page() -> OwnPage {
    let page = OwnPage::new(PAGE_BYTES);
    let header = Header {
        checksum: 0,
        image_grains: 0,
        class: 2,
        kind: kind_of(1) as u8,
        page: PageId(7),
        sequence: 0,
        front_end: PAGE_HEADER_BYTES,
        back_start: PAGE_BYTES,
    };
    header.store(page.page());
    page
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..4, 1..9)
}

prop_compose! {
    fn content()(
        pivots in proptest::collection::btree_map(key(), (1_u64..1000, 1_u32..9), 1..20),
        messages in proptest::collection::btree_map((key(), 1_u64..20), proptest::collection::vec(any::<u8>(), 0..40), 0..60),
        ranges in proptest::collection::vec((key(), key(), 1_u64..20), 0..6),
    ) -> Content {
        let mut content = Content { level: 1, ..Content::default() };
        for (key, (child, weight)) in pivots {
            content.pivots.push(Pivot { key, child: PageId(child), weight });
        }
        let mut all: Vec<_> = messages.into_iter().collect();
        all.sort_by(|((one, before), _), ((other, behind), _)| one.cmp(other).then(behind.cmp(before)));
        for ((key, timestamp), value) in all {
            content.messages.push(&key, Version::put(Timestamp(timestamp)), &value);
        }
        ranges.iter().for_each(|(lower, upper, at)| content.ranges.add(lower, upper, Timestamp(*at)));
        content
    }
}

fn all(messages: &Messages) -> Vec<(Vec<u8>, Version, Vec<u8>)> {
    messages
        .iter(0..messages.len())
        .map(|(key, version, value)| (key.to_vec(), version, value.to_vec()))
        .collect()
}

proptest! {
    #[test]
    fn a_page_has_what_was_written(content in content(), wanted in key(), at in 0_u64..20) {
        let page = page();
        write(page.page(), &content);
        let part = Part::new(page.page());
        let back = part.content().unwrap();
        prop_assert_eq!((back.level, &back.pivots, &back.ranges), (1, &content.pivots, &content.ranges));
        prop_assert_eq!(all(&back.messages), all(&content.messages));
        let used = u64::from(Header::of(page.page()).front_end);
        prop_assert_eq!(content.page_bytes(), used);
        let pivot = content.pivots.partition_point(|pivot| pivot.key <= wanted).saturating_sub(1);
        prop_assert_eq!(part.pivot_of(&wanted) as usize, pivot);
        prop_assert_eq!(part.child(pivot as u32), content.pivots[pivot].child);
        let before = content.pivots.partition_point(|pivot| pivot.key < wanted).saturating_sub(1);
        prop_assert_eq!(part.pivot_before(Some(&wanted)) as usize, before);
        let expected = all(&content.messages)
            .into_iter()
            .find(|(key, version, _)| *key == wanted && version.timestamp().0 <= at);
        let found = part.find(&wanted, Timestamp(at)).map(|number| {
            let mut value = Vec::new();
            part.value(number, &mut value);
            (wanted.clone(), part.version(number), value)
        });
        prop_assert_eq!(found, expected);
    }

    /// What is on its way to one child or another is all that there is, and nothing is on its way to two.
    #[test]
    fn groups_are_all_messages(content in content()) {
        let groups = content.groups();
        let mut next = 0;
        for group in &groups {
            if !group.messages.is_empty() {
                prop_assert_eq!(group.messages.start, next);
                next = group.messages.end;
            }
        }
        prop_assert_eq!(next, content.messages.len());
        let mut ranges = RangeTombstones::default();
        (0..content.pivots.len()).for_each(|pivot| ranges.extend(&content.ranges_of(pivot)));
        for probe in [&[0_u8][..], &[1, 1], &[2], &[3, 3, 3]] {
            let newest = |ranges: &RangeTombstones| ranges.newest(probe, Timestamp(u64::MAX));
            prop_assert_eq!(newest(&ranges), newest(&content.ranges));
        }
    }

    #[test]
    fn nonsense_is_no_panic(words in proptest::collection::vec(any::<u32>(), 1024), key in key()) {
        let page = OwnPage::new(4096);
        for (number, word) in words.iter().enumerate() {
            page.page().set_word(number as u32 * 4, *word);
        }
        super::go_through(page.page(), &key);
    }
}
