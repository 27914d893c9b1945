//! Images of pages, and the content of the pages.

use crate::btree::node::Node;
use crate::checkpoint::map::{Change, MapPage, MapPageLocation, PRIORS, page_id};
use crate::class::{CLASSES, class_bytes};
use crate::header::{Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::OwnPage;
use crate::segment::Location;
use crate::segment::image::Expected;
use crate::segment::pack;

const GRAIN_BYTES: usize = 64;

/// An image as it is read for a page: verified, made a page of, and made an image of again.
pub fn image(bytes: &[u8]) {
    for (header, image) in both(bytes) {
        let Some(page) = page_of(header, &image) else { continue };
        let mut again = vec![0; image.len()];
        let sequence = header.sequence;
        pack::pack(page.page(), header.page, header.class.into(), sequence, &mut again);
        let other = page_of(header, &again).map(|page| bytes_of(&page));
        assert_eq!(other, Some(bytes_of(&page)), "an image of a decoded page is the same page");
    }
}

/// A node of a tree: the first two bytes choose the operations, the rest is its image. It is searched, gone
/// through and changed.
pub fn node(bytes: &[u8]) {
    let Some(([seed, choice], bytes)) = bytes.split_first_chunk() else { return };
    for (header, image) in both(bytes) {
        let Some(page) = page_of(header, &image) else { continue };
        let node = Node::new(page.page());
        go_through(node);
        let _either_way = node.adds_up();
        let scratch = OwnPage::new(page.page().len_bytes());
        change(node, &scratch, [*seed, *choice]);
        go_through(node);
    }
}

/// All keys and values, and searches for them and for their neighbours.
pub(super) fn go_through(node: Node<'_>) {
    let page_bytes = node_bytes(node);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    node.lower_fence(&mut key);
    let _either_way = node.upper_fence(&mut value);
    assert!(key.len().max(value.len()) <= page_bytes);
    let _any = (node.used_bytes(), node.capacity_bytes(), node.free_bytes());
    assert!(node.free_bytes() as usize <= page_bytes && node.count() as usize <= page_bytes);
    for index in 0..node.count() {
        key.clear();
        value.clear();
        node.key(index, &mut key);
        if node.is_leaf() {
            node.value(index, &mut value);
            let _any = node.value_head(index);
        } else {
            let _any = node.child(index);
        }
        assert!(key.len() <= 3 * page_bytes && value.len() <= page_bytes);
        search(node, &key);
        key.push(0);
        search(node, &key);
        key.truncate(key.len() / 2);
        search(node, &key);
    }
    search(node, &[]);
    search(node, &[u8::MAX; 300]);
}

fn search(node: Node<'_>, key: &[u8]) {
    let count = node.count();
    match node.find(key) {
        Ok(index) => assert!(index < count, "a slot that there is"),
        Err(index) => assert!(index <= count, "a place that there is"),
    }
    assert!(node.child_slot(key) <= count.saturating_sub(1) && node.position(key) <= count);
    assert!(node.child_slot_below(Some(key)) <= count && node.child_slot_below(None) <= count);
}

fn node_bytes(node: Node<'_>) -> usize {
    (node.capacity_bytes() + node.free_bytes()).max(class_bytes(CLASSES - 1) as u32) as usize
}

/// Some changes, as a tree makes them: where a search says, and only of existing records.
fn change(node: Node<'_>, scratch: &OwnPage, [seed, choice]: [u8; 2]) {
    let key = [seed, choice, 0xff, 0, seed, 1, 2].repeat(usize::from(choice % 4));
    let value = vec![choice; usize::from(seed)];
    for step in 0..3 {
        let found = node.find(&key);
        // A full node does not matter here.
        let _full = match (node.is_leaf(), found, (choice >> 2).wrapping_add(step) % 3) {
            (true, Ok(index), 0) => node.replace(index, &value, scratch),
            (true, Ok(index), _) => {
                node.remove(index);
                Ok(())
            }
            (true, Err(index), _) => node.insert(index, &key, &value, scratch),
            (false, Err(index), 0) => node.insert_child(index, &key, PageId(seed.into()), scratch),
            (false, _, _) if node.count() > 1 => {
                node.remove(node.count() - 1);
                Ok(())
            }
            (false, _, _) => Ok(()),
        };
        node.tidy(scratch);
    }
}

/// A page of an overflow value.
pub fn overflow(bytes: &[u8]) {
    for (header, image) in both(bytes) {
        let Some(page) = page_of(header, &image) else { continue };
        let (_owner, part) = crate::btree::overflow::part_of(page.page());
        assert!(part.len() <= page.page().len_bytes() as usize);
    }
}

/// A page of the page table.
pub fn map(bytes: &[u8]) {
    for (header, image) in both(bytes) {
        let Some(page) = page_of(header, &image) else { continue };
        let serial = header.page.0.wrapping_sub(page_id(0).0);
        let Some(location) = location(0, image.len(), header.class) else { continue };
        let map = MapPage::new(page.page(), MapPageLocation { serial, location });
        if let Ok(priors) = map.priors() {
            assert!(priors.len() <= PRIORS && priors.iter().all(|prior| prior.serial < serial));
        }
        let mut scratch = Vec::new();
        let mut seen = 0_usize;
        let _either_way = map.changes(&mut scratch, &mut |change| {
            seen += 1;
            if let Change::Page(id, _) = change {
                assert!(id.0 > 0 && !id.is_volatile());
            }
            Ok(())
        });
        assert!(seen <= page.page().len_bytes() as usize / 2, "a change has two bytes at least");
    }
}

/// The bytes as they are and with a header that belongs to them, of a page of some size.
fn both(bytes: &[u8]) -> impl Iterator<Item = (Header, Vec<u8>)> {
    let plain = Header::decode(bytes).map(|header| (header, bytes.to_vec()));
    [plain, Header::decode(bytes).and_then(|header| made_right(header, bytes))].into_iter().flatten()
}

fn made_right(header: Header, bytes: &[u8]) -> Option<(Header, Vec<u8>)> {
    let class = usize::from(header.class) % CLASSES;
    let most = class_bytes(class) as usize;
    let mut image = bytes[..bytes.len().min(most)].to_vec();
    image.resize(image.len().next_multiple_of(GRAIN_BYTES), 0);
    let kind = [PageKind::Node, PageKind::Overflow, PageKind::Map][usize::from(header.kind) % 3] as u8;
    let header =
        Header { class: class as u8, kind, image_grains: (image.len() / GRAIN_BYTES) as u16, ..header };
    pack::seal(header, &mut image);
    Some((Header::decode(&image)?, image))
}

fn location(offset_bytes: u64, length_bytes: usize, class: u8) -> Option<Location> {
    let fits = usize::from(class) < CLASSES && length_bytes <= class_bytes(class.into()) as usize;
    let is_one = fits && length_bytes > 0 && length_bytes.is_multiple_of(GRAIN_BYTES);
    is_one.then(|| Location::new(offset_bytes, length_bytes as u32, class.into()))
}

/// The page of an image that is right.
fn page_of(header: Header, image: &[u8]) -> Option<OwnPage> {
    let location = location(0, image.len(), header.class)?;
    let expected = Expected { location, page: header.page, oldest_sequence: 0 };
    let header = pack::verify(image, expected).ok()?;
    let page_bytes = class_bytes(header.class.into()) as usize;
    assert!(image.len() >= PAGE_HEADER_BYTES as usize && image.len() <= page_bytes);
    let mut memory = vec![0; page_bytes];
    memory[..image.len()].copy_from_slice(image);
    pack::unpack(header, 0, &mut memory);
    // The page's unused middle is not part of the image and keeps the former content of the memory.
    let (front, back) = (header.front_end as usize, header.back_start as usize);
    memory[front..back].fill(0);
    let page = OwnPage::new(page_bytes as u32);
    page.page().copy_from(0, &memory);
    Some(page)
}

/// All of a page but the checksum.
fn bytes_of(page: &OwnPage) -> Vec<u8> {
    let mut bytes = Vec::new();
    page.page().copy_to(4, page.page().len_bytes() - 4, &mut bytes);
    bytes
}
