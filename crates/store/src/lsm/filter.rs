//! Filters: which keys a part of a table certainly does not have.
//!
//! A standard ribbon filter (Dillinger, Hübschle-Schneider, Sanders, Walzer: "Fast Succinct Retrieval and
//! Approximate Membership using Ribbon", 2022). Each key's hash gives a row of a linear system over GF(2): 64
//! coefficients from a start on, and a result of r bits. The filter is a solution of the system; a key is
//! perhaps there if its row has its result. A key that is not there passes with 2^-r, and the solution takes
//! little more than r bits for each key; a Bloom filter of as many bits lets several times as many pass.
//!
//! ```text
//! | seed, u8 | result bits r, u8 | rows / 64, u32 | for each 64 rows: r columns, u64 each |
//! ```

use crate::hash::mix;

/// Coefficients of a row.
const WIDTH: u64 = 64;

const HEADER_BYTES: usize = 6;
const COLUMN_BYTES: usize = size_of::<u64>();

/// Most result bits: one in 2^24 passes.
const RESULT_BITS_MAX: u32 = 24;

/// Systems that are tried before there are more rows.
const SEEDS: u8 = 8;

/// Rows for each key at first, and by how much they grow if no system has a solution.
const ROWS_PER_KEY: f64 = 1.05;
const GROWTH: f64 = 1.05;

/// A row of the system.
#[derive(Clone, Copy)]
struct Row {
    start: u64,
    coefficients: u64,
    result: u32,
}

impl Row {
    /// The equation of a key's hash, in a system of `rows` rows.
    fn of(hash: u64, seed: u8, rows: u64, result_bits: u32) -> Self {
        let mixed = mix(hash ^ u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let starts = rows - WIDTH + 1;
        let start = ((u128::from(mixed) * u128::from(starts)) >> 64) as u64;
        let coefficients = mix(mixed ^ 0xd6e8_feb8_6659_fd93);
        let result = mix(coefficients) & ((1 << result_bits) - 1);
        Self { start, coefficients: coefficients | 1, result: result as u32 }
    }
}

/// Result bits of a filter of `bits_per_key` bits for each key, its rows included; 0: no filter.
fn result_bits(bits_per_key: f64) -> u32 {
    ((bits_per_key / ROWS_PER_KEY) as u32).min(RESULT_BITS_MAX)
}

/// Bytes that a filter of `keys` keys hardly ever exceeds.
pub(super) fn bytes_max(keys: usize, bits_per_key: f64) -> usize {
    let rows = (keys as f64 * ROWS_PER_KEY + WIDTH as f64) as u64;
    let rows = rows.next_multiple_of(WIDTH) as usize;
    HEADER_BYTES + rows / 8 * result_bits(bits_per_key) as usize
}

/// The filter of the keys with these hashes, of about `bits_per_key` bits for each; empty if that is less
/// than one.
pub(super) fn build(hashes: &[u64], bits_per_key: f64) -> Vec<u8> {
    let result_bits = result_bits(bits_per_key);
    if result_bits == 0 || hashes.is_empty() {
        return Vec::new();
    }
    let mut rows_wanted = hashes.len() as f64 * ROWS_PER_KEY + WIDTH as f64;
    loop {
        let rows = (rows_wanted as u64).next_multiple_of(WIDTH);
        let solved = (0..SEEDS).find_map(|seed| Some((seed, solve(hashes, seed, rows, result_bits)?)));
        if let Some((seed, columns)) = solved {
            let mut filter = vec![seed, result_bits as u8];
            filter.extend_from_slice(&((rows / WIDTH) as u32).to_le_bytes());
            columns.iter().for_each(|column| filter.extend_from_slice(&column.to_le_bytes()));
            return filter;
        }
        rows_wanted *= GROWTH;
    }
}

/// Columns of a solution, by 64 rows; `None` if there is none.
fn solve(hashes: &[u64], seed: u8, rows: u64, result_bits: u32) -> Option<Vec<u64>> {
    // Gauss: of the row that begins at each place its coefficients from there on, and its result.
    let mut pivots = vec![(0_u64, 0_u32); rows as usize];
    for hash in hashes {
        let Row { start, mut coefficients, mut result } = Row::of(*hash, seed, rows, result_bits);
        let mut at = start as usize;
        loop {
            let (own, own_result) = pivots[at];
            if own == 0 {
                pivots[at] = (coefficients, result);
                break;
            }
            (coefficients, result) = (coefficients ^ own, result ^ own_result);
            if coefficients == 0 {
                // The sum of other rows: nothing new, or a contradiction.
                if result == 0 {
                    break;
                }
                return None;
            }
            let shift = coefficients.trailing_zeros();
            coefficients >>= shift;
            at += shift as usize;
        }
    }
    Some(substitute_back(&pivots, result_bits as usize))
}

fn substitute_back(pivots: &[(u64, u32)], result_bits: usize) -> Vec<u64> {
    let mut columns = vec![0_u64; pivots.len() / WIDTH as usize * result_bits];
    // Of each column the 64 rows from the present one on.
    let mut window = vec![0_u64; result_bits];
    for (at, (coefficients, result)) in pivots.iter().enumerate().rev() {
        let (word, bit) = (at / WIDTH as usize, at % WIDTH as usize);
        for (number, rows) in window.iter_mut().enumerate() {
            let later = *rows << 1;
            let own = (result >> number & 1) ^ (coefficients & later).count_ones() & 1;
            // A place without a row may have anything.
            let own = if *coefficients == 0 { 0 } else { own };
            *rows = later | u64::from(own);
            columns[word * result_bits + number] |= u64::from(own) << bit;
        }
    }
    columns
}

/// Whether the key with this hash may be among those of the filter. An empty one has every key; one that is
/// damaged as well.
pub(super) fn may_have(filter: &[u8], hash: u64) -> bool {
    passes(filter, hash).unwrap_or(true)
}

/// `None` if it is no filter.
fn passes(filter: &[u8], hash: u64) -> Option<bool> {
    let (header, columns) = filter.split_first_chunk::<HEADER_BYTES>()?;
    let [seed, result_bits, words @ ..] = *header;
    let (result_bits, words) = (u32::from(result_bits), u64::from(u32::from_le_bytes(words)));
    if words == 0 || result_bits > RESULT_BITS_MAX {
        return None;
    }
    let row = Row::of(hash, seed, words * WIDTH, result_bits);
    let (word, shift) = ((row.start / WIDTH) as usize, row.start % WIDTH);
    let column = |word: usize, number: u32| {
        let at = (word * result_bits as usize + number as usize) * COLUMN_BYTES;
        Some(u64::from_le_bytes(*columns.get(at..)?.first_chunk()?))
    };
    for number in 0..result_bits {
        let mut rows = column(word, number)? >> shift;
        if shift > 0 {
            rows |= column(word + 1, number)? << (WIDTH - shift);
        }
        if (rows & row.coefficients).count_ones() & 1 != row.result >> number & 1 {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hashes(count: u64, seed: u64) -> Vec<u64> {
        (0..count).map(|number| mix(number ^ seed << 40)).collect()
    }

    #[test]
    fn every_key_is_there_and_few_others_pass() {
        for count in [1, 2, 63, 64, 65, 1000, 20_000] {
            let keys = hashes(count, 1);
            let filter = build(&keys, 10.0);
            assert!(keys.iter().all(|hash| may_have(&filter, *hash)), "{count}");
            let others = hashes(200_000, 2);
            let passed = others.iter().filter(|hash| may_have(&filter, **hash)).count();
            // 2^-9 of them, 391 with a deviation of 20.
            assert!((300..480).contains(&passed), "{count}: {passed}");
            let bits = (filter.len() * 8) as f64 / count as f64;
            assert!(count < 1000 || bits < 10.5, "{count}: {bits}");
        }
    }

    #[test]
    fn keys_with_the_same_hash_are_one() {
        let keys = [hashes(500, 3), hashes(500, 3)].concat();
        let filter = build(&keys, 8.0);
        assert!(keys.iter().all(|hash| may_have(&filter, *hash)));
    }

    #[test]
    fn less_than_a_bit_is_no_filter() {
        let filter = build(&hashes(10, 4), 0.9);
        assert!(filter.is_empty() && may_have(&filter, 7));
    }

    proptest! {
        #[test]
        fn nonsense_is_no_panic(filter: Vec<u8>, hash: u64) {
            let _any_answer = may_have(&filter, hash);
        }

        #[test]
        fn all_keys_are_there(keys in proptest::collection::vec(any::<u64>(), 0..300), bits in 1.0_f64..30.0) {
            let filter = build(&keys, bits);
            prop_assert!(keys.iter().all(|hash| may_have(&filter, *hash)));
        }
    }
}
