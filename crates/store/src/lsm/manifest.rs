//! The manifest: pages that say which tables a tree has.
//!
//! The *root*, whose number the catalog has, says in which *parts* the [levels](super::levels) are written. A
//! change writes all parts anew, in one section with the numbers of the tables' segments: a checkpoint has
//! all of it or nothing.
//!
//! ```text
//! root: | page header | parts, u32 | zero, u32 | number of each part, u64 | counts, u64 each |
//! part: | page header | bytes, u32 | zero, u32 | bytes of the levels |
//! ```
//!
//! The *counts* say what was done to the tree: see [`Kept`]. A root without them, or with others, is one of a
//! version that did not count.

use super::levels::Levels;
use super::stats::{Counters, KEPT, Kept};
use super::table::Made;
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::{FRONT_END, Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::{Page, padded};
use crate::pool::{Access, Denied, OptimisticGuard, Pool, Reserved, Section};
use crate::sync::Arc;

const LENGTH: u32 = PAGE_HEADER_BYTES;
const CONTENT: u32 = LENGTH + 8;

/// Size class of the root.
const ROOT_CLASS: usize = 0;

/// The largest class of parts: the smallest cache has room for such pages.
const PART_CLASS_MAX: usize = 2;
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

/// The least class that has room, or the largest.
fn class_of(bytes: usize) -> usize {
    (0..PART_CLASS_MAX).find(|class| room(*class) >= bytes).unwrap_or(PART_CLASS_MAX)
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

    /// What was stored last; nothing in a new one.
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
        // Numbers take ten bytes at most, whatever they will be.
        let unnumbered: Vec<Vec<PageId>> =
            made.iter().map(|made| vec![PageId(u64::MAX >> 1); made.segments.len()]).collect();
        let length_max = levels(&unnumbered).encode().len();
        loop {
            let (old, root) = self.parts()?;
            let old = old
                .iter()
                .map(|part| self.pool.read(*part, Access::Normal))
                .collect::<Result<Vec<_>, _>>()?;
            let classes = (0..length_max).step_by(room(PART_CLASS_MAX)).map(|at| class_of(length_max - at));
            let memory = classes.map(|class| self.pool.reserve(class)).collect::<Result<Vec<_>, _>>()?;
            if (memory.len() + KEPT) * 8 > room(ROOT_CLASS) {
                let why =
                    format!("the list of tables takes {length_max} bytes, more than a manifest has room for");
                return Err(Error::Full { why });
            }
            let section = self.pool.section();
            match self.try_store(&section, (&root, &old), memory, made, &levels) {
                Ok(levels) => return Ok(levels),
                Err(denied) => {
                    drop(section);
                    self.pool.images.recover(denied)?;
                }
            }
        }
    }

    fn try_store<'p>(
        &self,
        section: &Section<'p>,
        (root, old): (&OptimisticGuard<'p>, &[OptimisticGuard<'p>]),
        memory: Vec<Reserved<'p>>,
        made: &[Made],
        levels: &impl Fn(&[Vec<PageId>]) -> Levels,
    ) -> Result<Levels, Denied> {
        // All that may be denied comes first.
        let root = section.lock(root)?;
        let old = old.iter().map(|part| section.lock(part)).collect::<Result<Vec<_>, _>>()?;
        let mut numbers: Vec<Vec<PageId>> = Vec::new();
        for made in made {
            numbers.push(Vec::new());
            for segment in &made.segments {
                match section.record_segment(segment) {
                    Ok(number) => numbers.last_mut().into_iter().for_each(|numbers| numbers.push(number)),
                    Err(denied) => {
                        // Nobody refers to them: they are given up like any page that no tree refers to.
                        for number in numbers.iter().flatten() {
                            section.free_unread(*number)?;
                        }
                        return Err(denied);
                    }
                }
            }
        }
        let levels = levels(&numbers);
        let bytes = levels.encode();
        let mut content = Vec::new();
        let mut rest = bytes.as_slice();
        let mut parts = 0;
        for memory in memory {
            let (own, others) = rest.split_at(rest.len().min(room(memory.class())));
            let locked = section.create(memory, PageKind::Manifest, false);
            write(locked.page(), own.len() as u32, own);
            content.extend_from_slice(&locked.id().0.to_le_bytes());
            parts += 1;
            rest = others;
        }
        let counts = self.counters.kept().numbers();
        counts.iter().for_each(|count| content.extend_from_slice(&count.to_le_bytes()));
        write(root.page(), parts, &content);
        old.into_iter().filter(|_| !planted!(OldManifestLeaks)).for_each(|part| section.free(part));
        Ok(levels)
    }

    /// Frees the root.
    ///
    /// # Errors
    /// The pool's.
    pub fn destroy(&self) -> Result<(), Error> {
        loop {
            let (parts, root) = self.parts()?;
            let parts = parts
                .iter()
                .map(|part| self.pool.read(*part, Access::Normal))
                .collect::<Result<Vec<_>, _>>()?;
            let section = self.pool.section();
            let free = || -> Result<(), Denied> {
                let root = section.lock(&root)?;
                let parts = parts.iter().map(|part| section.lock(part)).collect::<Result<Vec<_>, _>>()?;
                parts.into_iter().for_each(|part| section.free(part));
                section.free(root);
                Ok(())
            };
            let freed = free();
            drop(section);
            match freed {
                Ok(()) => return Ok(()),
                Err(denied) => self.pool.images.recover(denied)?,
            }
        }
    }
}
