//! Pages of Bε-trees.

use crate::betree;
use crate::class::class_bytes;
use crate::page::OwnPage;

/// The largest page that is looked at.
const CLASS: usize = 2;

/// A page of a Bε-tree: the first byte chooses its size class, the second how long the key is that follows,
/// and the rest is the page from its beginning. It is searched, decoded and, where it can be, changed in
/// place.
pub fn part(bytes: &[u8]) {
    let Some(([class, key_bytes], bytes)) = bytes.split_first_chunk() else { return };
    let (key, bytes) = bytes.split_at(usize::from(*key_bytes).min(bytes.len()));
    let page_bytes = class_bytes(usize::from(*class) % (CLASS + 1));
    let page = OwnPage::new(page_bytes as u32);
    page.page().copy_from(0, &bytes[..bytes.len().min(page_bytes as usize)]);
    betree::go_through(page.page(), key);
}
