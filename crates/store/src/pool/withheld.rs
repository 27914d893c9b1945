//! Pages that checkpoints leave out: those of overflow values that are written and not committed.
//!
//! 1. *Begun*: [`Registry::begin`] makes an empty set.
//! 2. *Written*: a page joins the set in the section that makes it.
//! 3. *Committed*: [`Section::release`] ends the set. Checkpoints that are cut from then on have its pages,
//!    and only then is the commit logged.
//! 4. *Given up*: a page leaves the set in the section that frees it.
//!
//! A checkpoint has none of the pages that were withheld at its cut. So a crash leaves nothing of a value
//! that was not committed: its pages do not exist when the store is opened, and their places are free. As no
//! section is under way at a cut, a page is in the set for as long as it exists, or for as long as it is not
//! released.

use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::BTreeMap;

use super::Section;
use crate::epoch::Epoch;
use crate::header::PageId;

/// The pages of a value that is not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Withheld(u64);

/// All such sets. Those that were released are not among them.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Sets>);

#[derive(Default)]
struct Sets {
    begun: u64,
    pages: BTreeMap<Withheld, Vec<PageId>>,
}

impl Registry {
    fn sets(&self) -> MutexGuard<'_, Sets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a set. It must be released, or all of its pages be [given up](Section::last_withheld).
    pub fn begin(&self) -> Withheld {
        let mut sets = self.sets();
        sets.begun += 1;
        let set = Withheld(sets.begun);
        sets.pages.insert(set, Vec::new());
        set
    }

    /// Whether the set was neither released nor ended.
    pub fn is_withheld(&self, set: Withheld) -> bool {
        self.sets().pages.contains_key(&set)
    }

    /// All pages that are withheld. For a cut, after which the next ones are not part of the checkpoint
    /// anyway.
    pub fn pages(&self) -> Vec<PageId> {
        let sets = self.sets();
        sets.pages.values().flatten().copied().collect()
    }
}

impl Section<'_> {
    /// The page, which this section makes, joins the set.
    pub fn join(&self, set: Withheld, page: PageId) {
        self.parts.withheld.sets().pages.entry(set).or_default().push(page);
    }

    /// Ends the set: from this epoch on, checkpoints have its pages.
    pub fn release(&self, set: Withheld) -> Epoch {
        self.parts.withheld.sets().pages.remove(&set);
        self.epoch()
    }

    /// The page that joined the set last, which this section is going to free. `None` if the set has no more
    /// than `kept` pages, or was released; an empty one is ended.
    pub fn last_withheld(&self, set: Withheld, kept: usize) -> Option<PageId> {
        let mut sets = self.parts.withheld.sets();
        let pages = sets.pages.get(&set)?;
        let last = pages.last().copied().filter(|_| pages.len() > kept);
        if pages.is_empty() {
            sets.pages.remove(&set);
        }
        last
    }

    /// This section has freed [that page](Section::last_withheld).
    pub fn leave(&self, set: Withheld) {
        let mut sets = self.parts.withheld.sets();
        let _freed = sets.pages.get_mut(&set).and_then(Vec::pop);
    }
}
