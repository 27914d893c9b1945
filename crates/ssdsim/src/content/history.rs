//! Writes that a power cut may undo, page by page, newest first, each with the previous content.

use std::sync::Arc;

use super::table::{NONE, Page, PageStorage};

/// The effect of one write on one page.
#[derive(Clone)]
pub(super) struct Entry {
    /// Number of the page.
    pub page: u64,
    /// Number of the write.
    pub version: u64,
    /// The sectors that it wrote and that are not settled: bit `i` is sector `i` of the page. 0: the entry is
    /// not in use.
    pub sectors: u8,
    /// The drive has lost it although it is still read: it is never settled, and no power cut keeps it.
    pub doomed: bool,
    /// The page before the write; `None`: zeros.
    pub before: Option<Arc<Page>>,
    /// The next older entry of the page, or [`NONE`].
    pub older: u32,
}

/// All entries of a drive.
#[derive(Clone, Default)]
pub(super) struct History {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl History {
    /// Nothing to undo.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }

    /// Entries in use and not.
    pub fn slots(&self) -> usize {
        self.entries.len()
    }

    /// Stores `entry` and says where.
    pub fn insert(&mut self, entry: Entry) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }

    fn remove(&mut self, index: u32) -> Option<Arc<Page>> {
        self.free.push(index);
        self.entries[index as usize].sectors = 0;
        self.entries[index as usize].before.take()
    }

    /// Entries in use, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.sectors != 0)
    }

    /// Iterates from `newest` to the oldest entry of a page.
    pub fn chain(&self, newest: u32) -> impl Iterator<Item = &Entry> {
        let mut next = newest;
        std::iter::from_fn(move || {
            let entry = (next != NONE).then(|| &self.entries[next as usize])?;
            next = entry.older;
            Some(entry)
        })
    }

    /// All that is still unsettled will never be, but for versions that are spared.
    pub fn doom(&mut self, is_spared: impl Fn(u64) -> bool) {
        for entry in &mut self.entries {
            entry.doomed |= !is_spared(entry.version);
        }
    }

    /// Of one page, `sectors` of the writes up to `version` are on the medium. Pages without a remaining
    /// reference go to `spare`.
    pub fn settle(
        &mut self,
        slot: &mut PageStorage,
        sectors: u8,
        version: u64,
        mut spare: impl FnMut(Arc<Page>),
    ) {
        let mut durable = 0;
        self.retain(slot, &mut spare, |entry| {
            if entry.version <= version {
                durable |= if entry.doomed { 0 } else { entry.sectors & sectors };
                // These sectors also replace those of older writes on the medium.
                entry.sectors &= !durable;
            }
        });
    }

    /// Forgets `sectors` of one page in all entries of the history.
    pub fn forget(&mut self, slot: &mut PageStorage, sectors: u8, mut spare: impl FnMut(Arc<Page>)) {
        self.retain(slot, &mut spare, |entry| entry.sectors &= !sectors);
    }

    /// Lets `change` take sectors from the entries of a page, newest first, and removes those that have none
    /// left.
    fn retain(
        &mut self,
        slot: &mut PageStorage,
        spare: &mut impl FnMut(Arc<Page>),
        mut change: impl FnMut(&mut Entry),
    ) {
        let (mut newer, mut at) = (NONE, slot.unsettled);
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            change(entry);
            let (older, empty) = (entry.older, entry.sectors == 0);
            if empty {
                if let Some(page) = self.remove(at) {
                    spare(page);
                }
                match newer {
                    NONE => slot.unsettled = older,
                    newer => self.entries[newer as usize].older = older,
                }
            } else {
                newer = at;
            }
            at = older;
        }
    }
}
