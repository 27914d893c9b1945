//! The keys of a tree, and the bounds of ranges of them.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::{Mutex, PoisonError};

use rand::RngExt;
use rand_pcg::Pcg64;

use super::draw::log_uniform;
use super::feature::{Feature, Features};
use crate::world::KeyRange;

/// Keys of a tree with [`Feature::ManyKeys`], and of others.
const MANY_KEYS: u64 = 3000;
const FEW_KEYS: u64 = 300;

/// Bounds of earlier ranges that others begin or end at.
const RECENT: usize = 8;

/// One in this number of keys has the longest length, and this fraction begins with the shared prefix.
const FULL_LENGTH_ONE_IN: u32 = 30;
const PREFIXED_IN: f64 = 0.7;

/// Most hot keys of a tree, and the fraction of operations that concern them.
const HOT_MAX: usize = 5;
const HOT_IN: f64 = 0.7;

/// All keys that a tree may ever have.
pub struct Keys {
    /// Sorted.
    all: Vec<Vec<u8>>,
    /// The most bytes of a key.
    longest: usize,
    /// Those that most operations concern, if there are any.
    hot: Range<usize>,
    recent: Mutex<VecDeque<Vec<u8>>>,
}

/// How keys are made.
struct Shape {
    longest: usize,
    /// All have it, unless it is drawn for each.
    length: Option<usize>,
    prefix: Vec<u8>,
    alphabet: u64,
    first_letter: u8,
}

impl Shape {
    fn draw(random: &mut Pcg64, features: Features, longest: usize) -> Self {
        let usual = if features.has(Feature::LongKeys) { longest } else { longest.min(40) };
        let length = features.has(Feature::OneLength).then(|| log_uniform(random, 1, usual as u64) as usize);
        let prefix =
            if features.has(Feature::Prefixes) { log_uniform(random, 1, usual as u64 / 2) } else { 0 };
        let alphabet = log_uniform(random, 2, 256);
        let first_letter = random.random_range(0..=256 - alphabet) as u8;
        let longest = if features.has(Feature::LongKeys) { longest } else { usual };
        let mut shape = Self { longest, length, prefix: Vec::new(), alphabet, first_letter };
        shape.prefix = (0..prefix).map(|_| shape.letter(random)).collect();
        shape
    }

    fn letter(&self, random: &mut Pcg64) -> u8 {
        self.first_letter + random.random_range(0..self.alphabet) as u8
    }

    fn key(&self, random: &mut Pcg64) -> Vec<u8> {
        let is_longest = self.length.is_none() && random.random_ratio(1, FULL_LENGTH_ONE_IN);
        let drawn = log_uniform(random, 1, self.longest as u64) as usize;
        let length = self.length.unwrap_or(if is_longest { self.longest } else { drawn });
        let mut key = if random.random_bool(PREFIXED_IN) { self.prefix.clone() } else { Vec::new() };
        key.truncate(length);
        // Long keys differ in their first letters and in their last ones.
        let filler = self.letter(random);
        let distinct = random.random_range(1..24);
        while key.len() < length {
            let is_distinct = key.len() + distinct >= length;
            key.push(if is_distinct { self.letter(random) } else { filler });
        }
        key
    }
}

impl Keys {
    /// Drawn, of at most `longest` bytes each and `bytes` together.
    pub fn draw(random: &mut Pcg64, features: Features, longest: usize, bytes: u64) -> Self {
        let shape = Shape::draw(random, features, longest);
        let most = if features.has(Feature::ManyKeys) { MANY_KEYS } else { FEW_KEYS };
        let count = log_uniform(random, 4, most);
        let (mut all, mut sum): (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
        for _ in 0..count {
            let key = shape.key(random);
            sum += key.len() as u64;
            if sum > bytes && all.len() > 3 {
                break;
            }
            all.push(key);
        }
        all.sort_unstable();
        all.dedup();
        let mut hot = 0..0;
        if features.has(Feature::HotKeys) {
            let first = random.random_range(0..all.len());
            hot = first..(first + random.random_range(1..=HOT_MAX)).min(all.len());
        }
        Self { all, longest, hot, recent: Mutex::default() }
    }

    /// The longest of them.
    pub fn longest(&self) -> usize {
        self.all.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Vec<u8>] {
        &self.all
    }

    /// One of them.
    pub fn any(&self, random: &mut Pcg64) -> Vec<u8> {
        if !self.hot.is_empty() && random.random_bool(HOT_IN) {
            return self.all[random.random_range(self.hot.clone())].clone();
        }
        self.all[random.random_range(0..self.all.len())].clone()
    }

    /// Neighbours, from one of them on.
    pub fn run(&self, random: &mut Pcg64, most: u64) -> &[Vec<u8>] {
        let count = log_uniform(random, 1, most.min(self.all.len() as u64)) as usize;
        let start = random.random_range(0..=self.all.len() - count);
        &self.all[start..start + count]
    }

    /// A bound near a key: the key, the key with a zero after it, a key before it, a part of it, or more
    /// bytes than a key may have.
    fn near(&self, random: &mut Pcg64, key: &[u8]) -> Vec<u8> {
        let mut bound = key.to_vec();
        match random.random_range(0..9) {
            0 => bound.push(0),
            1 => bound = predecessor(key, self.longest),
            2 => bound.truncate(key.len() / 2),
            3 => bound.resize(self.longest + random.random_range(1..9), [0, 0xff][random.random_range(0..2)]),
            4 => bound.resize(self.longest, 0xff),
            _ => {}
        }
        bound
    }

    fn bound(&self, random: &mut Pcg64, key: &[u8]) -> Bound<Vec<u8>> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = recent().len();
        let bytes = match random.random_range(0..12) {
            0 => return Bound::Unbounded,
            1..5 if remembered > 0 => recent()[random.random_range(0..remembered)].clone(),
            _ => self.near(random, key),
        };
        if random.random() { Bound::Included(bytes) } else { Bound::Excluded(bytes) }
    }

    /// From empty ones to all keys.
    pub fn range(&self, random: &mut Pcg64) -> KeyRange {
        let run = self.run(random, self.all.len() as u64);
        let (first, last) =
            (run.first().cloned().unwrap_or_default(), run.last().cloned().unwrap_or_default());
        (self.bound(random, &first), self.bound(random, &last))
    }

    /// Where earlier ranges began or ended.
    pub fn remembered(&self) -> Vec<Vec<u8>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Later ranges may begin or end where this one does.
    pub fn remember(&self, range: &KeyRange) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for bound in [&range.0, &range.1] {
            if let Bound::Included(bytes) | Bound::Excluded(bytes) = bound {
                recent.push_back(bytes.clone());
            }
        }
        while recent.len() > RECENT {
            recent.pop_front();
        }
    }
}

/// The last of all keys of at most `longest` bytes before this one, or one like it.
fn predecessor(key: &[u8], longest: usize) -> Vec<u8> {
    let mut bytes = key.to_vec();
    match bytes.pop() {
        None | Some(0) => {}
        Some(last) => {
            bytes.push(last - 1);
            bytes.resize(longest.max(bytes.len()), 0xff);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::ops::RangeBounds;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn keys_have_all_lengths_and_ranges_all_sizes() {
        let (mut lengths, mut sizes) = (Vec::new(), Vec::new());
        for seed in 0..300 {
            let random = &mut Pcg64::seed_from_u64(seed);
            let keys = Keys::draw(random, Features::draw(seed), 1024, 100_000);
            assert!(keys.all().is_sorted() && keys.longest() <= 1024);
            lengths.extend(keys.all().iter().map(Vec::len));
            let range = keys.range(random);
            keys.remember(&range);
            let within = keys.all().iter().filter(|key| range.contains(*key)).count();
            sizes.push((within, keys.all().len()));
        }
        assert!([1, 2, 40, 1024].iter().all(|length| lengths.contains(length)));
        assert!(
            sizes.iter().any(|(within, _)| *within == 0) && sizes.iter().any(|(within, all)| within == all)
        );
        assert!(sizes.iter().any(|(within, all)| *within > 3 && within < all));
    }

    #[test]
    fn nothing_lies_between_a_key_and_its_predecessor() {
        assert_eq!(predecessor(b"b", 3), b"a\xff\xff");
        assert_eq!(predecessor(b"b\0", 3), b"b");
        assert_eq!(predecessor(b"", 3), b"");
    }
}
