//! Nodes in blocks: how a node is divided so that a search reads one or two of its blocks.
//!
//! A node of P blocks is a small tree of its own: a *directory*, and *parts*. Each part is a node with some
//! of the slots, between fences of its own, in one block. The directory is an inner node whose children are
//! the parts, each identified by its first byte in the image. It shares the first block with the first part,
//! and the other parts follow in the order of their keys.
//!
//! This is the van Emde Boas order of blocks (Bender et al., "Small Refinements to the DAM Can Have Big
//! Consequences for Data-Structure Design", §8): a search tree is cut at half of its height, the upper tree
//! lies before the lower ones, and so on within each of them. As long as the separators of P parts fit into
//! one block, the first cut leaves nothing in the order of blocks to be cut again. A node is not divided if
//! its separators do not fit, or if its parts do not fit into as many bytes as it has itself.

use super::node::{HINTS, LEAF_WITHOUT_HINTS_BYTES, NODE_HEADER_END, Node};
use super::reshape::append_checked;
use crate::header::{PAGE_HEADER_BYTES, PageId};
use crate::index::separator;
use crate::page::{Page, padded};
use crate::segment::blocks::{Divided, Division, length_of};

/// Images have whole grains of this size.
const GRAIN_BYTES: u32 = 64;

/// Attempts to find a directory that has room for its parts' separators.
const ATTEMPTS: usize = 4;

/// See the module.
pub(crate) struct NodeDivision;

/// Slots that go to one block.
struct PartPlan {
    end_slot: u32,
    lower: Vec<u8>,
    /// Most bytes that it takes.
    bytes: u32,
}

/// How the slots of a node are divided.
struct SlotDivision {
    parts: Vec<PartPlan>,
    directory_bytes: u32,
}

/// Bytes of a node without its fences and slots, on a page of `page_bytes`.
fn overhead_bytes(is_leaf: bool, page_bytes: u32) -> u32 {
    let has_hints = !is_leaf || page_bytes > LEAF_WITHOUT_HINTS_BYTES;
    NODE_HEADER_END + if has_hints { 4 * HINTS } else { 0 }
}

impl SlotDivision {
    /// For blocks of `block_bytes`.
    fn of(node: Node<'_>, block_bytes: u32) -> Option<Self> {
        let mut directory_bytes = 0;
        for _ in 0..ATTEMPTS {
            let parts = parts(node, block_bytes, directory_bytes)?;
            let needed = if parts.len() > 1 { directory_of(node, &parts) } else { 0 };
            if needed <= directory_bytes {
                return Some(Self { parts, directory_bytes });
            }
            directory_bytes = needed;
        }
        None
    }
}

/// Bytes of a directory of these parts.
fn directory_of(node: Node<'_>, parts: &[PartPlan]) -> u32 {
    let (lower, upper) = node.fences_bytes();
    let children: u32 = parts.iter().map(|part| node.child_bytes(part.lower.len())).sum();
    overhead_bytes(false, 0) + lower + upper + children
}

/// Divides the slots, with a directory of `directory_bytes` before the first part. `None` if a slot fits into
/// no block.
fn parts(node: Node<'_>, block_bytes: u32, directory_bytes: u32) -> Option<Vec<PartPlan>> {
    let (count, is_leaf) = (node.count(), node.is_leaf());
    let mut room = block_bytes.checked_sub(PAGE_HEADER_BYTES + directory_bytes)?;
    let (mut parts, mut lower, mut slot) = (Vec::new(), Vec::new(), 0);
    node.lower_fence(&mut lower);
    loop {
        let begun = overhead_bytes(is_leaf, room) + padded(lower.len() as u32);
        let (first_slot, mut bytes, mut with_upper) = (slot, begun, begun + node.fences_bytes().1);
        while slot < count {
            let upper = match slot + 1 == count {
                true => node.fences_bytes().1,
                false => padded(node.key_bytes(slot + 1)),
            };
            let next = bytes + node.slot_bytes(slot);
            if next + upper > room {
                break;
            }
            (bytes, with_upper, slot) = (next, next + upper, slot + 1);
        }
        if slot == first_slot && count > 0 {
            return None;
        }
        let next_lower = (slot < count).then(|| separator_before(node, slot));
        parts.push(PartPlan { end_slot: slot, lower, bytes: with_upper });
        let Some(next_lower) = next_lower else { return Some(parts) };
        (lower, room) = (next_lower, block_bytes);
    }
}

/// The fence between a slot and the one before.
fn separator_before(node: Node<'_>, slot: u32) -> Vec<u8> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    node.key(slot, &mut right);
    if node.is_leaf() {
        node.key(slot - 1, &mut left);
        return separator(&left, right);
    }
    right
}

/// The first byte of the part of this number in its image.
fn start_of(number: usize, block_bytes: u32, first_part: u32) -> u32 {
    if number == 0 { first_part } else { (number as u32).saturating_mul(block_bytes) }
}

/// The part that begins at a byte of an image; `None` if there is none.
pub(super) fn part_at(start: u32, block_bytes: u32, divided: Divided) -> Option<(u32, u32)> {
    let (number, within) = (start / block_bytes.max(1), start % block_bytes.max(1));
    let length = length_of(number, block_bytes, divided.image_bytes)?;
    let is_one = if number == 0 { within == divided.first_part } else { within == 0 };
    is_one.then(|| length.checked_sub(within)).flatten().map(|length| (within, length))
}

/// A directory in few bytes: the start of the first part, and the separators of the others without their
/// common prefix. `None` if one is too long for that.
///
/// ```text
/// 0            2               4         5
/// | first part | common length | length  | separator | ...
/// | u16        | u16           | u8      |           |
/// ```
pub(super) fn briefly(directory: Node<'_>, first_part: u32) -> Option<Vec<u8>> {
    let common = directory.common_length();
    let mut bytes = u16::try_from(first_part).ok()?.to_le_bytes().to_vec();
    bytes.extend_from_slice(&u16::try_from(common).ok()?.to_le_bytes());
    let mut key = Vec::new();
    for slot in 1..directory.count() {
        key.clear();
        directory.key(slot, &mut key);
        let rest = key.get(common..)?;
        bytes.push(u8::try_from(rest.len()).ok()?);
        bytes.extend_from_slice(rest);
    }
    Some(bytes)
}

/// The first bytes, within an image, of the part of `key` and of the first part, from the output of
/// [`briefly`]; `None` for any other bytes. The directory covers `key`.
pub(super) fn place_in(brief: &[u8], key: &[u8], block_bytes: u32) -> Option<(u32, u32)> {
    let (first_part, brief) = brief.split_first_chunk()?;
    let (common, mut rest) = brief.split_first_chunk()?;
    let first_part = u16::from_le_bytes(*first_part).into();
    let key = key.get(usize::from(u16::from_le_bytes(*common))..)?;
    let mut number = 0;
    while let Some((length, others)) = rest.split_first() {
        let (separator, others) = others.split_at_checked((*length).into())?;
        if key < separator {
            break;
        }
        (number, rest) = (number + 1, others);
    }
    Some((start_of(number, block_bytes, first_part), first_part))
}

impl Division for NodeDivision {
    fn divide(&self, page: Page<'_>, block_bytes: u32, image: Page<'_>) -> Option<Divided> {
        let node = Node::new(page);
        let SlotDivision { parts, directory_bytes } = SlotDivision::of(node, block_bytes)?;
        let first_part = PAGE_HEADER_BYTES + directory_bytes;
        let last = parts.len() - 1;
        let last_start = start_of(last, block_bytes, first_part);
        let image_bytes = (last_start + parts[last].bytes).next_multiple_of(GRAIN_BYTES);
        let last_end = block_bytes * (last as u32 + 1);
        if image_bytes > page.len_bytes() || image_bytes > last_end {
            return None;
        }
        (0..image_bytes).step_by(4).for_each(|at| image.set_word(at, 0));
        let mut upper = Vec::new();
        let bounded = node.upper_fence(&mut upper);
        if last > 0 {
            let directory = image.part(PAGE_HEADER_BYTES, directory_bytes);
            let upper = bounded.then_some(upper.as_slice());
            let directory = Node::init(directory, node.level() + 1, &parts[0].lower, upper);
            for (number, part) in parts.iter().enumerate() {
                let start = start_of(number, block_bytes, first_part);
                directory.push_child(&part.lower, PageId(start.into()));
            }
        }
        let mut slot = 0;
        for (number, part) in parts.iter().enumerate() {
            let start = start_of(number, block_bytes, first_part);
            let end = if number == last { image_bytes } else { block_bytes * (number as u32 + 1) };
            let upper = match parts.get(number + 1) {
                Some(next) => Some(next.lower.as_slice()),
                None => bounded.then_some(upper.as_slice()),
            };
            let own = Node::init(image.part(start, end - start), node.level(), &part.lower, upper);
            let lost = u32::from(number > 0 && node.is_leaf() && planted!(PartLosesRecord));
            node.append_to(own, slot + lost..part.end_slot);
            slot = part.end_slot;
        }
        Some(Divided { image_bytes, first_part })
    }

    fn unite(&self, image: Page<'_>, block_bytes: u32, divided: Divided, page: Page<'_>) -> bool {
        let part = |start: u32| {
            let (_, length) = part_at(start, block_bytes, divided)?;
            let own = Node::new(image.part(start, length));
            own.adds_up().then_some(own)
        };
        let first_part = divided.first_part;
        let directory = match first_part.checked_sub(PAGE_HEADER_BYTES) {
            None => None,
            Some(0) => part(first_part),
            Some(bytes) => Some(Node::new(image.part(PAGE_HEADER_BYTES, bytes)))
                .filter(|directory| directory.adds_up() && directory.level() > 0),
        };
        let Some(directory) = directory else { return false };
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        directory.lower_fence(&mut lower);
        let bounded = directory.upper_fence(&mut upper);
        let is_single = first_part == PAGE_HEADER_BYTES;
        let level = directory.level() - u8::from(!is_single);
        let node = Node::init(page, level, &lower, bounded.then_some(upper.as_slice()));
        if is_single {
            return append_checked(directory, node).is_ok();
        }
        let mut key = Vec::new();
        (0..directory.count()).all(|number| {
            let start = start_of(number as usize, block_bytes, first_part);
            let own = part(start).filter(|own| own.level() == level);
            let is_named = directory.child(number) == PageId(start.into());
            key.clear();
            directory.key(number, &mut key);
            own.is_some_and(|own| {
                lower.clear();
                own.lower_fence(&mut lower);
                is_named && lower == key && append_checked(own, node).is_ok()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::{Header, PageKind};
    use crate::page::OwnPage;

    const BLOCK_BYTES: u32 = 4096;

    /// A node with as many of the records, or children, as it takes with an eighth to spare.
    fn node_of(
        level: u8,
        blocks: u32,
        keys: &std::collections::BTreeSet<Vec<u8>>,
        value_bytes: usize,
    ) -> OwnPage {
        let own = OwnPage::new(blocks * BLOCK_BYTES);
        let scratch = OwnPage::new(blocks * BLOCK_BYTES);
        let (lower, upper) = (keys.first().cloned().unwrap_or_default(), b"zzz".as_slice());
        let node = Node::init(own.page(), level, &lower, Some(upper));
        let spare = blocks * BLOCK_BYTES / 8;
        for (number, key) in keys.iter().enumerate() {
            let value = vec![number as u8; value_bytes];
            let at = node.count();
            let done = match level {
                0 if node.has_room(Err(at), (key.len(), value.len()), spare) => {
                    node.insert(at, key, &value, &scratch)
                }
                0 => break,
                _ if at == 0 => {
                    node.set_first_child(PageId(1));
                    Ok(())
                }
                _ if node.has_room_for_child(key, spare) => {
                    node.insert_child(at, key, PageId(number as u64 + 1), &scratch)
                }
                _ => break,
            };
            done.unwrap();
        }
        own
    }

    /// All of a node: keys with their values or children.
    #[derive(Debug, PartialEq)]
    struct Content {
        level: u8,
        lower: Vec<u8>,
        upper: Option<Vec<u8>>,
        slots: Vec<(Vec<u8>, Vec<u8>)>,
    }

    fn content(node: Node<'_>) -> Content {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        node.lower_fence(&mut lower);
        let bounded = node.upper_fence(&mut upper);
        let record = |index| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            node.key(index, &mut key);
            match node.is_leaf() {
                true => node.value(index, &mut value),
                false => value.extend_from_slice(&node.child(index).0.to_le_bytes()),
            }
            (key, value)
        };
        let slots = (0..node.count()).map(record).collect();
        Content { level: node.level(), lower, upper: bounded.then_some(upper), slots }
    }

    fn keys() -> impl Strategy<Value = std::collections::BTreeSet<Vec<u8>>> {
        let key = prop_oneof![
            proptest::collection::vec(b'a'..b'e', 1..12),
            (0_u32..9000).prop_map(|number| format!("user/{number:07}/name").into_bytes()),
            (0_usize..300, 0_u32..200).prop_map(|(length, last)| [
                vec![b'k'; length],
                last.to_be_bytes().to_vec()
            ]
            .concat()),
        ];
        proptest::collection::btree_set(key, 0..1500)
    }

    proptest! {
        #[test]
        fn a_divided_node_is_found_by_blocks_and_comes_back(
            keys in keys(),
            level in 0_u8..3,
            blocks in prop::sample::select(vec![2_u32, 4, 8, 16]),
            value_bytes in 0_usize..400,
        ) {
            let own = node_of(level, blocks, &keys, value_bytes);
            let (node, image) = (Node::new(own.page()), OwnPage::new(blocks * BLOCK_BYTES));
            prop_assume!(level == 0 || node.count() > 0);
            let divided = NodeDivision.divide(own.page(), BLOCK_BYTES, image.page());
            // Values and keys of such lengths leave little room unused.
            let Some(divided) = divided else {
                prop_assert!(value_bytes > 100 || keys.iter().any(|key| key.len() > 50));
                return Ok(());
            };
            prop_assert!(divided.image_bytes <= blocks * BLOCK_BYTES);
            for (key, value) in content(node).slots {
                let start = match divided.first_part == PAGE_HEADER_BYTES {
                    true => divided.first_part,
                    false => {
                        let directory = image.page().part(PAGE_HEADER_BYTES, divided.first_part - PAGE_HEADER_BYTES);
                        let directory = Node::new(directory);
                        prop_assert!(directory.covers(&key) && directory.level() == level + 1);
                        directory.child(directory.child_slot(&key)).0 as u32
                    }
                };
                let (_, length) = part_at(start, BLOCK_BYTES, divided).unwrap();
                prop_assert_eq!(start / BLOCK_BYTES, (start + length - 1) / BLOCK_BYTES);
                if divided.first_part > PAGE_HEADER_BYTES {
                    let directory = image.page().part(PAGE_HEADER_BYTES, divided.first_part - PAGE_HEADER_BYTES);
                    let brief = briefly(Node::new(directory), divided.first_part);
                    if let Some(brief) = brief {
                        prop_assert_eq!(place_in(&brief, &key, BLOCK_BYTES), Some((start, divided.first_part)));
                    }
                }
                let part = Node::new(image.page().part(start, length));
                prop_assert!(part.covers(&key) && part.level() == level && part.adds_up());
                match level {
                    0 => {
                        let mut found = Vec::new();
                        part.value(part.find(&key).unwrap(), &mut found);
                        prop_assert_eq!(found, value);
                    }
                    _ => prop_assert_eq!(part.child(part.child_slot(&key)).0.to_le_bytes().to_vec(), value),
                }
            }
            let back = OwnPage::new(blocks * BLOCK_BYTES);
            prop_assert!(NodeDivision.unite(image.page(), BLOCK_BYTES, divided, back.page()));
            prop_assert_eq!(content(Node::new(back.page())), content(node));
            prop_assert!(Node::new(back.page()).adds_up());
        }

        #[test]
        fn what_was_never_a_page_is_refused_without_panic(
            words in proptest::collection::vec(any::<u32>(), 4096),
            first_part in 0_u32..1100,
            image_bytes in 0_u32..16384,
        ) {
            let (image, back) = (OwnPage::new(16384), OwnPage::new(16384));
            words.iter().enumerate().for_each(|(at, word)| image.page().set_word(at as u32 * 4, *word));
            let divided = Divided { image_bytes, first_part: first_part * 4 };
            prop_assert!(!NodeDivision.unite(image.page(), BLOCK_BYTES, divided, back.page()));
        }
    }

    #[test]
    fn a_node_that_fits_into_a_block_has_no_directory() {
        let keys = (0..20_u32).map(|number| number.to_be_bytes().to_vec()).collect();
        let (own, image) = (node_of(0, 4, &keys, 100), OwnPage::new(16384));
        let divided = NodeDivision.divide(own.page(), BLOCK_BYTES, image.page()).unwrap();
        assert_eq!((divided.first_part, divided.image_bytes / 512), (PAGE_HEADER_BYTES, 4));
        assert_eq!(PageKind::class_of_blocks(Header::of(own.page()).kind), None);
    }
}
