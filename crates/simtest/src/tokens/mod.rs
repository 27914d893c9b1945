//! Tokens that transactions move between places: none may ever be lost, doubled or seen on the way.
//!
//! Every invariant can be judged from inside, without knowing the order of commits, so the same work runs as
//! tasks in virtual time ([`simulated`]), through restarts and power cuts, and on real threads ([`threads`]):
//!
//! 1. *Tokens.* A fixed set of tokens lies in the places of two trees, each token in one place. Transactions
//!    move one, swap two, or take all tokens of a range away with one bulk removal and put them elsewhere.
//!    Every commit removes records that others may be removing at the same time. Every snapshot, read in
//!    whatever way, has each token once.
//! 2. *Pairs.* A task moves a record of its own between two keys, by a batch that removes one and inserts the
//!    other and raises the number in its value. Others read both keys without a snapshot: the result of one
//!    read bounds the possible results of the next (`pairs`).
//! 3. *Couples.* The first record of a couple says whether there is a second one. Bulk removals outside of
//!    transactions remove ranges of couples while others change them: before or after each such commit, never
//!    a part (`couples`).
//! 4. *Ashes.* Records are inserted by all and removed by one task each, by ranges; the removals say how many
//!    records they removed. The difference must be the number of records left.
//! 5. *Fields.* A range of its own field that a task has cleared stays empty until it sows there again
//!    (`fields`).
//! 6. *Streams.* Some values come piece by piece, some of them are given up. A crash in the middle of one
//!    leaves nothing of it, however many checkpoints fell into it (`streams`).
//! 7. *Leaks.* When all is removed, no page without an owner is left, and the store has as many pages as a
//!    new one.

mod couples;
mod durability;
mod fields;
mod leaks;
mod ledger;
mod pairs;
mod run;
mod streams;
mod token_keys;
mod work;

pub(crate) use leaks::no_orphans;
pub use run::{simulated, threads};
