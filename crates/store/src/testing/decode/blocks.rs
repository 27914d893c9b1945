//! Images in blocks, and the nodes that they are.

use super::pages::go_through;
use crate::btree::NodeDivision;
use crate::btree::node::Node;
use crate::class::class_bytes;
use crate::header::{Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::OwnPage;
use crate::segment::Location;
use crate::segment::blocks::{self, Division};
use crate::segment::image::Expected;
use crate::segment::pack;

/// Of the page: four blocks of the smallest size.
const CLASS: usize = 2;
const BLOCK_CLASS: usize = 0;
const GRAIN_BYTES: usize = 64;

/// An image in blocks. The first two bytes choose where the first part begins; the rest is the image, which
/// is given right headers. Each of its blocks is looked at alone, then it is made a page of, which is gone
/// through, divided again and made a page of again.
pub fn image_in_blocks(bytes: &[u8]) {
    let Some(([low, high], bytes)) = bytes.split_first_chunk() else { return };
    let block_bytes = class_bytes(BLOCK_CLASS) as u32;
    let mut image = bytes[..bytes.len().min(class_bytes(CLASS) as usize)].to_vec();
    image.resize(image.len().next_multiple_of(GRAIN_BYTES).max(GRAIN_BYTES), 0);
    let first_part = PAGE_HEADER_BYTES + u32::from(u16::from_le_bytes([*low, *high])) * 4 % block_bytes;
    let header = Header {
        checksum: 0,
        image_grains: (image.len() / GRAIN_BYTES) as u16,
        class: CLASS as u8,
        kind: blocks::kind_in_blocks(PageKind::BLOCK_NODES[BLOCK_CLASS] as u8),
        page: PageId(7),
        sequence: 9,
        front_end: block_bytes,
        back_start: first_part,
    };
    pack::seal(header, &mut image);
    let expected = Expected {
        location: Location::new(0, image.len() as u32, CLASS),
        page: PageId(7),
        oldest_sequence: 9,
    };
    for (number, block) in image.chunks(block_bytes as usize).enumerate() {
        if blocks::verify_block(block, number as u32, expected).is_ok() {
            let page = OwnPage::new(block.len() as u32);
            page.page().copy_from(0, block);
            go_through(Node::new(page.page().part(if number == 0 { first_part } else { 0 }, block_bytes)));
        }
    }
    let Ok(header) = pack::verify(&image, expected) else { return };
    let (from, page) = (OwnPage::new(class_bytes(CLASS) as u32), OwnPage::new(class_bytes(CLASS) as u32));
    from.page().copy_from(0, &image);
    if !NodeDivision.unite(from.page(), block_bytes, blocks::divided(header), page.page()) {
        return;
    }
    go_through(Node::new(page.page()));
    let again = OwnPage::new(class_bytes(CLASS) as u32);
    if let Some(divided) = NodeDivision.divide(page.page(), block_bytes, again.page()) {
        let other = OwnPage::new(class_bytes(CLASS) as u32);
        assert!(NodeDivision.unite(again.page(), block_bytes, divided, other.page()));
        assert_eq!(
            Node::new(other.page()).count(),
            Node::new(page.page()).count(),
            "as many records as before"
        );
    }
}
