//! Superblocks, labels and durable marks.

use std::fmt::Debug;

use crate::checkpoint::label::Label;
use crate::checkpoint::superblock::Superblock;
use crate::log::durable_mark::DurableMark;
use crate::sector::{Found, SECTOR_BYTES, sealed};

/// A superblock: the first 512 bytes.
pub fn superblock(bytes: &[u8]) {
    each(bytes, |sector| whole(Superblock::decode(sector)), |superblock| superblock.encode());
}

/// A label: the first 512 bytes.
pub fn label(bytes: &[u8]) {
    each(bytes, |sector| whole(Label::decode(sector)), Label::encode);
    let mut member = vec![0; 8 << 10];
    member.extend_from_slice(bytes);
    assert_eq!(Label::of_member(&member), whole(Label::decode(bytes)));
}

/// A durable mark: the first 512 bytes.
pub fn durable_mark(bytes: &[u8]) {
    each(bytes, |sector| whole(DurableMark::decode(sector)), DurableMark::encode);
}

fn whole<T>(found: Found<T>) -> Option<T> {
    match found {
        Found::Whole(found) => Some(found),
        Found::Foreign | Found::Version(_) | Found::Damaged => None,
    }
}

fn each<T: Debug + PartialEq>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
    encode: impl Fn(&T) -> [u8; SECTOR_BYTES],
) {
    let mut sector = [0; SECTOR_BYTES];
    let length = bytes.len().min(SECTOR_BYTES);
    sector[..length].copy_from_slice(&bytes[..length]);
    for bytes in [bytes, &sealed(sector)] {
        if let Some(found) = decode(bytes) {
            assert_eq!(decode(&encode(&found)), Some(found), "a decoded value comes back");
        }
    }
}
