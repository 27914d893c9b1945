//! Reclaiming pages of overflow values, and of manifests of LSM-trees, that nothing refers to.
//!
//! A crash can leave such pages: those of values whose commit was never logged, of values and manifests that
//! were being freed, and of values that a snapshot held on to. References to them are only in trees, so all
//! trees have to be walked. Therefore this is done on request only, and only while no operation that could
//! hold a reference outside of the trees is under way.

use std::collections::HashSet;

use super::Engine;
use crate::Error;
use crate::header::PageId;
use crate::segment::Location;

impl Engine {
    /// Frees the pages of overflow values and manifests that nothing refers to, and returns their number.
    /// Commits wait meanwhile. It returns `None` and frees nothing if snapshots exist, commits have begun, or
    /// trees or values are being freed.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] if a tree cannot be read as a whole: then nothing is freed.
    pub fn reclaim(&self) -> Result<Option<u64>, Error> {
        self.transactions().alone(|| {
            let Some(frees) = self.parts().pool.frees.count() else { return Ok(None) };
            // The list of pages comes first. A task that has written an overflow value by now, and waits for
            // the locks to commit it, has announced itself; later ones get other pages.
            let candidates = self.parts().pool.pages.all();
            let withheld: HashSet<PageId> = self.parts().pool.withheld.pages().into_iter().collect();
            let is_written = self.trees.any_has_writers();
            let is_freed = self.sweeping.is_under_way() || self.trees.has_dropped();
            if is_freed && !planted!(LateDropNotSwept) {
                // A tree whose last handle went after it was dropped.
                self.sweep_soon();
            }
            if is_written || is_freed || self.overflow_values.is_freeing() {
                return Ok(None);
            }
            let known = self.referred_to()?;
            // A merge of an LSM-tree may have given up a value meanwhile. Its pages are among the candidates,
            // though they are being freed, and their numbers may be other pages' by now.
            if self.overflow_values.is_freeing() || self.parts().pool.frees.count() != Some(frees) {
                return Ok(None);
            }
            let mut freed = 0;
            let is_garbage = |page: &PageId| !known.contains(page) && !withheld.contains(page);
            for page in candidates.into_iter().filter(is_garbage) {
                freed += u64::from(match self.is_segment(page) {
                    // A table that was dropped, or was to be.
                    true => self.parts().pool.free_unread(page).map(|()| true)?,
                    false => self.overflow_values.free_page(page)?,
                });
            }
            Ok(Some(freed))
        })
    }

    fn is_segment(&self, page: PageId) -> bool {
        self.parts().pool.pages.location(page, false).is_some_and(Location::is_segment)
    }

    /// All pages of all trees and of the values in them.
    fn referred_to(&self) -> Result<HashSet<PageId>, Error> {
        let mut known = HashSet::new();
        self.trees.walk_catalog(&mut |page| {
            known.insert(page);
        })?;
        for tree in self.trees.all() {
            let mut references = Vec::new();
            tree.tree.index.walk(
                &mut |page| {
                    known.insert(page);
                },
                &mut |_, version, reference| {
                    if version.is_overflow() {
                        references.push(reference.to_vec());
                    }
                },
            )?;
            for reference in references {
                known.extend(self.overflow_values.pages_of(&reference)?);
            }
        }
        Ok(known)
    }
}
