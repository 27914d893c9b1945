//! What a transaction needs of the structure that keeps a tree's records. One implementation per [`crate::IndexKind`].
//!
//! Values are bytes that begin with a [version](crate::txn::Version). An index knows nothing of them; it only gives the first eight bytes out alone, which is cheaper than a whole value.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use crate::Error;
pub(crate) use crate::btree::Census;
use crate::btree::{BTree, Scan};
pub(crate) use crate::btree::{Change, Direction, Near, Piece, Spot};

/// Keys in order, and their values.
pub(crate) trait Index: Send + Sync {
    /// Appends the value of `key` to `into`; `false` if there is none. `near` may be what a look-up of a neighbour has left there, which then saves the way to the key; it becomes what saves [`Index::change_near`] that.
    ///
    /// # Errors
    /// The pool's: [`Error::Io`], [`Error::Corrupt`].
    fn get(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Result<bool, Error>;

    /// As [`Index::get`], for those who will not change the key: what a change of it takes may not be in memory afterwards, and the value may be known without that.
    ///
    /// # Errors
    /// As [`Index::get`].
    fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        self.get(key, into, &mut None)
    }

    /// As [`Index::read`], if that can be done without waiting. Otherwise begins to load what it takes, and `into` stays as it is.
    fn read_at_hand(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        self.get_at_hand(key, into, &mut None)
    }

    /// The first eight bytes of the value of `key`, little-endian; `near` as with [`Index::get`]. What a following [`Index::update`] of the key needs is in memory afterwards, most likely.
    ///
    /// # Errors
    /// As [`Index::get`].
    fn head(&self, key: &[u8], near: &mut Near) -> Result<Option<u64>, Error>;

    /// As [`Index::get`], if what that takes is in memory. Otherwise begins to load it, does not wait for it, and `into` stays as it is. What a following [`Index::update`] of the key needs is in
    /// memory afterwards, most likely.
    fn get_at_hand(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Option<bool>;

    /// To be called before several keys are looked for, one after the other: takes less time together.
    fn find_places(&self, keys: &mut dyn Iterator<Item = &[u8]>);

    /// Whether nothing has changed there since a look-up has left this: what it found is still so.
    fn is_still(&self, near: Near) -> bool;

    /// Looks at the value of a key and changes it, as one: nobody changes it in between. `decide` may be called several times; it must not wait, and its last answer counts.
    ///
    /// # Errors
    /// As [`Index::get`], and [`Error::Full`]; then nothing has changed.
    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error>;

    /// Changes the value of a key; `near` is what a look-up of the key has left there. It becomes where the key is afterwards: [of another key](Spot::of_another_key), what those
    /// may begin with who change keys that were beside it.
    ///
    /// # Errors
    /// As [`Index::update`].
    fn change_near(&self, key: &[u8], near: &mut Near, change: Change<'_>) -> Result<(), Error>;

    /// Begins to go through the keys from `lower` up to but without `upper`. At most `ahead` of the structure's nodes are loaded before they are asked for.
    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
    ) -> Box<dyn Steps>;

    /// The longest key.
    fn max_key_bytes(&self) -> usize;

    /// The longest value.
    fn max_value_bytes(&self) -> usize;

    /// Looks at every part of it, and shows every record to `record`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first part that is not as it should be; as [`Index::get`].
    fn check(&self, record: &mut dyn FnMut(&[u8], &[u8])) -> Result<Census, Error>;

    /// Gives everything back that it takes up. Nobody uses it any more.
    ///
    /// # Errors
    /// As [`Index::get`].
    fn destroy(&self) -> Result<(), Error>;
}

/// A scan that is under way. It holds nothing between its steps but keys, so records that are changed meanwhile may or may not be in it.
pub(crate) trait Steps: Send {
    /// Puts the next records into `piece`, in key order whatever the scan's direction; at least one. `false` if there are no more.
    ///
    /// # Errors
    /// As [`Index::get`].
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error>;
}

/// Keys whose nodes are loaded at a time for one caller: enough for most drives to be busy.
const BROUGHT_AT_A_TIME: usize = 64;

/// Has `act` do something for every item, whose place it gets, too. If that cannot be done without waiting, `act` has what it takes loaded and says `false`, and is asked again later, when it may wait.
///
/// # Errors
/// The first of `act`.
pub(crate) fn each_brought<'a, T>(
    items: &'a [T],
    mut act: impl FnMut(usize, &'a T, May) -> Result<bool, Error>,
) -> Result<(), Error> {
    if let [only] = items {
        return act(0, only, May::Wait).map(drop);
    }
    let mut next = items.iter().enumerate();
    let mut missed = VecDeque::new();
    loop {
        while missed.len() < BROUGHT_AT_A_TIME
            && let Some((place, item)) = next.next()
        {
            if !act(place, item, May::NotWait)? {
                missed.push_back((place, item));
            }
        }
        let Some((place, item)) = missed.pop_front() else { return Ok(()) };
        act(place, item, May::Wait)?;
    }
}

/// Whether something may wait for what is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Wait,
    NotWait,
}

impl May {
    /// [`Index::get`] or [`Index::get_at_hand`].
    ///
    /// # Errors
    /// As [`Index::get`].
    #[inline]
    pub(crate) fn get(
        self,
        index: &dyn Index,
        key: &[u8],
        into: &mut Vec<u8>,
        near: &mut Near,
    ) -> Result<Poll<bool>, Error> {
        match self {
            Self::Wait => index.get(key, into, near).map(Poll::Ready),
            Self::NotWait => Ok(index.get_at_hand(key, into, near).map_or(Poll::Pending, Poll::Ready)),
        }
    }

    /// [`Index::read`] or [`Index::read_at_hand`].
    ///
    /// # Errors
    /// As [`Index::get`].
    #[inline]
    pub(crate) fn read(self, index: &dyn Index, key: &[u8], into: &mut Vec<u8>) -> Result<Poll<bool>, Error> {
        match self {
            Self::Wait => index.read(key, into).map(Poll::Ready),
            Self::NotWait => Ok(index.read_at_hand(key, into).map_or(Poll::Pending, Poll::Ready)),
        }
    }
}

/// What `look` finds if it may wait.
///
/// # Errors
/// Those of `look`.
#[inline]
pub(crate) fn waiting<T>(mut look: impl FnMut(May) -> Result<Poll<T>, Error>) -> Result<T, Error> {
    loop {
        if let Poll::Ready(found) = look(May::Wait)? {
            return Ok(found);
        }
    }
}

/// Steps of a B+-tree.
struct Leaves {
    tree: Arc<BTree>,
    scan: Scan,
}

impl Steps for Leaves {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        self.tree.step(&mut self.scan, piece)
    }
}

impl Index for BTree {
    fn get(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Result<bool, Error> {
        Self::get(self, key, into, near)
    }

    fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        Self::read(self, key, into)
    }

    fn read_at_hand(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        Self::read_at_hand(self, key, into)
    }

    fn head(&self, key: &[u8], near: &mut Near) -> Result<Option<u64>, Error> {
        Self::head(self, key, near)
    }

    fn get_at_hand(&self, key: &[u8], into: &mut Vec<u8>, near: &mut Near) -> Option<bool> {
        Self::get_at_hand(self, key, into, near)
    }

    fn find_places(&self, keys: &mut dyn Iterator<Item = &[u8]>) {
        self.find_leaves(keys);
    }

    fn is_still(&self, near: Near) -> bool {
        Self::is_still(self, near)
    }

    fn update<'v>(
        &self,
        key: &[u8],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Change<'v>,
    ) -> Result<(), Error> {
        Self::update(self, key, decide)
    }

    fn change_near(&self, key: &[u8], near: &mut Near, change: Change<'_>) -> Result<(), Error> {
        Self::change_near(self, key, near, change)
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
    ) -> Box<dyn Steps> {
        Box::new(Leaves { tree: self, scan: Scan::new(direction, lower, upper, ahead) })
    }

    fn check(&self, record: &mut dyn FnMut(&[u8], &[u8])) -> Result<Census, Error> {
        Self::check(self, record)
    }

    fn max_key_bytes(&self) -> usize {
        Self::max_key_bytes(self)
    }

    fn max_value_bytes(&self) -> usize {
        Self::max_value_bytes(self)
    }

    fn destroy(&self) -> Result<(), Error> {
        self.free_all()
    }
}
