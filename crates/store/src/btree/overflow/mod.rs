//! Overflow values: in pages of their own, written once and not through the log.
//!
//! ```text
//! overflow page   0              32      36             44              52       56     front end
//!                 | page header  | length | first page   | epoch of that | zeros  | bytes |
//!                 |              | u32    | u64          | u64           |        |       |
//!
//! reference       0        8          12      13      14     16
//!                 | length | checksum | depth | count | zeros | count page ids u64 |
//!                 | u64    | crc32c   | u8    | u8    |       |                    |
//!   in the log, behind it:  | epoch u32 | completed u32 | pages u32 | page id u64, location u64, ... |
//! ```
//!
//! *Completed* is the epoch when the last page was written and checkpoints began to have the value; 0: the
//! same as the epoch when it was begun.
//!
//! The pages of a value hold its bytes one after another. If they are more than [`INLINE_PAGES`], their
//! numbers are written in pages in the same way, as often as it takes (*depth*); so every page of a level can
//! be asked for at once. The checksum covers the value.
//!
//! Every page says which value it belongs to: the number of the value's first page and the epoch of that
//! page's creation. This pair is never used again. A record that is replayed may be older than the
//! checkpoint, and its pages may belong to other values by now: then they do not have its pair.

mod draft;
mod stored;

use std::sync::Arc;

use crate::Error;
use crate::checksum::crc32c;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::{Header, PageId, PageKind};
use crate::pool::{Access, Denied, Pool, Section};
use crate::segment::Lifetime;
use crate::segment::Location;
use crate::task::yield_now;
pub(crate) use draft::Draft;
pub(crate) use stored::Stored;

/// The longest value.
pub const VALUE_BYTES_MAX: u64 = 1 << 30;

/// Pages that a reference names itself.
const INLINE_PAGES: usize = 8;

/// The longest reference, as a record keeps it.
#[cfg(test)]
pub(crate) const REFERENCE_BYTES_MAX: usize = REFERENCE_HEADER_BYTES + INLINE_PAGES * 8;

const REFERENCE_HEADER_BYTES: usize = 16;
const LENGTH: u32 = 32;
const FIRST: u32 = 36;
const EPOCH: u32 = 44;
const BYTES: u32 = 56;

/// More levels than the longest value needs in the smallest pages.
const DEPTH_MAX: u8 = 4;

/// Pages that are loaded before they are asked for.
const AHEAD: usize = 16;

/// Pages that are freed in one section.
const PAGES_PER_SECTION: usize = 32;

/// Identity of the value that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    first: PageId,
    epoch: u64,
}

/// A record's reference to an overflow value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference {
    length: u64,
    checksum: u32,
    depth: u8,
    pages: Vec<PageId>,
}

/// See the module.
pub(crate) struct Overflow {
    pool: Arc<Pool>,
    class_max: usize,
}

fn damaged(expected: &str, got: String) -> Error {
    let what = "an overflow value".to_owned();
    Error::Corrupt { what, offset_bytes: 0, expected: expected.to_owned(), got }
}

/// Takes `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

impl Reference {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(REFERENCE_HEADER_BYTES + 8 * self.pages.len());
        bytes.extend_from_slice(&self.length.to_le_bytes());
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes.extend_from_slice(&[self.depth, self.pages.len() as u8, 0, 0]);
        bytes.extend(self.pages.iter().flat_map(|page| page.0.to_le_bytes()));
        bytes
    }

    /// Takes a reference off the front.
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let length = take_long(bytes).filter(|length| *length <= VALUE_BYTES_MAX)?;
        let checksum = u32::from_le_bytes(take(bytes)?);
        let [depth, count, _, _] = take(bytes)?;
        let pages = (0..count).map(|_| take_long(bytes).map(PageId)).collect::<Option<_>>()?;
        (depth <= DEPTH_MAX).then_some(Self { length, checksum, depth, pages })
    }
}

/// The part of the log's reference to an overflow value that its record keeps.
pub(crate) fn kept(logged: &[u8]) -> &[u8] {
    let count = logged.get(13).map_or(0, |count| usize::from(*count));
    logged.get(..REFERENCE_HEADER_BYTES + 8 * count).unwrap_or(logged)
}

/// The length of the value that a reference stands for.
#[cfg(test)]
pub(crate) fn length(reference: &[u8]) -> Option<u64> {
    Reference::decode(&mut &*reference).map(|reference| reference.length)
}

/// The pages of a value.
struct Pages {
    /// The pages that hold numbers of others.
    inner: Vec<PageId>,
    /// The pages that hold the value.
    data: Vec<PageId>,
    /// Identity of their value, if inner pages were read.
    owner: Option<Owner>,
}

/// The pages of a value as the log names them, and the value's identity, if it has pages.
struct Logged {
    owner: Option<Owner>,
    completed: Epoch,
    pages: Vec<(PageId, Location)>,
}

impl Overflow {
    /// Values in pages of at most `class_max`, less if the cache is small.
    pub fn new(pool: &Arc<Pool>, class_max: usize) -> Self {
        let fits = |class: &usize| class_bytes(*class) * 32 <= pool.pages.budget_bytes();
        let class_max = (0..=class_max).rev().find(fits).unwrap_or(0);
        Self { pool: Arc::clone(pool), class_max }
    }

    /// Length of the log's reference to a value of `value_bytes`.
    pub fn logged_bytes(&self, value_bytes: u64) -> u64 {
        const LOGGED_PAGE_BYTES: u64 = 16;
        const LOGGED_OWNER_BYTES: u64 = 12;
        let part_bytes = self.part_bytes() as u64;
        let mut level = value_bytes.div_ceil(part_bytes);
        let mut pages = level;
        while level > INLINE_PAGES as u64 {
            level = (8 * level).div_ceil(part_bytes);
            pages += level;
        }
        REFERENCE_HEADER_BYTES as u64 + 8 * level + LOGGED_OWNER_BYTES + LOGGED_PAGE_BYTES * pages
    }

    /// Appends the value to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the pages do not hold that value; the pool's.
    pub fn read(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        let reference = decode(reference)?;
        let Pages { data, mut owner, .. } = self.resolve(&reference)?;
        let start = into.len();
        into.reserve(reference.length as usize);
        self.read_pages(&data, &mut owner, into)?;
        let found = into.get(start..).unwrap_or_default();
        if found.len() as u64 != reference.length {
            return Err(damaged(&format!("{} bytes", reference.length), format!("{} bytes", found.len())));
        }
        let checksum = crc32c(found);
        if checksum != reference.checksum {
            let expected = format!("checksum {:08x}", reference.checksum);
            return Err(damaged(&expected, format!("{checksum:08x}")));
        }
        Ok(())
    }

    /// All pages of a value; reads those that hold numbers.
    fn resolve(&self, reference: &Reference) -> Result<Pages, Error> {
        let (mut inner, mut data, mut owner) = (Vec::new(), reference.pages.clone(), None);
        for _ in 0..reference.depth {
            let mut numbers = Vec::new();
            self.read_pages(&data, &mut owner, &mut numbers)?;
            let (numbers, _) = numbers.as_chunks();
            inner.append(&mut data);
            data = numbers.iter().map(|number| PageId(u64::from_le_bytes(*number))).collect();
        }
        Ok(Pages { inner, data, owner })
    }

    fn read_pages(
        &self,
        pages: &[PageId],
        owner: &mut Option<Owner>,
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        pages.iter().take(AHEAD).skip(1).for_each(|page| self.pool.prefetch(*page));
        for (index, page) in pages.iter().enumerate() {
            if let Some(ahead) = pages.get(index + AHEAD) {
                self.pool.prefetch(*ahead);
            }
            let found = self.read_page(*page, into)?;
            let expected = owner.get_or_insert(found);
            if found != *expected {
                return Err(damaged(&format!("{expected:?}"), format!("{found:?}")));
            }
        }
        Ok(())
    }

    /// Appends a page's part of the value.
    fn read_page(&self, id: PageId, into: &mut Vec<u8>) -> Result<Owner, Error> {
        let start = into.len();
        loop {
            let guard = self.pool.read(id, Access::Scan)?;
            let page = guard.page();
            let kind = Header::of(page).kind;
            let owner = Owner { first: PageId(page.long(FIRST)), epoch: page.long(EPOCH) };
            if kind == PageKind::Overflow as u8 {
                page.copy_to(BYTES, page.word(LENGTH), into);
            }
            if !guard.is_valid() {
                into.truncate(start);
            } else if kind == PageKind::Overflow as u8 {
                return Ok(owner);
            } else {
                return Err(damaged(
                    &format!("an overflow page with number {}", id.0),
                    format!("kind {kind}"),
                ));
            }
        }
    }

    /// The pages of a value.
    ///
    /// # Errors
    /// As [`Overflow::read`].
    pub fn pages_of(&self, reference: &[u8]) -> Result<Vec<PageId>, Error> {
        let reference = decode(reference)?;
        let Pages { mut inner, mut data, .. } = self.resolve(&reference)?;
        inner.append(&mut data);
        Ok(inner)
    }

    /// Frees a page if it is one of an overflow value, or of an LSM-tree's manifest. Nothing refers to it.
    ///
    /// # Errors
    /// The pool's.
    pub fn free_page(&self, id: PageId) -> Result<bool, Error> {
        loop {
            let guard = self.pool.read(id, Access::Scan)?;
            let is_known =
                [PageKind::Overflow as u8, PageKind::Manifest as u8].contains(&Header::of(guard.page()).kind);
            if guard.is_valid() {
                return if is_known { self.free_pages(&[id]).map(|()| true) } else { Ok(false) };
            }
        }
    }

    /// Frees the pages of a value.
    ///
    /// # Errors
    /// The pool's; some pages are left then.
    pub fn free(&self, reference: &[u8]) -> Result<(), Error> {
        let reference = decode(reference)?;
        let Pages { inner, data, .. } = self.resolve(&reference)?;
        self.free_pages(&data)?;
        self.free_pages(&inner)
    }

    fn free_pages(&self, pages: &[PageId]) -> Result<(), Error> {
        let mut remaining = pages;
        self.free_by_sections(|section| {
            let Some((page, rest)) = remaining.split_first() else { return Ok(false) };
            section.free_unread(*page)?;
            remaining = rest;
            Ok(true)
        })
    }

    /// Frees pages, a few in a section: `free` frees the next one, and returns whether it did.
    fn free_by_sections(
        &self,
        mut free: impl FnMut(&Section<'_>) -> Result<bool, Denied>,
    ) -> Result<(), Error> {
        loop {
            let section = self.pool.section_of(Lifetime::Fixed);
            let mut freed = Ok(true);
            for _ in 0..PAGES_PER_SECTION {
                freed = free(&section);
                if !matches!(freed, Ok(true)) {
                    break;
                }
            }
            drop(section);
            match freed {
                Ok(true) => yield_now(),
                Ok(false) => return Ok(()),
                Err(denied) => {
                    self.pool.images.recover(denied)?;
                    yield_now();
                }
            }
        }
    }

    /// Replays the write of a value over the checkpoint of the epoch `cut`: its pages exist from now on, if
    /// the checkpoint does not know them. `live` is called for those it did not know. `false`, and nothing
    /// has changed, if the value was removed before that checkpoint, as a later record of the log will show:
    /// then its pages and their places may have been reassigned, and it need not come back. A value's first
    /// page is freed first: a value that was completed before the cut, and has no first page any more, was
    /// freed before the cut. The checkpoint has no page of a value that was completed later.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that no `write` returned; those of `live`; the pool's.
    pub fn adopt(
        &self,
        logged: &[u8],
        cut: Epoch,
        live: &mut dyn FnMut(PageId, Location) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let Logged { owner, completed, pages } = decode_logged(logged)?;
        if let Some(owner) = owner
            && completed <= cut
            && !self.pool.pages.exists(owner.first)
        {
            return Ok(false);
        }
        for (page, _) in &pages {
            if self.pool.pages.exists(*page) && !self.is_of(*page, owner)? {
                return Ok(false);
            }
        }
        for (page, location) in pages {
            // A statement of its own, so that the section ends.
            let is_new = self.pool.section_of(Lifetime::Fixed).adopt(page, location);
            if is_new {
                live(page, location)?;
            }
        }
        Ok(true)
    }

    fn is_of(&self, id: PageId, owner: Option<Owner>) -> Result<bool, Error> {
        // Its number may belong to a segment by now; a segment cannot be read as a page.
        if self.pool.pages.location(id, false).is_some_and(Location::is_segment) {
            return Ok(false);
        }
        loop {
            let guard = self.pool.read(id, Access::Scan)?;
            let page = guard.page();
            let found = Owner { first: PageId(page.long(FIRST)), epoch: page.long(EPOCH) };
            let is = Header::of(page).kind == PageKind::Overflow as u8 && Some(found) == owner;
            if guard.is_valid() {
                return Ok(is);
            }
        }
    }
}

fn decode_logged(logged: &[u8]) -> Result<Logged, Error> {
    let mut rest = logged.get(kept(logged).len()..).unwrap_or_default();
    let decoded = (|| {
        let [begun, completed] = [take(&mut rest)?, take(&mut rest)?].map(u32::from_le_bytes);
        let count = u32::from_le_bytes(take(&mut rest)?);
        let page = |_| Some((PageId(take_long(&mut rest)?), Location::decode(take_long(&mut rest)?)?));
        let pages = (0..count).map(page).collect::<Option<Vec<_>>>()?;
        // The value's own pages come first.
        let owner = pages.first().map(|(first, _)| Owner { first: *first, epoch: begun.into() });
        Some(Logged { owner, completed: Epoch(if completed == 0 { begun } else { completed }), pages })
    })();
    decoded.ok_or_else(|| damaged("its pages in the log", format!("{} bytes", logged.len())))
}

/// The epochs of a value's begin and completion, as the log has them.
fn logged_epochs(begun: u64, completed: Epoch) -> u64 {
    let completed = u64::from(completed.0);
    if completed == begun { begun } else { completed << 32 | begun }
}

/// The pages of an overflow value and their locations, according to the log, and the latest epoch of a write
/// to them.
///
/// # Errors
/// [`Error::Corrupt`] for bytes that no `write` returned.
pub(crate) fn written_pages(logged: &[u8]) -> Result<(Vec<(PageId, Location)>, Epoch), Error> {
    let Logged { owner, completed, pages } = decode_logged(logged)?;
    let begun = owner.map_or(0, |owner| u32::try_from(owner.epoch).unwrap_or(u32::MAX));
    Ok((pages, completed.max(Epoch(begun))))
}

/// The identity of a page's value, and the part of the value in the page.
#[cfg(feature = "testing")]
pub(crate) fn part_of(page: crate::page::Page<'_>) -> ((PageId, u64), Vec<u8>) {
    let mut part = Vec::new();
    page.copy_to(BYTES, page.word(LENGTH), &mut part);
    ((PageId(page.long(FIRST)), page.long(EPOCH)), part)
}

/// Checks that a reference that decodes is encoded to an equal one.
#[cfg(feature = "testing")]
pub(crate) fn decode_again(reference: &[u8]) {
    if let Ok(decoded) = decode(reference) {
        let again = decode(&decoded.encode()).ok();
        assert_eq!(again, Some(decoded), "a reference comes back");
    }
}

fn decode(mut reference: &[u8]) -> Result<Reference, Error> {
    Reference::decode(&mut reference)
        .ok_or_else(|| damaged("a reference to its pages", "something else".into()))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::pool::testing::{pool_in_memory, pool_over};

    fn value(length: usize, seed: u64) -> Vec<u8> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        (0..length).map(|_| random.random()).collect()
    }

    fn write(overflow: &Overflow, value: &[u8]) -> Result<Vec<u8>, Error> {
        let mut draft = overflow.begin();
        let mut write = || {
            value.chunks(overflow.part_bytes()).try_for_each(|part| overflow.append(&mut draft, part))?;
            let reference = overflow.seal(&mut draft)?;
            overflow.complete(&draft, &reference)
        };
        let written = write();
        overflow.discard(draft.set()).unwrap();
        written
    }

    fn read(overflow: &Overflow, logged: &[u8]) -> Result<Vec<u8>, Error> {
        let mut into = b"before".to_vec();
        overflow.read(kept(logged), &mut into).map(|()| into.split_off(6))
    }

    fn not_live(page: PageId, _: Location) -> Result<(), Error> {
        panic!("{page:?} was there before")
    }

    #[test]
    fn values_of_any_length_come_back_and_leave_nothing_when_freed() {
        let pool = pool_in_memory(1 << 20);
        for class_max in [0, 3] {
            let overflow = Overflow::new(&pool, class_max);
            let room = class_bytes(class_max) as usize - BYTES as usize;
            // The last one has two levels of numbers in the smallest pages.
            for length in [0, 1, 7, room - 1, room, room + 1, 8 * room, 9 * room - 3, 4100 * 4040] {
                let (value, before) = (value(length, length as u64), pool.pages.count());
                let logged = write(&overflow, &value).unwrap();
                assert!(kept(&logged).len() <= REFERENCE_BYTES_MAX);
                assert_eq!(super::length(kept(&logged)), Some(length as u64));
                assert!(read(&overflow, &logged).unwrap() == value, "{length}");
                overflow.free(kept(&logged)).unwrap();
                assert_eq!(pool.pages.count(), before);
                assert!(length == 0 || read(&overflow, &logged).is_err());
            }
        }
    }

    #[test]
    fn what_belongs_to_another_value_is_not_returned() {
        let overflow = Overflow::new(&pool_in_memory(1 << 20), 0);
        let logged = [1, 2].map(|seed| write(&overflow, &value(10_000, seed)).unwrap());
        let mut mixed = kept(&logged[0]).to_vec();
        let page = mixed.len() - 8;
        mixed[page..].copy_from_slice(&kept(&logged[1])[page..]);
        assert!(matches!(read(&overflow, &mixed), Err(Error::Corrupt { .. })));
        let mut shorter = kept(&logged[0]).to_vec();
        shorter[0] -= 1;
        assert!(matches!(read(&overflow, &shorter), Err(Error::Corrupt { .. })));
        let mut other_checksum = kept(&logged[0]).to_vec();
        other_checksum[8] ^= 1;
        assert!(matches!(read(&overflow, &other_checksum), Err(Error::Corrupt { .. })));
        for length in 0..logged[0].len() {
            let part = &logged[0][..length];
            let is_whole = length >= kept(&logged[0]).len();
            assert!(is_whole || read(&overflow, part).is_err());
            assert!(is_whole || overflow.free(part).is_err() && overflow.pages_of(part).is_err());
            assert!(overflow.adopt(part, Epoch(0), &mut not_live).is_err());
        }
    }

    #[test]
    fn a_replayed_value_comes_back_unless_its_pages_are_others() {
        let page_store = Arc::default();
        let (old, new) = (value(50_000, 1), value(20_000, 2));
        let first = Overflow::new(&pool_over(&page_store, 1 << 20), 0);
        let logged = write(&first, &old).unwrap();
        assert!(first.adopt(&logged, Epoch(0), &mut not_live).unwrap(), "it is there");

        // Opened from a checkpoint that does not know it.
        let pool = pool_over(&page_store, 1 << 20);
        pool.opening().restored(Epoch(7), PageId(1));
        let second = Overflow::new(&pool, 0);
        let mut live = 0;
        let mut note = |_, _| {
            live += 1;
            Ok(())
        };
        assert!(second.adopt(&logged, Epoch(0), &mut note).unwrap());
        // 13 with its bytes, and one with their numbers.
        assert_eq!((live, pool.pages.count()), (14, 14));
        assert!(read(&second, &logged).unwrap() == old);

        // Opened from a checkpoint after its removal, when some of its pages belong to another value.
        let pool = pool_over(&page_store, 1 << 20);
        pool.opening().restored(Epoch(7), PageId(6));
        let third = Overflow::new(&pool, 0);
        let other = write(&third, &new).unwrap();
        let before = pool.pages.count();
        assert!(!third.adopt(&logged, Epoch(7), &mut |_, _| Ok(())).unwrap());
        assert_eq!(pool.pages.count(), before);
        assert!(read(&third, &other).unwrap() == new);
    }

    /// A checkpoint that was made after the value was freed: its places may have been reassigned by then.
    #[test]
    fn a_value_that_was_freed_before_the_cut_does_not_come_back() {
        let page_store = Arc::default();
        let first = pool_over(&page_store, 1 << 20);
        let logged = write(&Overflow::new(&first, 0), &value(50_000, 1)).unwrap();
        let own_epoch = first.epoch();
        // Also if it was made and freed in the epoch that the cut ended.
        for cut in [own_epoch, Epoch(7)] {
            let pool = pool_over(&page_store, 1 << 20);
            pool.opening().restored(cut, PageId(100));
            let later = Overflow::new(&pool, 0);
            assert!(!later.adopt(&logged, cut, &mut not_live).unwrap());
            assert_eq!(pool.pages.count(), 0);
        }
    }

    /// With the pages of their numbers, and whatever fails first.
    #[cfg(feature = "testing")]
    #[test]
    fn a_value_that_cannot_be_written_leaves_nothing_and_one_that_cannot_be_read_stays() {
        use crate::testing::Trouble;

        let pool = pool_in_memory(1 << 20);
        let (overflow, value) = (Overflow::new(&pool, 0), value(40_000, 1));
        for nth in 1..=11 {
            let troubled = Trouble::Frame.at(nth);
            assert!(matches!(write(&overflow, &value), Err(Error::Poisoned { .. })), "page {nth}");
            drop(troubled);
            assert_eq!(pool.pages.count(), 0);
        }
        let logged = write(&overflow, &value).unwrap();
        let unreadable = |result: Result<(), Error>| matches!(result, Err(Error::Io { .. }));
        let troubled = Trouble::Page.at(1);
        assert!(unreadable(overflow.free(kept(&logged))));
        drop(troubled);
        let troubled = Trouble::Page.at(3);
        assert!(unreadable(overflow.adopt(&logged, Epoch(0), &mut not_live).map(drop)));
        drop(troubled);
        assert!(read(&overflow, &logged).unwrap() == value);
    }
}
