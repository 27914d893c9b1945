//! Places, and the tokens in them.

use std::collections::BTreeMap;
use std::io::Read;

use flashgrain::{Db, Error, Readable, Tree};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::world::Stop;

/// Tokens there are.
pub const TOKENS: u32 = 40;

/// Places of each tree: about half of all places are empty.
pub const PLACES: u32 = 40;

/// Names of the trees that have places.
pub const TREES: [&str; 2] = ["left", "right"];

/// Bytes of a token's value, at least: its number and its length.
const HEAD_BYTES: usize = 8;

/// A place: which tree, and which of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenKey {
    /// Index into [`TREES`].
    pub tree: usize,
    /// Below [`PLACES`].
    pub number: u32,
}

impl TokenKey {
    /// Any.
    pub fn draw(random: &mut Pcg64) -> Self {
        Self { tree: random.random_range(0..TREES.len()), number: random.random_range(0..PLACES) }
    }

    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TREES.len()).flat_map(|tree| (0..PLACES).map(move |number| Self { tree, number }))
    }

    /// The key. Keys share prefixes of several lengths.
    pub fn key(self) -> Vec<u8> {
        format!("{}{:04}", "p".repeat(self.number as usize / 5), self.number).into_bytes()
    }
}

/// The trees of all places.
#[derive(Clone, Debug)]
pub struct TokenTrees {
    trees: Vec<Tree>,
}

/// The token in each place, as one view of the store shows it.
pub type Laid = BTreeMap<TokenKey, u32>;

impl TokenTrees {
    /// Those of a store, which are made if they are not there.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn of(db: &Db) -> Result<Self, Error> {
        Ok(Self { trees: TREES.iter().map(|name| db.tree(name)).collect::<Result<_, _>>()? })
    }

    /// The tree of a place.
    pub fn tree(&self, place: TokenKey) -> &Tree {
        &self.trees[place.tree]
    }

    /// Their trees, in the order of [`TREES`].
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// Reads the tokens of `view` in one of several ways.
    ///
    /// # Errors
    /// An error of the store, a value that no task wrote, or a record at a key that is no place.
    pub fn laid(&self, view: &impl Readable, random: &mut Pcg64) -> Result<Laid, Stop> {
        let mut laid = Laid::new();
        for (number, tree) in self.trees.iter().enumerate() {
            let place = |key: &[u8]| TokenKey::all().find(|place| place.tree == number && place.key() == key);
            let mut note = |key: &[u8], value: &[u8]| -> Result<(), Stop> {
                let place =
                    place(key).ok_or_else(|| Stop::Wrong("a record in a place that is none".into()))?;
                let token =
                    decode(value).ok_or_else(|| Stop::Wrong(format!("{place:?} has a torn value")))?;
                match laid.insert(place, token) {
                    Some(_) => Err(Stop::Wrong(format!("a view has {place:?} twice"))),
                    None => Ok(()),
                }
            };
            let places = TokenKey::all().filter(|place| place.tree == number);
            match random.random_range(0..6) {
                0 => {
                    for record in view.iter(tree)? {
                        let (key, value) = record?;
                        note(&key, &value)?;
                    }
                }
                1 => {
                    for record in view.iter(tree)?.rev() {
                        let (key, value) = record?;
                        note(&key, &value)?;
                    }
                }
                2 => {
                    let border = TokenKey::draw(random).key();
                    let (low, high) = (view.range(tree, ..border.clone())?, view.range(tree, border..)?);
                    for record in low.chain(high) {
                        let (key, value) = record?;
                        note(&key, &value)?;
                    }
                }
                3 => {
                    let keys: Vec<_> = places.map(TokenKey::key).collect();
                    for (key, value) in keys.iter().zip(view.get_many(tree, &keys)?) {
                        value.map_or(Ok(()), |value| note(key, &value))?;
                    }
                }
                4 => {
                    for key in places.map(TokenKey::key) {
                        let Some(mut reader) = view.reader(tree, &key)? else { continue };
                        let mut value = Vec::new();
                        reader.read_to_end(&mut value).map_err(|error| Stop::Wrong(error.to_string()))?;
                        note(&key, &value)?;
                    }
                }
                _ => {
                    for key in places.map(TokenKey::key) {
                        view.get(tree, &key)?.map_or(Ok(()), |value| note(&key, &value))?;
                    }
                }
            }
        }
        Ok(laid)
    }
}

/// Checks that each token is there exactly once.
///
/// # Errors
/// The first token that is not.
pub fn complete(laid: &Laid) -> Result<(), Stop> {
    for token in 0..TOKENS {
        let places: Vec<_> =
            laid.iter().filter(|(_, other)| **other == token).map(|(place, _)| place).collect();
        if places.len() != 1 {
            return Err(Stop::Wrong(format!("token {token} is in the places {places:?}")));
        }
    }
    match laid.len() == TOKENS as usize {
        true => Ok(()),
        false => Err(Stop::Wrong("there is a token that was never made".into())),
    }
}

/// A value for a token, of one of many lengths; some need pages of their own.
pub fn encode(token: u32, random: &mut Pcg64) -> Vec<u8> {
    let length = match random.random_range(0..10) {
        0 => random.random_range(2000..9000),
        1..4 => random.random_range(200..900),
        _ => random.random_range(HEAD_BYTES..100),
    };
    let mut value = vec![fill(token, length); length];
    value[..4].copy_from_slice(&token.to_le_bytes());
    value[4..HEAD_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    value
}

/// The token of a value, if it is as [`encode`] made it.
pub fn decode(value: &[u8]) -> Option<u32> {
    let (token, rest) = value.split_first_chunk().map(|(token, rest)| (u32::from_le_bytes(*token), rest))?;
    let (length, rest) =
        rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length), rest))?;
    let is_whole =
        length as usize == value.len() && rest.iter().all(|byte| *byte == fill(token, value.len()));
    is_whole.then_some(token)
}

fn fill(token: u32, length: usize) -> u8 {
    (token as usize * 31 + length) as u8
}
