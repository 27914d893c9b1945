//! Keys and values of a benchmark's records, and the choice of records.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Bytes of a key that say which record it is.
pub const KEY_BYTES_MIN: usize = 8;

/// The key of a record: its number, big-endian, filled up with zeros.
pub fn key(record: u64, into: &mut [u8]) {
    into.fill(0);
    if let Some(head) = into.get_mut(..KEY_BYTES_MIN) {
        head.copy_from_slice(&record.to_be_bytes());
    }
}

/// The key of a record in a table whose keys come in no order: every record has another one.
pub fn scattered_key(record: u64, into: &mut [u8]) {
    key(mix(record), into);
}

/// The records below `count` in the order of their scattered keys.
pub fn by_scattered_key(count: u64) -> Vec<u64> {
    let mut records: Vec<u64> = (0..count).collect();
    records.sort_unstable_by_key(|record| mix(*record));
    records
}

/// The value of a record after its `version`-th write: incompressible, with a beginning that identifies the
/// record.
pub fn value(record: u64, version: u64, into: &mut [u8]) {
    let mut state = mix(record) ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut words = into.chunks_mut(8);
    if let Some(head) = words.next() {
        head.copy_from_slice(&mix(record).to_le_bytes()[..head.len()]);
    }
    for word in words {
        state = mix(state);
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

/// Whether a value is one of this record's.
pub fn is_of(record: u64, value: &[u8]) -> bool {
    let head = mix(record).to_le_bytes();
    let length = value.len().min(head.len());
    value[..length] == head[..length]
}

/// A bijection of the 64-bit numbers that looks random (the finaliser of `SplitMix64`).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Popularity of the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The i-th most popular in proportion to i to the power of -theta; popular records are strewn over the
    /// key space, and are among those of the beginning: new ones make others neither more popular nor less.
    Zipf {
        /// The skew, between 0 and 1.
        theta: f64,
    },
    /// The i-th newest as often as the i-th most popular by Zipf.
    Latest {
        /// The skew, between 0 and 1.
        theta: f64,
    },
}

/// YCSB's.
const USUAL_THETA: f64 = 0.99;

impl std::str::FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, theta) = match text.split_once(':') {
            None => (text, USUAL_THETA),
            Some((name, theta)) => (name, theta.parse().unwrap_or(f64::NAN)),
        };
        let is_skew = theta > 0.0 && theta < 1.0;
        match name {
            "uniform" if !text.contains(':') => Ok(Self::Uniform),
            "zipf" if is_skew => Ok(Self::Zipf { theta }),
            "latest" if is_skew => Ok(Self::Latest { theta }),
            _ => {
                Err("expected uniform, zipf, zipf:THETA, latest or latest:THETA, with a skew THETA between 0 and 1"
                    .into())
            }
        }
    }
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Zipf { theta } => write!(formatter, "zipf:{theta}"),
            Self::Latest { theta } => write!(formatter, "latest:{theta}"),
        }
    }
}

/// Parameters that all streams of picks share.
#[derive(Clone, Copy, Debug)]
pub struct Popularity {
    records: u64,
    zipf: Option<Zipf>,
    is_latest: bool,
}

/// Constants of Gray's method (SIGMOD 1994), which needs no table.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    theta: f64,
    zeta: f64,
    zeta_two: f64,
    alpha: f64,
    eta: f64,
}

impl Popularity {
    /// A generator of picks among `records` records.
    pub fn new(records: u64, distribution: Distribution) -> Self {
        let zipf = match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf { theta } | Distribution::Latest { theta } => {
                let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
                let (zeta, zeta_two) = (zeta_of(records), zeta_of(2));
                let eta = (1.0 - (2.0 / records as f64).powf(1.0 - theta)) / (1.0 - zeta_two / zeta);
                Some(Zipf { theta, zeta, zeta_two, alpha: 1.0 / (1.0 - theta), eta })
            }
        };
        Self { records, zipf, is_latest: matches!(distribution, Distribution::Latest { .. }) }
    }

    /// Zeta of all records, zeta of two, alpha and eta, where there is a skew.
    pub(crate) fn grays_constants(&self) -> Option<[f64; 4]> {
        self.zipf.map(|zipf| [zipf.zeta, zipf.zeta_two, zipf.alpha, zipf.eta])
    }

    /// The record of `count` that is the `rank`-th most popular.
    fn record_of_rank(&self, rank: u64, count: u64) -> u64 {
        match self.is_latest {
            true => count - 1 - rank.min(count - 1),
            false => mix(rank) % self.records,
        }
    }

    fn rank(&self, zipf: &Zipf, uniform: f64) -> u64 {
        let share = uniform * zipf.zeta;
        if share < 1.0 {
            return 0;
        }
        if share < zipf.zeta_two {
            return 1;
        }
        let rank = self.records as f64 * (zipf.eta * uniform - zipf.eta + 1.0).powf(zipf.alpha);
        debug_assert!(zipf.theta > 0.0);
        (rank as u64).min(self.records - 1)
    }
}

/// One stream of picks.
pub struct Picker {
    random: Pcg64,
    popularity: Popularity,
}

impl Picker {
    /// The `stream`-th stream of a seed.
    pub fn new(popularity: Popularity, seed: u64, stream: u64) -> Self {
        Self { random: Pcg64::seed_from_u64(seed ^ mix(stream + 1)), popularity }
    }

    /// The next record.
    pub fn record(&mut self) -> u64 {
        self.record_of(self.popularity.records)
    }

    /// The next record where there are `count` by now.
    pub fn record_of(&mut self, count: u64) -> u64 {
        let number = self.random.next_u64();
        match &self.popularity.zipf {
            None => below(number, count),
            Some(zipf) => self.popularity.record_of_rank(self.popularity.rank(zipf, unit(number)), count),
        }
    }

    /// A number from `from` to `to`, all alike.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + below(self.random.next_u64(), to - from + 1)
    }

    /// A random number from 0 to just below 1.
    pub fn share(&mut self) -> f64 {
        unit(self.random.next_u64())
    }

    /// True with this probability.
    pub fn chance(&mut self, share: f64) -> bool {
        share >= 1.0 || self.share() < share
    }
}

/// A random number, brought below `bound`.
fn below(number: u64, bound: u64) -> u64 {
    ((u128::from(number) * u128::from(bound)) >> 64) as u64
}

/// A number from 0 to just below 1.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_whose_they_are() {
        let mut bytes = [0; 120];
        value(7, 3, &mut bytes);
        assert!(is_of(7, &bytes) && !is_of(8, &bytes));
        let first = bytes;
        value(7, 4, &mut bytes);
        assert!(is_of(7, &bytes) && bytes != first);
    }

    #[test]
    fn keys_are_in_the_order_of_their_records() {
        let (mut low, mut high) = ([1; 12], [0; 12]);
        key(255, &mut low);
        key(256, &mut high);
        assert!(low < high && low[8..] == [0; 4]);
    }

    #[test]
    fn uniform_picks_reach_everything_alike() {
        let mut counts = [0_u32; 10];
        let mut picker = Picker::new(Popularity::new(10, Distribution::Uniform), 1, 0);
        (0..100_000).for_each(|_| counts[picker.record() as usize] += 1);
        // Each expects 10,000 with a standard deviation of 95.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_ranks_have_their_probabilities() {
        let theta = 0.8;
        let popularity = Popularity::new(1000, Distribution::Zipf { theta });
        let zipf = popularity.zipf.unwrap();
        let mut picker = Picker::new(popularity, 5, 0);
        let draws = 200_000;
        let mut first = [0_u32; 2];
        for _ in 0..draws {
            let rank = popularity.rank(&zipf, unit(picker.random.next_u64()));
            if let Some(count) = first.get_mut(rank as usize) {
                *count += 1;
            }
        }
        for (rank, count) in first.into_iter().enumerate() {
            let expected = f64::from(draws) * ((rank + 1) as f64).powf(-theta) / zipf.zeta;
            let deviation = (f64::from(count) - expected).abs() / expected.sqrt();
            assert!(deviation < 5.0, "rank {rank}: {count} instead of {expected}");
        }
    }

    #[test]
    fn what_is_popular_stays_so_while_records_are_added() {
        let popularity = Popularity::new(1000, Distribution::Zipf { theta: 0.99 });
        let picks = |growth: u64| {
            let mut picker = Picker::new(popularity, 5, 0);
            (0..1000).map(|pick| picker.record_of(1000 + growth * pick)).collect::<Vec<_>>()
        };
        assert_eq!(picks(0), picks(1));
    }

    #[test]
    fn distributions_are_typed_as_they_are_shown() {
        for text in ["uniform", "zipf:0.5"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Distribution::Zipf { theta: 0.99 }));
        for text in ["", "normal", "zipf:", "zipf:1", "zipf:-1", "zipf:x"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
