//! Records of the history that are longer than a map takes.
//!
//! Names and values of the history are longer than those of the trees that it works for, and its nodes are no
//! larger than a write unit and the cache allow. So the longest records of a tree may be longer than a map of
//! the history takes as one: these are cut into *parts*, which are records of the same map.
//!
//! ```text
//! name of a part:       | four bytes of ones | hash of the stem, u128 | timestamp, as in the name | number, u32 |
//! all parts in a row:   | bytes of the name, u32 | bytes of what is kept, u32 | name | what is kept |
//! ```
//!
//! The *stem* of a name is all of it but the timestamp at its end. Numbers are big-endian in names. A reader
//! compares the name that the parts contain, as two stems may have the same hash.
//!
//! The first part is written last: a reader that finds it finds all others.

use std::sync::Arc;

use super::ordered_map::OrderedMap;
use crate::Error;
use crate::btree::Change;
use crate::hash::hash;
use crate::index::{Direction, Piece};

/// No tree has this number.
const MARK: [u8; 4] = [0xff; 4];

const TIMESTAMP_BYTES: usize = 8;
const NUMBER_BYTES: usize = 4;
const PART_NAME_BYTES: usize = MARK.len() + 16 + TIMESTAMP_BYTES + NUMBER_BYTES;

/// The lengths that precede the name.
const LENGTHS_BYTES: usize = 8;

const STEM_SEEDS: [u64; 2] = [0x6869_7374_6f72_7921, 0x7665_7273_696f_6e73];

/// Name of a part of the record with this name.
fn part_name(name: &[u8], number: u32) -> [u8; PART_NAME_BYTES] {
    let (stem, timestamp) = name.split_at(name.len().saturating_sub(TIMESTAMP_BYTES));
    let mut bytes = [0; PART_NAME_BYTES];
    let [one, other] = STEM_SEEDS.map(|seed| hash(seed, stem).to_be_bytes());
    let pieces = [&MARK[..], &one, &other, timestamp, &number.to_be_bytes()];
    bytes.iter_mut().zip(pieces.into_iter().flatten()).for_each(|(byte, own)| *byte = *own);
    bytes
}

/// Puts a record into a map. Returns whether it was cut into parts.
///
/// # Errors
/// The map's.
pub(super) fn put(map: &dyn OrderedMap, name: &[u8], kept: &[u8]) -> Result<bool, Error> {
    let limits = map.limits();
    if name.len() <= limits.key_bytes && kept.len() <= limits.value_bytes {
        map.update(name, &mut |_| Change::Put(kept))?;
        return Ok(false);
    }
    let lengths = [name.len(), kept.len()].map(|length| (length as u32).to_le_bytes());
    let all = [&lengths[0][..], &lengths[1], name, kept].concat();
    let parts: Vec<&[u8]> = all.chunks(limits.value_bytes).collect();
    for (number, part) in parts.iter().enumerate().rev() {
        map.update(&part_name(name, number as u32), &mut |_| Change::Put(part))?;
        preempt!();
    }
    Ok(true)
}

/// Puts records together again whose parts come in the order of their names.
#[derive(Default)]
struct Joined {
    next: u32,
    bytes: Vec<u8>,
}

impl Joined {
    /// Takes the next part. Returns the name of the whole record and its kept bytes if that is complete.
    fn add(&mut self, part_name: &[u8], part: &[u8]) -> Option<(&[u8], &[u8])> {
        let number = part_name.last_chunk().map(|number| u32::from_be_bytes(*number));
        if number == Some(0) {
            (self.next, self.bytes) = (0, Vec::new());
        }
        if number != Some(self.next) {
            // The first part is missing: the record is still being written.
            self.next = u32::MAX;
            return None;
        }
        self.next += 1;
        self.bytes.extend_from_slice(part);
        let (lengths, rest) = self.bytes.split_first_chunk::<LENGTHS_BYTES>()?;
        let [name, kept] = [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| lengths[at + byte])));
        (rest.len() == name as usize + kept as usize).then(|| rest.split_at(name as usize))
    }
}

/// Shows the kept bytes of the newest record that was cut, among those with a stem, from one name to another.
///
/// # Errors
/// The map's.
pub(super) fn newest(
    map: &Arc<dyn OrderedMap>,
    (from, to): (&[u8], &[u8]),
    see: &mut dyn FnMut(&[u8]),
) -> Result<(), Error> {
    let (first, last) = (part_name(from, 0), part_name(to, 0));
    let (stem, _) = from.split_at(from.len().saturating_sub(TIMESTAMP_BYTES));
    let mut pieces = Arc::clone(map).scan(Direction::Forward, &first, Some(&last), 0);
    let (mut piece, mut joined) = (Piece::default(), Joined::default());
    while pieces.next(&mut piece)? {
        for (part_name, part) in piece.iter() {
            if let Some((name, kept)) = joined.add(part_name, part)
                && name.len() == from.len()
                && name.starts_with(stem)
            {
                see(kept);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Shows all records of a map.
///
/// # Errors
/// The map's, and those of `see`.
pub(super) fn each(
    map: &Arc<dyn OrderedMap>,
    mut see: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut pieces = Arc::clone(map).scan(Direction::Forward, &[], None, 0);
    let (mut piece, mut joined) = (Piece::default(), Joined::default());
    while pieces.next(&mut piece)? {
        for (name, kept) in piece.iter() {
            match name.starts_with(&MARK) {
                false => see(name, kept)?,
                true => joined.add(name, kept).map_or(Ok(()), |(name, kept)| see(name, kept))?,
            }
        }
    }
    Ok(())
}
