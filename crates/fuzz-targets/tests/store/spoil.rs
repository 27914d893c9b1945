//! Nonsense for structures, under right checksums.

use flashgrain_fuzz_targets::mutate::{mutate, number};
use rand::{RngExt, seq::IndexedRandom};
use rand_pcg::Pcg64;

use super::find::{Kind, Structure, long, make_right, record_starts, word};

/// Checksum, length, class, kind, id and sequence of an image: what is wrong in them is found before anything
/// else is looked at.
const IMAGE_IDENTITY_BYTES: usize = 24;
const MAP_CHANGES: usize = 48;

/// Spoils a structure or a few; which, in words.
pub fn spoil(random: &mut Pcg64, device: &mut [u8], structures: &[Structure]) -> String {
    let kinds = [
        Kind::Superblock,
        Kind::Label,
        Kind::DurableMark,
        Kind::Node,
        Kind::Node,
        Kind::Overflow,
        Kind::Map,
        Kind::Map,
        Kind::LogBlock,
    ];
    let mut done = Vec::new();
    for _ in 0..random.random_range(1..=3) {
        let kind = *kinds.choose(random).unwrap();
        let alike: Vec<_> = structures.iter().filter(|structure| structure.kind == kind).collect();
        let Some(structure) = alike.choose(random) else { continue };
        let other = alike.choose(random).map(|other| device[other.bytes.clone()].to_vec()).unwrap();
        let what = spoil_one(random, &mut device[structure.bytes.clone()], kind, &other);
        make_right(device, structure);
        done.push(format!("{kind:?} at {}: {what}", structure.bytes.start));
    }
    done.join("; ")
}

fn spoil_one(random: &mut Pcg64, bytes: &mut [u8], kind: Kind, other: &[u8]) -> String {
    let (from, heads_end) = match kind {
        Kind::Superblock | Kind::Label => (16, 232),
        Kind::DurableMark => (16, 32),
        Kind::Node => (IMAGE_IDENTITY_BYTES, 200),
        Kind::Overflow => (IMAGE_IDENTITY_BYTES, 72),
        Kind::Map => (IMAGE_IDENTITY_BYTES, 80),
        Kind::LogBlock => (4, 64),
    };
    match (random.random_range(0..8), kind) {
        (0..4, _) => set_field(random, bytes, from..heads_end.min(bytes.len())),
        (4, _) => set_field(random, bytes, from..bytes.len()),
        (5, Kind::Map) | (6, Kind::Map) => change_map(random, bytes),
        (5, Kind::LogBlock) | (6, Kind::LogBlock) => change_record(random, bytes),
        (5, Kind::Node | Kind::Overflow) => {
            // Bytes that are valid in another place.
            let length = bytes.len().min(other.len());
            bytes[from..length].copy_from_slice(&other[from..length]);
            "what another one has".into()
        }
        _ => {
            let length = bytes.len();
            let mut spoilt = mutate(random, &bytes[from..], other, length - from);
            spoilt.resize(length - from, 0);
            bytes[from..].copy_from_slice(&spoilt);
            "mutated".into()
        }
    }
}

/// A number that means something, in most cases.
fn set_field(random: &mut Pcg64, bytes: &mut [u8], within: std::ops::Range<usize>) -> String {
    let width = 1_usize << random.random_range(0..4);
    let at = random.random_range(within) / width.min(4) * width.min(4);
    let Some(field) = bytes.get_mut(at..at + width) else { return "nothing".into() };
    let mut old = [0; 8];
    old[..width].copy_from_slice(field);
    let old = u64::from_le_bytes(old);
    let new = number(random, old);
    field.copy_from_slice(&new.to_le_bytes()[..width]);
    format!("{width} bytes at {at} from {old:#x} to {new:#x}")
}

fn change_record(random: &mut Pcg64, block: &mut [u8]) -> String {
    let Some(start) = record_starts(block).choose(random).copied() else { return "nothing".into() };
    // Its length, its first operation's kind, its tree, the lengths behind that.
    let at = start + [0, 4, 5, 5, 6, 7][random.random_range(0..6)];
    let old = block[at];
    block[at] = [0, 1, 2, 3, 4, 5, 6, 127, 128, 255, old.wrapping_add(1)][random.random_range(0..11)];
    format!("byte {} of a record from {old} to {}", at - start, block[at])
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
}

fn put_varint(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Changes of pages and segments as numbers: one becomes another, or any.
fn change_map(random: &mut Pcg64, page: &mut [u8]) -> String {
    let priors = word(page, 32) as usize;
    let length = word(page, 44) as usize;
    let start = MAP_CHANGES + 8 * priors;
    let Some(mut rest) = page.get(start..start + length) else { return "nothing".into() };
    let mut numbers = Vec::new();
    while let Some(number) = varint(&mut rest) {
        numbers.push(number);
    }
    if numbers.is_empty() {
        return "nothing".into();
    }
    let at = random.random_range(0..numbers.len());
    let old = numbers[at];
    // Locations are at odd places, and so are sequences.
    let same_parity = random.random_range(0..numbers.len()) / 2 * 2 + at % 2;
    numbers[at] = match random.random_range(0..3) {
        0 => numbers.get(same_parity).copied().unwrap_or(old),
        1 => old.wrapping_add(random.random_range(0..1 << 20)),
        _ => number(random, old),
    };
    let mut changes = Vec::new();
    numbers.iter().for_each(|number| put_varint(*number, &mut changes));
    let Some(place) = page.get_mut(start..start + changes.len()) else { return "nothing".into() };
    place.copy_from_slice(&changes);
    page[44..48].copy_from_slice(&(changes.len() as u32).to_le_bytes());
    assert!(long(page, 8) >= 1 << 48);
    format!("number {at} of its changes from {old:#x} to {:#x}", numbers[at])
}
