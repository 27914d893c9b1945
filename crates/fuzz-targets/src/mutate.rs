//! Mutations of bytes that know nothing of their meaning.

use rand::{Rng, RngExt};

/// The most mutations of one input.
const STEPS_MAX: u32 = 6;

/// Numbers that decoders often mishandle.
const INTERESTING: &[u64] = &[
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    31,
    32,
    63,
    64,
    127,
    128,
    255,
    256,
    511,
    512,
    4095,
    4096,
    4097,
    32_767,
    32_768,
    65_535,
    65_536,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    1 << 48,
    (1 << 62) - 1,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// A number that decoders often mishandle, or one near `old`, or any.
pub fn number(random: &mut impl Rng, old: u64) -> u64 {
    match random.random_range(0..8) {
        0..3 => INTERESTING[random.random_range(0..INTERESTING.len())],
        3 => old.wrapping_add(random.random_range(1..=16)),
        4 => old.wrapping_sub(random.random_range(1..=16)),
        5 => old ^ 1 << random.random_range(0..64),
        6 => random.random::<u64>() >> random.random_range(0..64),
        _ => old.wrapping_mul(random.random_range(0..=3)),
    }
}

/// Up to six mutations of `input`; `other` is another input that parts are taken from. Not longer than `most`
/// bytes.
pub fn mutate(random: &mut impl Rng, input: &[u8], other: &[u8], most: usize) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=STEPS_MAX) {
        step(random, &mut bytes, other);
    }
    bytes.truncate(most);
    bytes
}

fn step(random: &mut impl Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.extend_from_slice(other);
        bytes.push(random.random());
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..10) {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes[at] = random.random(),
        // A field: numbers stand at multiples of their lengths, mostly.
        2..5 => {
            let width = 1_usize << random.random_range(0..4);
            let at = at - at % width;
            if let Some(field) = bytes.get_mut(at..at + width) {
                let mut old = [0; 8];
                old[..width].copy_from_slice(field);
                let new = number(random, u64::from_le_bytes(old)).to_le_bytes();
                field.copy_from_slice(&new[..width]);
            }
        }
        5 => drop(bytes.drain(at..(at + random.random_range(1..=64)).min(bytes.len()))),
        6 => {
            let part = part(random, bytes).to_vec();
            drop(bytes.splice(at..at, part));
        }
        7 => {
            let part = part(random, other).to_vec();
            let end = (at + part.len()).min(bytes.len());
            drop(bytes.splice(at..end, part));
        }
        8 => {
            let part = part(random, other).to_vec();
            drop(bytes.splice(at..at, part));
        }
        _ => bytes.truncate(at),
    }
}

/// A short part of `bytes`.
fn part<'a>(random: &mut impl Rng, bytes: &'a [u8]) -> &'a [u8] {
    if bytes.is_empty() {
        return bytes;
    }
    let start = random.random_range(0..bytes.len());
    let length = random.random_range(1..=128);
    &bytes[start..(start + length).min(bytes.len())]
}
