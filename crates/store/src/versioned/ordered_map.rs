//! The interface of structures that keep the newest version of each key of a tree.

use std::sync::Arc;

use crate::Error;
use crate::btree::Change;
use crate::header::PageId;
use crate::index::{Census, Direction, LeafHint, Limits, Piece};

/// Keys in order, and one value for each. Every value begins with its version, eight bytes that can be read
/// alone at lower cost ([`OrderedMap::head`]).
pub(crate) trait OrderedMap: Send + Sync {
    /// Appends the value of `key` to `into`; `false` if there is none. `hint` may be the leaf hint of a
    /// neighbour, which then saves the descent; it becomes the key's leaf hint.
    ///
    /// # Errors
    /// The pool's: [`Error::Io`], [`Error::Corrupt`].
    fn get(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Result<bool, Error>;

    /// As [`OrderedMap::get`], if all pages that it takes are in memory. Otherwise it begins to load them,
    /// does not wait, and `into` stays as it is. After a success a change of the key most likely finds its
    /// pages in memory.
    fn get_resident(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Option<bool>;

    /// As [`OrderedMap::get`], for callers that will not change the key: a cache of records may answer
    /// without the leaf, so the leaf may not be in memory afterwards.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        self.get(key, into, &mut None)
    }

    /// As [`OrderedMap::read`], if that can be done without waiting. Otherwise begins to load the pages that
    /// it needs, and `into` stays as it is.
    fn read_resident(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        self.get_resident(key, into, &mut None)
    }

    /// The first eight bytes of the value of `key`, little-endian; `hint` as with [`OrderedMap::get`]. A
    /// following change of the key most likely finds its pages in memory.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn head(&self, key: &[u8], hint: &mut Option<LeafHint>) -> Result<Option<u64>, Error>;

    /// Hints that these keys are about to be looked up one after another; finding all of them together takes
    /// less time.
    fn find_together(&self, _keys: &mut dyn Iterator<Item = &[u8]>) {}

    /// Whether the leaf has not changed since a look-up returned this hint, so that its result still holds.
    fn is_valid(&self, _hint: Option<LeafHint>) -> bool {
        false
    }

    /// Looks at the value of a key and changes it, as one: no other thread changes it in between. `decide`
    /// may be called several times; it must not wait, and its last answer counts.
    ///
    /// # Errors
    /// As [`OrderedMap::get`], and [`Error::Full`]; then nothing has changed.
    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error>;

    /// Changes the value of a key that a look-up has found at `hint`. `hint` becomes the leaf hint after the
    /// change; [as a hint of another key](LeafHint::of_another_key) it serves changes of neighbouring keys.
    ///
    /// # Errors
    /// As [`OrderedMap::update`].
    fn change_at(&self, key: &[u8], hint: &mut Option<LeafHint>, change: Change<'_>) -> Result<(), Error>;

    /// Begins to go through the keys from `lower` up to but without `upper`. At most `ahead` nodes are loaded
    /// before they are asked for.
    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
    ) -> Box<dyn Pieces>;

    /// Its sizes.
    fn limits(&self) -> Limits;

    /// Looks at every part of it: shows the number of each page to `page`, every record to `record`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first part that is not as it should be; as [`OrderedMap::get`].
    fn walk(
        &self,
        page: &mut dyn FnMut(PageId),
        record: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Census, Error>;

    /// Whether it was being cleared when the store ended, so that its records cannot be gone through any
    /// more. It has no other user.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn is_cut_off(&self) -> Result<bool, Error>;

    /// Takes all records out and frees all pages but the one that it is found by, as long as `go_on` does not
    /// fail. It has no other user.
    ///
    /// # Errors
    /// As [`OrderedMap::get`]; those of `go_on`.
    fn clear(&self, go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error>;

    /// Frees everything. It has no user any more.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn destroy(&self) -> Result<(), Error>;
}

/// A walk through a map. It holds nothing between its steps but keys, so records that are changed meanwhile
/// may or may not be in it.
pub(crate) trait Pieces: Send {
    /// Puts the next records into `piece`, in key order whatever the direction; at least one. `false` if
    /// there are no more.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn next(&mut self, piece: &mut Piece) -> Result<bool, Error>;
}
