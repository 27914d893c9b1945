//! Random numbers and strings as clauses 2.1.6 and 4.3.2 define them.

use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::rows::Text;

/// Syllables of last names (4.3.2.3).
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// Number of last names.
const LAST_NAMES: u32 = 1000;
const LETTERS_AND_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// A text within the data of some items and stocks (4.3.3.1).
pub(super) const ORIGINAL: &[u8] = b"ORIGINAL";

/// The constants C of the non-uniform distributions, one for each of their A (2.1.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    /// Constant for last names when the database is loaded.
    last_name_load: u32,
    /// Constant for last names in the run.
    last_name_run: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    /// Constants of a database.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, Stream::Constants);
        let last_name_load = random.between(0, 255);
        let last_name_run = loop {
            let run = random.between(0, 255);
            if matches!(run.abs_diff(last_name_load), 65..=95 | 97..=111 | 113..=119) {
                break run;
            }
        };
        Self {
            last_name_load,
            last_name_run,
            customer: random.between(0, 1023),
            item: random.between(0, 8191),
        }
    }
}

/// Purpose of a sequence of random numbers: each purpose has its own sequence, so that parts of a database
/// can be made in any order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Constants,
    Items,
    Warehouses,
    Districts,
    /// Stock of a warehouse.
    Stock(u32),
    History(u32),
    /// Of a district by its number in the database.
    Names(usize),
    Customers(usize),
    Orders(usize),
    OrderLines(usize),
    /// Of a client, in a run.
    Client(usize),
}

impl Stream {
    fn number(self) -> u128 {
        let (kind, part) = match self {
            Self::Constants => (0, 0),
            Self::Items => (1, 0),
            Self::Warehouses => (2, 0),
            Self::Districts => (9, 0),
            Self::History(warehouse) => (10, u64::from(warehouse)),
            Self::Stock(warehouse) => (3, u64::from(warehouse)),
            Self::Names(district) => (4, district as u64),
            Self::Customers(district) => (5, district as u64),
            Self::Orders(district) => (6, district as u64),
            Self::OrderLines(district) => (7, district as u64),
            Self::Client(client) => (8, client as u64),
        };
        u128::from(part) << 8 | kind
    }
}

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(Pcg64);

impl Random {
    pub fn new(seed: u64, stream: Stream) -> Self {
        // Seeds that are near each other must not give sequences that are.
        let state: u64 = Pcg64::seed_from_u64(seed).random();
        Self(Pcg64::new(u128::from(state), stream.number()))
    }

    /// Uniform, both ends included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        self.0.random_range(low..=high)
    }

    pub fn percent(&mut self, share: u32) -> bool {
        self.between(1, 100) <= share
    }

    fn non_uniform(&mut self, a: u32, c: u32, low: u32, high: u32) -> u32 {
        ((self.between(0, a) | self.between(low, high)) + c) % (high - low + 1) + low
    }

    /// Number of a customer of a district with `customers` customers.
    pub fn customer(&mut self, constants: &Constants, customers: u32) -> u32 {
        self.non_uniform(1023, constants.customer, 1, customers)
    }

    /// Number of an item among `items` items.
    pub fn item(&mut self, constants: &Constants, items: u32) -> u32 {
        self.non_uniform(8191, constants.item, 1, items)
    }

    /// Last name that a terminal asks for.
    pub fn last_name(&mut self, constants: &Constants, customers: u32) -> Text<16> {
        last_name(self.non_uniform(255, constants.last_name_run, 0, last_names(customers) - 1))
    }

    /// Last name of a new customer. The first customers of a district have all names there are (4.3.3.1).
    pub fn last_name_of_new(&mut self, constants: &Constants, customer: u32, customers: u32) -> Text<16> {
        let drawn = self.non_uniform(255, constants.last_name_load, 0, last_names(customers) - 1);
        last_name(if customer <= LAST_NAMES { customer - 1 } else { drawn })
    }

    /// Letters and digits, of random length.
    pub fn text<const N: usize>(&mut self, low: usize, high: usize) -> Text<N> {
        self.characters(LETTERS_AND_DIGITS, low, high)
    }

    /// Letters and digits, as many as there is room for.
    pub fn full_text<const N: usize>(&mut self) -> Text<N> {
        self.text(N, N)
    }

    /// Digits, as many as there is room for.
    pub fn digits<const N: usize>(&mut self) -> Text<N> {
        self.characters(&LETTERS_AND_DIGITS[..10], N, N)
    }

    fn characters<const N: usize>(&mut self, from: &[u8], low: usize, high: usize) -> Text<N> {
        let length = self.0.random_range(low..=high);
        let mut bytes = [0; N];
        for byte in &mut bytes[..length] {
            *byte = from[self.0.random_range(0..from.len())];
        }
        Text::new(&bytes[..length])
    }

    /// Data of an item or a stock: one in ten is an original.
    pub fn data(&mut self) -> Text<50> {
        let text: Text<50> = self.text(26, 50);
        if !self.percent(10) {
            return text;
        }
        let mut bytes = text.as_bytes().to_vec();
        let at = self.0.random_range(0..=bytes.len() - ORIGINAL.len());
        bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        Text::new(&bytes)
    }

    /// Four random digits and five ones (4.3.2.7).
    pub fn zip(&mut self) -> Text<9> {
        let digits: Text<4> = self.digits();
        Text::new(&[digits.as_bytes(), b"11111"].concat())
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        list.shuffle(&mut self.0);
    }
}

/// How many of the last names are used: small districts do not have them all.
fn last_names(customers: u32) -> u32 {
    customers.min(LAST_NAMES)
}

/// Of a number below 1,000 (4.3.2.3).
pub(super) fn last_name(number: u32) -> Text<16> {
    let syllable = |place: u32| SYLLABLES[(number / place % 10) as usize];
    Text::new([syllable(100), syllable(10), syllable(1)].concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_syllables_of_the_three_digits() {
        assert_eq!(last_name(371).as_bytes(), b"PRICALLYOUGHT");
        assert_eq!(last_name(40).as_bytes(), b"BARPRESBAR");
    }

    #[test]
    fn the_constants_of_load_and_run_are_as_far_apart_as_they_must_be() {
        for seed in 0..200 {
            let constants = Constants::new(seed);
            let delta = constants.last_name_load.abs_diff(constants.last_name_run);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "seed {seed}: {delta}");
        }
    }

    #[test]
    fn non_uniform_numbers_reach_both_ends_and_prefer_some() {
        let constants = Constants::new(1);
        let mut random = Random::new(1, Stream::Client(0));
        let mut times = vec![0_u32; 3001];
        for _ in 0..300_000 {
            times[random.customer(&constants, 3000) as usize] += 1;
        }
        assert_eq!(times[0], 0);
        let never = times[1..].iter().filter(|&&times| times == 0).count();
        assert!(never < 300, "{never}");
        assert!(times.iter().max() > Some(&1000), "uniform numbers would be drawn a hundred times each");
    }

    #[test]
    fn a_tenth_of_the_data_is_original() {
        let mut random = Random::new(2, Stream::Items);
        let originals = (0..10_000).filter(|_| random.data().contains(ORIGINAL)).count();
        assert!((800..1200).contains(&originals), "{originals}");
    }
}
