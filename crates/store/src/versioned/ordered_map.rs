//! What the newest versions of a tree are kept in.

use std::sync::Arc;

use crate::Error;
use crate::btree::Change;
use crate::header::PageId;
use crate::index::{Census, Direction, LeafHint, Limits, Piece};

/// Keys in order, and one value for each. Values are bytes that begin with a version; a map only gives their
/// first eight bytes out alone, which is cheaper than a whole value.
pub(crate) trait OrderedMap: Send + Sync {
    /// Appends the value of `key` to `into`; `false` if there is none. `hint` may be where a neighbour was
    /// found, which then saves the way to the key; it becomes where the key was found.
    ///
    /// # Errors
    /// The pool's: [`Error::Io`], [`Error::Corrupt`].
    fn get(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Result<bool, Error>;

    /// As [`OrderedMap::get`], if what that takes is in memory. Otherwise begins to load it, does not wait
    /// for it, and `into` stays as it is. What a following change of the key needs is in memory afterwards,
    /// most likely.
    fn get_at_hand(&self, key: &[u8], into: &mut Vec<u8>, hint: &mut Option<LeafHint>) -> Option<bool>;

    /// As [`OrderedMap::get`], for those who will not change the key: what a change of it takes may not be in
    /// memory afterwards, and the value may be known without that.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        self.get(key, into, &mut None)
    }

    /// As [`OrderedMap::read`], if that can be done without waiting. Otherwise begins to load what it takes,
    /// and `into` stays as it is.
    fn read_at_hand(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        self.get_at_hand(key, into, &mut None)
    }

    /// The first eight bytes of the value of `key`, little-endian; `hint` as with [`OrderedMap::get`]. What a
    /// following change of the key needs is in memory afterwards, most likely.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn head(&self, key: &[u8], hint: &mut Option<LeafHint>) -> Result<Option<u64>, Error>;

    /// To be called before several keys are looked for, one after the other: takes less time together.
    fn find_together(&self, _keys: &mut dyn Iterator<Item = &[u8]>) {}

    /// Whether nothing has changed there since a look-up has left this hint: what it found is still so.
    fn is_valid(&self, _hint: Option<LeafHint>) -> bool {
        false
    }

    /// Looks at the value of a key and changes it, as one: nobody changes it in between. `decide` may be
    /// called several times; it must not wait, and its last answer counts.
    ///
    /// # Errors
    /// As [`OrderedMap::get`], and [`Error::Full`]; then nothing has changed.
    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error>;

    /// Changes the value of a key, which a look-up has found at `hint`. That becomes where the key is
    /// afterwards: [of another key](LeafHint::of_another_key), it is what changes of keys beside it may begin
    /// with.
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
    /// more. Nobody uses it.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn is_cut_off(&self) -> Result<bool, Error>;

    /// Takes all records out and frees all pages but the one by which it is found. Nobody else uses it.
    ///
    /// # Errors
    /// As [`OrderedMap::get`].
    fn clear(&self) -> Result<(), Error>;

    /// Frees everything. Nobody uses it any more.
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
