//! Pages come back as they were written, and lead look-ups to their content.

use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::content::{Content, Group, Pivot};
use super::in_place::Changes;
use super::messages::Messages;
use super::part::{self, Part, kind_of};
use super::part_format::SLOTS;
use crate::buffered::RangeTombstones;
use crate::header::{BACK_START, FRONT_END, Header, PAGE_HEADER_BYTES, PageId};
use crate::index::Version;
use crate::log::Timestamp;
use crate::page::{OwnPage, Page};

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

fn write(page: Page<'_>, content: &Content) {
    part::write(page, &content.fit(PAGE_BYTES.into()).unwrap());
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

/// Groups with the numbers that their messages have in a page whose first message has this one.
fn in_page(groups: Vec<Group>, first: u32) -> Vec<Group> {
    let first = first as usize;
    let moved =
        |group: Group| Group { messages: group.messages.start + first..group.messages.end + first, ..group };
    groups.into_iter().map(moved).collect()
}

/// Puts a content into a page as format versions 8 and 9 did: everything at the front.
fn write_as_before(page: Page<'_>, content: &Content) {
    write(page, content);
    let (mut front, mut entries) = (Vec::new(), Vec::new());
    page.copy_to(0, page.word(FRONT_END), &mut front);
    page.copy_to(page.word(BACK_START), page.len_bytes() - page.word(BACK_START), &mut entries);
    let moved_bytes = page.word(BACK_START) - front.len() as u32;
    for slot in (SLOTS..front.len() as u32).step_by(4) {
        page.set_word(slot, page.word(slot) - moved_bytes);
    }
    page.copy_from(front.len() as u32, &entries);
    page.set_word(SLOTS - 4, 0);
    page.set_word(FRONT_END, (front.len() + entries.len()) as u32);
    page.set_word(BACK_START, page.len_bytes());
}

/// Puts a content into a page as format version 10 did: each removal names its range.
fn write_with_names(page: Page<'_>, content: &Content) {
    write(page, content);
    let level = SLOTS - 16;
    let (mut slots, mut entries) = (Vec::new(), Vec::new());
    let mut entry = |number: u64, key: &[u8], other: u32, value: &[u8]| {
        slots.push(entries.len() as u32);
        part::put_entry(number, key, other, value, &mut entries);
    };
    for pivot in &content.pivots {
        entry(pivot.child.0, &pivot.key, pivot.weight, &[]);
    }
    for fragment in content.ranges.fragments() {
        for at in &fragment.removed_at {
            let version = Version::tombstone(*at).bits();
            entry(version, &fragment.lower, fragment.upper.len() as u32, &fragment.upper);
        }
    }
    for (key, version, value) in content.messages.iter(0..content.messages.len()) {
        entry(version.bits(), key, value.len() as u32, value);
    }
    let back_start = PAGE_BYTES - entries.len() as u32;
    for (number, slot) in (0_u32..).zip(&slots) {
        page.set_word(SLOTS + 4 * number, back_start + slot);
    }
    page.copy_from(back_start, &entries);
    page.set_word(BACK_START, back_start);
    assert_eq!(page.halves(level).0, content.level);
}

proptest! {
    #[test]
    fn removals_that_each_name_their_range_are_read_and_take_less_when_written_anew(content in content()) {
        let page = page();
        write_with_names(page.page(), &content);
        let part = Part::new(page.page());
        let back = part.content().unwrap();
        prop_assert_eq!((&back.pivots, &back.ranges), (&content.pivots, &content.ranges));
        prop_assert_eq!(all(&back.messages), all(&content.messages));
        prop_assert!(part.page_bytes() >= back.page_bytes());
        write(page.page(), &back);
        prop_assert_eq!(part.page_bytes(), content.page_bytes());
        prop_assert_eq!(&part.content().unwrap().ranges, &content.ranges);
    }

    #[test]
    fn pages_of_earlier_versions_are_read_and_written_anew(content in content(), wanted in key()) {
        let page = page();
        write_as_before(page.page(), &content);
        let part = Part::new(page.page());
        prop_assert!(!part.is_in_place());
        prop_assert_eq!((part.page_bytes(), part.groups()), (content.page_bytes(), None));
        let back = part.content().unwrap();
        prop_assert_eq!((&back.pivots, &back.ranges), (&content.pivots, &content.ranges));
        prop_assert_eq!(all(&back.messages), all(&content.messages));
        let is_there = all(&content.messages).iter().any(|(key, ..)| *key == wanted);
        prop_assert_eq!(part.find(&wanted, Timestamp(u64::MAX)).is_some(), is_there);
        write(page.page(), &back);
        prop_assert_eq!(part.is_in_place(), content.ranges.is_empty());
        prop_assert_eq!(all(&part.content().unwrap().messages), all(&content.messages));
    }

    #[test]
    fn a_page_has_what_was_written(content in content(), wanted in key(), at in 0_u64..20) {
        let page = page();
        write(page.page(), &content);
        let part = Part::new(page.page());
        let back = part.content().unwrap();
        prop_assert_eq!((back.level, &back.pivots, &back.ranges), (1, &content.pivots, &content.ranges));
        prop_assert_eq!(all(&back.messages), all(&content.messages));
        prop_assert_eq!(part.page_bytes(), content.page_bytes());
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

    /// The groups of all children have each message exactly once.
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

    /// Messages that come and go in place make the page that has been written with them, again and again.
    #[test]
    fn changes_in_place_are_a_page_written_anew(
        mut content in content(),
        rounds in proptest::collection::vec(proptest::collection::btree_map(
            key(),
            (0_usize..3, proptest::collection::vec((1_u64..20, proptest::collection::vec(any::<u8>(), 0..90)), 0..3)),
            1..20,
        ), 1..30),
    ) {
        content.ranges = RangeTombstones::default();
        let page = page();
        write(page.page(), &content);
        for round in rounds {
            let part = Part::new(page.page());
            prop_assert!(part.is_in_place());
            let first = part.messages().start;
            let (mut changes, mut expected, mut next) = (Changes::default(), Messages::default(), 0);
            for (key, (gone, come)) in &round {
                let start = content.messages.first_from(key).max(next);
                let end = content.messages.end_of_key(start, content.messages.len()).min(start + gone);
                let end = if content.messages.key(start) == key { end } else { start };
                expected.extend(&content.messages, next..start);
                let come: Vec<_> = come
                    .iter()
                    .map(|(at, value)| (key.as_slice(), Version::put(Timestamp(*at)), value.as_slice()))
                    .collect();
                come.iter().for_each(|(key, version, value)| expected.push(key, *version, value));
                let place = part.first_from(first + next as u32, key);
                prop_assert_eq!(place, first + start as u32);
                changes.replace(part, place..place + (end - start) as u32, &come).unwrap();
                next = end;
            }
            expected.extend(&content.messages, next..content.messages.len());
            let new = Content { messages: expected, ..content.clone() };
            prop_assert_eq!(changes.page_bytes(part), new.page_bytes());
            prop_assert_eq!(changes.count(part) as usize, new.messages.len());
            if new.page_bytes() > u64::from(PAGE_BYTES) {
                break;
            }
            changes.make(page.page());
            content = new;
            let back = part.content().unwrap();
            prop_assert_eq!(&back.pivots, &content.pivots);
            prop_assert_eq!(all(&back.messages), all(&content.messages));
            prop_assert_eq!(part.page_bytes(), content.page_bytes());
            prop_assert_eq!(part.groups(), Some(content.groups()).map(|groups| in_page(groups, first)));
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

/// Makes the fuzzer's first inputs: `cargo test -p flashgrain --features testing corpus_of_pages --
/// --ignored`.
#[test]
#[ignore = "writes into the repository"]
fn corpus_of_pages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/part");
    std::fs::create_dir_all(&folder).unwrap();
    let mut runner = TestRunner::deterministic();
    for number in 0..12 {
        let mut content = content().new_tree(&mut runner).unwrap().current();
        if number % 3 > 0 {
            content.ranges = RangeTombstones::default();
        }
        let page = page();
        match number % 4 {
            0 => write_as_before(page.page(), &content),
            _ => write(page.page(), &content),
        }
        let mut input = vec![2, 2, 1, 3];
        page.page().copy_to(0, PAGE_BYTES, &mut input);
        std::fs::write(folder.join(format!("page-{number:02}")), input).unwrap();
    }
}
