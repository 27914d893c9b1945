//! The pool's interface to recovery.

use super::gate::Gate;
use super::table::{Restoring, Table, Word};
use crate::Error;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::segment::Location;

/// The operations of an opening store on the pool.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    table: &'a Table,
    gate: &'a Gate,
}

impl<'a> Opening<'a> {
    pub(super) fn new(table: &'a Table, gate: &'a Gate) -> Self {
        Self { table, gate }
    }

    /// Restores pages, as long as the result lives. No other function of the table may be called meanwhile.
    pub fn restoring(&self) -> RestoringPages<'a> {
        RestoringPages(self.table.restoring())
    }

    /// Pages are going to be restored, or named by the log, that have numbers below
    /// `next`.
    ///
    /// # Errors
    /// [`Error::Options`] if the system gives no addresses for them.
    pub fn expect(&self, next: PageId) -> Result<(), Error> {
        let why =
            |error| Error::Options(format!("the system gives no addresses for {} pages: {error}", next.0));
        self.table.map_until(next).map_err(why)
    }

    /// All pages of the checkpoint of `epoch` are restored, and the next epoch
    /// begins. New pages get numbers from `next` on; the gaps stay until [`Opening::reuse_gaps`], as a record
    /// that is replayed may name one.
    pub fn restored(&self, epoch: Epoch, next: PageId) {
        self.table.begin_at(next.0);
        self.gate.begin_at(epoch.0 + 1);
    }

    /// Once, after everything was replayed: page numbers without a page may be given out.
    pub fn reuse_gaps(&self) {
        self.table.find_reusable();
    }
}

/// See [`Opening::restoring`].
pub(crate) struct RestoringPages<'a>(Restoring<'a>);

impl RestoringPages<'_> {
    /// This page is there. `None` takes it back. It makes no change for a checkpoint to see.
    #[inline]
    pub fn restore(&mut self, id: PageId, location: Option<Location>) {
        self.0.restore(id, location.map(Word::device));
    }
}
