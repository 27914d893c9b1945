//! Look-ups: memtables, and then one part on each level.

use super::levels::LEVEL_MAX;
use super::pages::ATTEMPTS;
use super::part::Part;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Chain, hidden_by};
use crate::index::{Found, May, Version};
use crate::log::Timestamp;
use crate::pool::{Access, OptimisticGuard};
use crate::sync::Arc;
use crate::task::yield_now;
use std::task::Poll;

/// The versions that were found of a key, from the newest sources on.
#[derive(Default)]
struct Path {
    /// The newest removal of a range that has the key.
    removed_at: Option<Timestamp>,
    /// Versions, down to the first that is not made of operands.
    versions: Vec<(Version, Vec<u8>)>,
    /// Whether some of them are of several commits.
    has_sums: bool,
}

/// The result of a descent.
enum Way {
    /// A page on the way has changed: the descent starts again.
    Changed,
    /// A page has to be read first, and the caller does not wait.
    Absent,
    /// The complete result.
    Ended,
}

impl Path {
    /// Takes in the next older version of a source. Returns whether older ones are needed.
    fn take(&mut self, version: Version, value: Vec<u8>) -> bool {
        // Versions above it that are not newer have come down meanwhile, and are in it. Versions come the
        // newest first, so those are the last ones.
        while let Some((above, _)) = self.versions.last()
            && above.timestamp() <= version.timestamp()
            && !planted!(MessageAppliedTwice)
        {
            self.versions.pop();
        }
        let is_operands = version.is_operands();
        self.versions.push((version, value));
        is_operands
    }

    fn remove(&mut self, removed_at: Option<Timestamp>) {
        self.removed_at = self.removed_at.max(removed_at);
    }

    /// The chain that these make.
    fn chain(self, at: Timestamp) -> Chain {
        let mut chain = Chain::new(at);
        for (version, value) in self.versions {
            if self.removed_at.is_some_and(|removed_at| version.timestamp() < removed_at) {
                break;
            }
            if !chain.take(version, &value) {
                return chain;
            }
        }
        if let Some(removed_at) = self.removed_at {
            chain.take(Version::tombstone(removed_at), &[]);
        }
        chain
    }
}

impl BeTree {
    /// As [`Index::read`](crate::index::Index::read).
    pub(super) fn look_up(
        &self,
        key: &[u8],
        at: Timestamp,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error> {
        let mut before: Option<Chain> = None;
        loop {
            let Poll::Ready(path) = self.path(key, at, may)? else { return Ok(Poll::Pending) };
            let chain = path.chain(at);
            match chain.value(key, self.operator.as_deref(), self.shared.horizon()) {
                Ok(value) => {
                    let found = chain.found(value.as_deref());
                    into.extend_from_slice(&value.unwrap_or_default());
                    return Ok(Poll::Ready(found));
                }
                // An overflow value below operands may have been freed when a flush replaced it by their
                // result.
                Err(error) if before.as_ref() == Some(&chain) => return Err(error),
                Err(_) => before = Some(chain),
            }
        }
    }

    /// The newest version of a key that is not newer than `at`, be it a removal.
    pub(super) fn newest(&self, key: &[u8], at: Timestamp, may: May) -> Result<Poll<Option<Version>>, Error> {
        let path = self.path(key, at, may)?;
        Ok(path.map(|path| {
            let first = path.versions.first().map(|(version, _)| *version);
            hidden_by(path.removed_at, first)
        }))
    }

    /// All versions of a key that a reader as of `at` needs.
    fn path(&self, key: &[u8], at: Timestamp, may: May) -> Result<Poll<Path>, Error> {
        self.trouble.check_whole(self.pages.id)?;
        let active = Arc::clone(&self.memtables().active);
        let path = self.path_with(key, at, may, true)?;
        // A sum is of no use if a part of its operands may have come to pages meanwhile.
        let is_right = |path: &Path| !path.has_sums || Arc::ptr_eq(&active, &self.memtables().active);
        match path {
            Poll::Ready(path) if !is_right(&path) => self.path_with(key, at, may, false),
            path => Ok(path),
        }
    }

    /// The same; `sums`: the active memtable's operands may be those of several commits.
    fn path_with(&self, key: &[u8], at: Timestamp, may: May, sums: bool) -> Result<Poll<Path>, Error> {
        let mut path = Path::default();
        if self.in_memory(key, at, sums, &mut path) {
            path.has_sums = false;
            return Ok(Poll::Ready(path));
        }
        preempt!();
        let (versions, removed_at) = (path.versions.len(), path.removed_at);
        let (mut attempts, mut permits) = (0, None);
        loop {
            match self.in_pages(key, at, (may, permits.is_some()), &mut path)? {
                Way::Ended => return Ok(Poll::Ready(path)),
                Way::Absent => {
                    self.read_ahead_of(key, at);
                    return Ok(Poll::Pending);
                }
                Way::Changed => {
                    path.versions.truncate(versions);
                    path.removed_at = removed_at;
                    attempts += 1;
                    if attempts >= ATTEMPTS {
                        self.shared.pool.images.check()?;
                        self.shared.pool.records().give_up();
                        if may == May::Wait && permits.is_none() {
                            permits = Some(self.page_changes.acquire_all());
                        }
                        yield_now();
                    }
                }
            }
        }
    }

    /// Reads the pages that a look-up of the key needs into memory, in the background.
    fn read_ahead_of(&self, key: &[u8], at: Timestamp) {
        if let Some(own) = self.this.upgrade() {
            let key = key.to_vec();
            self.shared.executor.send_out(move || {
                // The next look-up returns the error.
                let _tried = own.path(&key, at, May::Wait);
            });
        }
    }

    /// Looks into the memtables. Returns whether nothing older is needed.
    fn in_memory(&self, key: &[u8], at: Timestamp, sums: bool, path: &mut Path) -> bool {
        let memtables = self.current_memtables();
        for memtable in memtables.iter() {
            path.remove(memtable.removed_at(key, at));
            // A frozen memtable may be on its way into pages already.
            let sums = sums && Arc::ptr_eq(memtable, &memtables.active);
            let needs_older = memtable.each_of(key, at, sums, |version, value, oldest| {
                path.has_sums |= oldest < version.timestamp();
                path.take(version, value.to_vec())
            });
            if !needs_older {
                return true;
            }
        }
        false
    }

    /// Goes down from the root. If the tree does not change, pages above may leave memory meanwhile.
    fn in_pages(
        &self,
        key: &[u8],
        at: Timestamp,
        (may, is_still): (May, bool),
        path: &mut Path,
    ) -> Result<Way, Error> {
        let pool = &self.shared.pool;
        let mut above = None;
        let (mut id, mut expected) = (self.pages.root, None::<u16>);
        for _ in 0..=LEVEL_MAX {
            if may == May::NotWait && pool.pages.is_absent(id) {
                return Ok(Way::Absent);
            }
            let guard = match pool.read(id, Access::Normal) {
                Ok(guard) => guard,
                // The pages above may have changed meanwhile.
                Err(error) => return if is_valid(&above) { Err(error) } else { Ok(Way::Changed) },
            };
            let part = Part::new(guard.page());
            let level = part.level();
            let is_right = expected.is_none_or(|expected| part.is_of_level(expected));
            let has_changed = !is_valid(&above) && !planted!(WayDownNotValidated);
            if has_changed || !guard.is_valid() {
                return Ok(Way::Changed);
            }
            if !is_right {
                return Err(self.pages.damaged(id, expected.unwrap_or_default()));
            }
            self.pages.counters.visit(level);
            let looked = self.in_part(part, key, at, path);
            preempt!();
            match looked {
                Some(ended) if guard.is_valid() => {
                    if ended || level == 0 {
                        return Ok(Way::Ended);
                    }
                }
                None if guard.is_valid() => return Err(self.pages.damaged(id, level)),
                _ => return Ok(Way::Changed),
            }
            let child = part.child(part.pivot_of(key));
            if part.pivots() == 0 && guard.is_valid() {
                // It is being cleared.
                return Ok(Way::Ended);
            }
            if !guard.is_valid() {
                return Ok(Way::Changed);
            }
            (id, expected, above) = (child, Some(level - 1), Some(guard).filter(|_| !is_still));
        }
        Err(self.pages.damaged(id, LEVEL_MAX))
    }

    /// Looks into a part. Returns whether nothing older is needed; `None` if it is damaged, or changes
    /// meanwhile.
    fn in_part(&self, part: Part<'_>, key: &[u8], at: Timestamp, path: &mut Path) -> Option<bool> {
        if part.has_ranges() {
            path.remove(part.range_tombstones()?.newest(key, at));
        }
        let mut found = part.find(key, at);
        while let Some(number) = found {
            let mut value = Vec::new();
            part.value(number, &mut value);
            if !path.take(part.version(number), value) {
                return Some(true);
            }
            found = part.next_of(number, key);
        }
        Some(false)
    }
}

/// Whether the page that led to another one, if it matters, has not changed since.
pub(super) fn is_valid(above: &Option<OptimisticGuard<'_>>) -> bool {
    above.as_ref().is_none_or(OptimisticGuard::is_valid)
}
