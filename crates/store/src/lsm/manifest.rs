//! The manifest: pages that say which tables a tree has.
//!
//! The *root*, whose number the catalog has, names the *parts* that the [levels](super::levels) are written
//! in. A change is made in steps. Each needs one page in memory at most, however many tables the tree has:
//! 1. Tables' segments get numbers, and all parts are written anew. Checkpoints leave them out.
//! 2. In one section the root refers to the new parts, and checkpoints leave them out no longer: each has all
//!    of the change or nothing.
//! 3. The old parts are freed. After a crash they stay allocated until the store is asked to reclaim them.
//!
//! ```text
//! root: | page header | parts, u32 | zero, u32 | number of each part, u64 | counts, u64 each |
//! part: | page header | bytes, u32 | zero, u32 | bytes of the levels |
//! ```
//!
//! The *counts* are those of the tree's operations and loads: see [`Kept`]. A root without them, or with
//! others, is one of a version that did not count.

use super::levels::Levels;
use super::stats::{Counters, KEPT, Kept};
use super::table::Made;
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::{FRONT_END, Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::{Page, padded};
use crate::pool::{Access, OptimisticGuard, Pool, Withheld};
use crate::sync::Arc;
use crate::task::yield_now;

const LENGTH: u32 = PAGE_HEADER_BYTES;
const CONTENT: u32 = LENGTH + 8;

/// Size class of the root.
const ROOT_CLASS: usize = 0;

/// The usual class of parts, and the largest one, as far as units and cache have room for such pages.
const PART_CLASS: usize = 2;
const PART_CLASS_MAX: usize = 4;
const _: () = assert!(PART_CLASS_MAX < CLASSES);

/// See the module.
pub(super) struct Manifest {
    pool: Arc<Pool>,
    root: PageId,
    /// The tree's operations, whose counts go along with each change.
    pub counters: Arc<Counters>,
}

fn room(class: usize) -> usize {
    (class_bytes(class) - u64::from(CONTENT)) as usize
}

fn write(page: Page<'_>, length: u32, content: &[u8]) {
    page.set_word(LENGTH, length);
    page.set_word(LENGTH + 4, 0);
    page.copy_from(CONTENT, content);
    page.set_word(FRONT_END, CONTENT + padded(content.len() as u32));
}

impl Manifest {
    /// A new one, of no tables; its root.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(pool: &Arc<Pool>) -> Result<PageId, Error> {
        let memory = pool.reserve(ROOT_CLASS)?;
        let section = pool.section();
        let locked = section.create(memory, PageKind::Manifest, false);
        write(locked.page(), 0, &[]);
        Ok(locked.id())
    }

    /// The one with this root, with the counts that it has.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub fn open(pool: &Arc<Pool>, root: PageId) -> Result<Self, Error> {
        let new = Self { pool: Arc::clone(pool), root, counters: Arc::default() };
        let counters = Arc::new(Counters::from(new.written()?));
        Ok(Self { counters, ..new })
    }

    /// The counts that were written last.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub fn written(&self) -> Result<Kept, Error> {
        let (parts, content, _) = self.read(self.root)?;
        let (numbers, _) = content.as_chunks::<8>();
        let counts =
            numbers.get(parts as usize..).and_then(|counts| <[[u8; 8]; KEPT]>::try_from(counts).ok());
        Ok(counts.map_or(Kept::default(), |counts| Kept::of_numbers(counts.map(u64::from_le_bytes))))
    }

    #[cold]
    fn damaged(&self, page: PageId, expected: &str, got: String) -> Error {
        Error::Corrupt {
            what: format!("page {} of the manifest with root {}", page.0, self.root.0),
            offset_bytes: 0,
            expected: expected.to_owned(),
            got,
        }
    }

    /// The first word of a page's content, and the rest.
    fn read(&self, id: PageId) -> Result<(u32, Vec<u8>, OptimisticGuard<'_>), Error> {
        loop {
            let guard = self.pool.read(id, Access::Normal)?;
            let page = guard.page();
            let (kind, length, end) = (Header::of(page).kind, page.word(LENGTH), page.word(FRONT_END));
            let mut content = Vec::new();
            page.copy_to(CONTENT, end.saturating_sub(CONTENT).min(page.len_bytes() - CONTENT), &mut content);
            if !guard.is_valid() {
                continue;
            }
            if kind != PageKind::Manifest as u8 {
                return Err(self.damaged(id, "a page of a manifest", format!("kind {kind}")));
            }
            return Ok((length, content, guard));
        }
    }

    fn parts(&self) -> Result<(Vec<PageId>, OptimisticGuard<'_>), Error> {
        let (count, content, guard) = self.read(self.root)?;
        let (numbers, _) = content.as_chunks::<8>();
        let parts: Vec<PageId> =
            numbers.iter().take(count as usize).map(|number| PageId(u64::from_le_bytes(*number))).collect();
        if parts.len() != count as usize {
            return Err(self.damaged(
                self.root,
                "numbers of all parts",
                format!("{} of {count}", parts.len()),
            ));
        }
        Ok((parts, guard))
    }

    /// The bytes that were stored last; none in a new manifest.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`].
    pub fn load(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for part in self.parts()?.0 {
            let (length, content, _) = self.read(part)?;
            let own = content.get(..length as usize);
            let own = own.ok_or_else(|| self.damaged(part, "all of its bytes", format!("{length} bytes")))?;
            bytes.extend_from_slice(own);
        }
        Ok(bytes)
    }

    /// Numbers of all pages.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub fn pages(&self) -> Result<Vec<PageId>, Error> {
        let mut pages = self.parts()?.0;
        pages.push(self.root);
        Ok(pages)
    }

    /// Records the segments of new tables and stores the levels that `levels` makes of their numbers, as one.
    /// One caller at a time.
    ///
    /// # Errors
    /// [`Error::Full`]; the pool's. Nothing has changed then.
    pub fn store(&self, made: &[Made], levels: impl Fn(&[Vec<PageId>]) -> Levels) -> Result<Levels, Error> {
        let (old, _) = self.parts()?;
        let set = self.pool.withheld.begin();
        let stored = self.prepare(set, made, levels).and_then(|(levels, parts)| {
            self.refer_to(&parts, Some(set))?;
            Ok(levels)
        });
        match stored {
            // Parts that cannot be freed stay allocated, as after a crash.
            Ok(_) if planted!(OldManifestLeaks) => {}
            Ok(_) => self.free_parts(&old),
            Err(_) => self.give_up(set),
        }
        stored
    }

    /// Numbers for the segments of new tables, and the parts that contain the levels with them.
    fn prepare(
        &self,
        set: Withheld,
        made: &[Made],
        levels: impl Fn(&[Vec<PageId>]) -> Levels,
    ) -> Result<(Levels, Vec<PageId>), Error> {
        let numbers = made.iter().map(|made| self.record(set, made)).collect::<Result<Vec<_>, _>>()?;
        let levels = levels(&numbers);
        let bytes = levels.encode();
        let largest = self.class_of_parts(bytes.len())?;
        let parts = bytes.chunks(room(largest)).map(|own| {
            let memory =
                self.pool.reserve((0..largest).find(|class| room(*class) >= own.len()).unwrap_or(largest))?;
            let section = self.pool.section();
            let locked = section.create(memory, PageKind::Manifest, false);
            write(locked.page(), own.len() as u32, own);
            section.join(set, locked.id());
            Ok(locked.id())
        });
        let parts = parts.collect::<Result<_, Error>>()?;
        Ok((levels, parts))
    }

    /// The smallest class of parts that leaves the root room for the numbers of all parts.
    fn class_of_parts(&self, bytes: usize) -> Result<usize, Error> {
        let count_max = room(ROOT_CLASS) / 8 - KEPT;
        let mut classes = PART_CLASS..=self.pool.class_max().clamp(PART_CLASS, PART_CLASS_MAX);
        classes.find(|class| bytes.div_ceil(room(*class)) <= count_max).ok_or_else(|| {
            let why = format!("the list of tables takes {bytes} bytes, more than a manifest has room for");
            Error::Full { why }
        })
    }

    /// Numbers for the segments of a table.
    fn record(&self, set: Withheld, made: &Made) -> Result<Vec<PageId>, Error> {
        let record = |segment| loop {
            let section = self.pool.section();
            match section.record_segment(segment) {
                Ok(number) => {
                    section.join(set, number);
                    return Ok(number);
                }
                Err(denied) => {
                    drop(section);
                    self.pool.images.recover(denied)?;
                }
            }
        };
        made.segments.iter().map(record).collect()
    }

    /// Has the root refer to these parts; checkpoints have the pages of the set from then on.
    fn refer_to(&self, parts: &[PageId], set: Option<Withheld>) -> Result<(), Error> {
        let mut content: Vec<u8> = parts.iter().flat_map(|part| part.0.to_le_bytes()).collect();
        let counts = self.counters.kept().numbers();
        counts.iter().for_each(|count| content.extend_from_slice(&count.to_le_bytes()));
        loop {
            let root = self.pool.read(self.root, Access::Normal)?;
            let section = self.pool.section();
            let referred = section.lock(&root).map(|root| {
                write(root.page(), parts.len() as u32, &content);
                if let Some(set) = set {
                    section.release(set);
                }
            });
            drop(section);
            match referred {
                Ok(()) => return Ok(()),
                Err(denied) => self.pool.images.recover(denied)?,
            }
        }
    }

    /// Frees parts to which the root does not refer any more. After an error the rest stays, as after a
    /// crash.
    fn free_parts(&self, parts: &[PageId]) {
        let _freed = parts.iter().try_for_each(|part| self.pool.free_unread(*part));
    }

    /// Frees all pages of a set.
    fn give_up(&self, set: Withheld) {
        loop {
            let section = self.pool.section();
            let Some(page) = section.last_withheld(set, 0) else { return };
            let freed = section.free_unread(page).map(|()| section.leave(set));
            drop(section);
            // After an error they stay withheld: no checkpoint has them.
            if freed.is_err_and(|denied| self.pool.images.recover(denied).is_err()) {
                return;
            }
            yield_now();
        }
    }

    /// Frees the root and all parts.
    ///
    /// # Errors
    /// The pool's.
    pub fn destroy(&self) -> Result<(), Error> {
        let (parts, _) = self.parts()?;
        // Nothing finds the parts again once they are being freed: their numbers may be other pages' then.
        self.refer_to(&[], None)?;
        parts.iter().try_for_each(|part| self.pool.free_unread(*part))?;
        self.pool.free_unread(self.root)
    }
}
