//! *contain-write-in-flash-page* (hidden-parameters paper §3.3, Figure 10): records of a file that only grows
//! touch as few flash pages as they can. A record that would touch one page more than it must begins at the
//! next page instead.
//!
//! ```text
//! logical    ├ a ─────┼ b ───┼ c ─────────┼ …
//! physical   ├ head, 4 ┼ a ─────┼ b ───┬ unused ┼ head, 4 ┼ c ─────────┼ …
//!            0                                  flash page
//! ```
//!
//! The head of a page says how many of its bytes are in use, and lies in the page itself: writing a record
//! and the heads that it changes modifies only the pages of the record. The logical file has neither heads
//! nor gaps, so that positions that a program has noted stay valid.
//!
//! Heads are [`PageHead`](crate::PageHead)s. Files of earlier versions have counts instead, of
//! [`PAGE_COUNT_BYTES`]: the used bytes, and the same with all bits flipped.
//!
//! Life of a mapping: [`FlashPages::new`] for an empty file, [`FlashPages::push`] for each page of one that
//! exists, or [`FlashPages::recover`] from its counts; then [`FlashPages::append`] for each record.

use crate::{Error, PAGE_HEAD_BYTES, Piece};

/// Bytes at the begin of each page of earlier versions that say how many follow.
pub const PAGE_COUNT_BYTES: u64 = 4;

const PAGE_BYTES_MIN: u64 = 512;
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// A file of records in flash pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashPages {
    page_bytes: u64,
    /// Bytes of the head of each page.
    head_bytes: u64,
    /// The logical offset of the end of each page's bytes. Ends rise.
    ends: Vec<u64>,
}

impl FlashPages {
    /// An empty file on a drive with flash pages of `page_bytes`. Where the drive's are unknown, 1 KiB is a
    /// careful guess (§4.3).
    ///
    /// # Errors
    /// [`Error::Size`] if it is no power of two from 512 bytes to 64 KiB.
    pub fn new(page_bytes: u64) -> Result<Self, Error> {
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes) {
            let allowed = "a power of two, from 512 bytes to 64 KiB";
            return Err(Error::Size { what: "the flash page", bytes: page_bytes, allowed });
        }
        Ok(Self { page_bytes, head_bytes: PAGE_HEAD_BYTES, ends: Vec::new() })
    }

    /// The same where pages begin with counts, as in files of earlier versions.
    ///
    /// # Errors
    /// As [`FlashPages::new`].
    pub fn with_counts(page_bytes: u64) -> Result<Self, Error> {
        Ok(Self { head_bytes: PAGE_COUNT_BYTES, ..Self::new(page_bytes)? })
    }

    /// Whether pages begin with counts.
    pub fn has_counts(&self) -> bool {
        self.head_bytes == PAGE_COUNT_BYTES
    }

    /// Bytes of the head of each page.
    pub fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Adds a page with `used_bytes` used bytes, which was found in a file. It has room for them.
    pub fn push(&mut self, used_bytes: u64) {
        self.ends.push(self.length_bytes().saturating_add(used_bytes.min(self.room_bytes())));
    }

    /// The mapping of a file of `physical_bytes` whose pages begin with these counts. It ends before the
    /// first page that was never written, whose count is zero, and where the file does.
    ///
    /// # Errors
    /// As [`FlashPages::new`] and [`FlashPages::resume`].
    pub fn recover(
        page_bytes: u64,
        heads: impl IntoIterator<Item = [u8; PAGE_COUNT_BYTES as usize]>,
        physical_bytes: u64,
    ) -> Result<Self, Error> {
        let mut pages = Self::with_counts(page_bytes)?;
        pages.resume(heads, physical_bytes)?;
        Ok(pages)
    }

    /// Takes in the pages that other processes have appended: the counts of the last page that is known,
    /// [`FlashPages::last_page`], and of those after it, of a file that has `physical_bytes` now.
    ///
    /// # Errors
    /// [`Error::Page`] with the page, counted in bytes from the first one on, if a head is damaged. The
    /// mapping is unchanged then.
    pub fn resume(
        &mut self,
        heads: impl IntoIterator<Item = [u8; PAGE_COUNT_BYTES as usize]>,
        physical_bytes: u64,
    ) -> Result<(), Error> {
        let last = self.ends.pop();
        let known = self.ends.len();
        for head in heads {
            let page = self.ends.len() as u64 * self.page_bytes;
            let there = physical_bytes.saturating_sub(page + PAGE_COUNT_BYTES);
            match decode_count(head, self.room_bytes()) {
                Ok(used) if used.min(there) > 0 => self.ends.push(self.length_bytes() + used.min(there)),
                Ok(_) => break,
                Err(problem) => {
                    self.ends.truncate(known);
                    self.ends.extend(last);
                    return Err(Error::Page { offset_bytes: page, problem });
                }
            }
        }
        Ok(())
    }

    /// Where the page begins that follows the last one.
    pub fn next_page(&self) -> u64 {
        self.ends.len() as u64 * self.page_bytes
    }

    /// Where the last page begins, or the first one of an empty file will.
    pub fn last_page(&self) -> u64 {
        (self.ends.len() as u64).saturating_sub(1) * self.page_bytes
    }

    /// Shortens the file to `length_bytes` logical bytes. The last page has another head then.
    pub fn truncate(&mut self, length_bytes: u64) {
        let whole = self.ends.partition_point(|end| *end <= length_bytes);
        if whole < self.ends.len() {
            let is_part = self.begin(whole) < length_bytes;
            self.ends.truncate(whole + usize::from(is_part));
            if let Some(last) = self.ends.last_mut() {
                *last = length_bytes;
            }
        }
    }

    /// Bytes of a flash page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Logical length of the file.
    pub fn length_bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Length of the file itself.
    pub fn physical_length(&self) -> u64 {
        match self.ends.len() as u64 {
            0 => 0,
            pages => (pages - 1) * self.page_bytes + self.head_bytes + self.used_bytes(pages as usize - 1),
        }
    }

    /// Bytes of records in a page.
    pub fn room_bytes(&self) -> u64 {
        self.page_bytes - self.head_bytes
    }

    /// Where the bytes of a page begin, in logical bytes.
    pub fn begin(&self, page: usize) -> u64 {
        page.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Used bytes of a page.
    pub fn used_bytes(&self, page: usize) -> u64 {
        self.ends[page] - self.begin(page)
    }

    /// Adds a record of `record_bytes` to the end, and says where its bytes go. All pages of these pieces,
    /// and no others, have a new head, which is written with them.
    pub fn append(&mut self, record_bytes: u64) -> Vec<Piece> {
        let room = self.room_bytes();
        let left = self.ends.len().checked_sub(1).map_or(0, |last| room - self.used_bytes(last));
        let pages_from_here = u64::from(left > 0) + record_bytes.saturating_sub(left).div_ceil(room);
        let begins_anew = left == 0 || pages_from_here > record_bytes.div_ceil(room);
        let begin = self.length_bytes();
        let end = begin.saturating_add(record_bytes);
        let mut at = begin;
        if !begins_anew {
            at = at.saturating_add(left).min(end);
            if let Some(last) = self.ends.last_mut() {
                *last = at;
            }
        }
        while at < end {
            at = at.saturating_add(room).min(end);
            self.ends.push(at);
        }
        self.pieces(begin, record_bytes)
    }

    /// Where the bytes of a logical range are; the part after the end of the file is nowhere.
    pub fn pieces(&self, logical: u64, length_bytes: u64) -> Vec<Piece> {
        let end = logical.saturating_add(length_bytes).min(self.length_bytes());
        let mut at = logical;
        let mut page = self.ends.partition_point(|end| *end <= logical);
        let mut pieces = Vec::new();
        while at < end {
            let next = self.ends[page].min(end);
            let physical = page as u64 * self.page_bytes + self.head_bytes + (at - self.begin(page));
            pieces.push(Piece { logical: at, physical, length_bytes: next - at });
            (at, page) = (next, page + 1);
        }
        pieces
    }

    /// The logical byte at this place; `None` in heads and gaps, and after the end.
    pub fn logical(&self, physical: u64) -> Option<u64> {
        let page = usize::try_from(physical / self.page_bytes).ok().filter(|page| *page < self.ends.len())?;
        let within = (physical % self.page_bytes).checked_sub(self.head_bytes)?;
        (within < self.used_bytes(page)).then(|| self.begin(page) + within)
    }

    /// Pages that have bytes.
    pub fn pages(&self) -> usize {
        self.ends.len()
    }

    /// The page that a physical offset is in, and the count that belongs to its begin.
    pub fn count(&self, physical: u64) -> Option<(u64, [u8; PAGE_COUNT_BYTES as usize])> {
        let page = usize::try_from(physical / self.page_bytes).ok().filter(|page| *page < self.ends.len())?;
        Some((page as u64 * self.page_bytes, encode_count(self.used_bytes(page))))
    }
}

/// The number of used bytes, and the same with all bits flipped.
fn encode_count(used_bytes: u64) -> [u8; PAGE_COUNT_BYTES as usize] {
    let [a, b, ..] = used_bytes.to_le_bytes();
    [a, b, !a, !b]
}

/// Used bytes of a page with room for `room_bytes`; 0 of one that was never written.
fn decode_count(
    [a, b, not_a, not_b]: [u8; PAGE_COUNT_BYTES as usize],
    room_bytes: u64,
) -> Result<u64, &'static str> {
    match u64::from(u16::from_le_bytes([a, b])) {
        0 if [not_a, not_b] == [0, 0] => Ok(0),
        _ if a != !not_a || b != !not_b => Err("its count of used bytes contradicts itself"),
        0 => Err("it says that nothing is in it"),
        used if used > room_bytes => Err("it says that more bytes are in it than it has room for"),
        used => Ok(used),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages that a piece of a file touches.
    fn pages_touched(pieces: &[Piece], page_bytes: u64) -> u64 {
        let (first, last) = (pieces.first().unwrap(), pieces.last().unwrap());
        (last.physical + last.length_bytes - 1) / page_bytes - first.physical / page_bytes + 1
    }

    fn heads(pages: &FlashPages) -> Vec<[u8; 4]> {
        (0..pages.ends.len() as u64).map(|page| pages.count(page * pages.page_bytes).unwrap().1).collect()
    }

    fn files() -> impl Strategy<Value = (FlashPages, Vec<Vec<Piece>>)> {
        let records = proptest::collection::vec(prop_oneof![1_u64..300, 1_u64..5000], 0..60);
        (9_u32..=13, records).prop_map(|(shift, records)| {
            let mut pages = FlashPages::with_counts(1 << shift).unwrap();
            let placed = records.iter().map(|bytes| pages.append(*bytes)).collect();
            (pages, placed)
        })
    }

    /// §4.3: of binary-log records with 275 bytes, 6.7 % lie across a 4 KiB page; none does afterwards.
    #[test]
    fn no_record_of_the_paper_s_binary_log_straddles_pages() {
        const RECORDS: u64 = 100_000;
        let mut pages = FlashPages::new(4096).unwrap();
        let straddle = (0..RECORDS).filter(|record| pages_of(record * 275, 275) > 1).count() as f64;
        assert!((straddle / RECORDS as f64 - 0.067).abs() < 0.001, "{straddle}");
        for _ in 0..RECORDS {
            assert_eq!(pages_touched(&pages.append(275), 4096), 1);
        }
        let growth = pages.physical_length() as f64 / (RECORDS * 275) as f64;
        assert!(growth < 1.07, "{growth}");
    }

    fn pages_of(offset: u64, bytes: u64) -> u64 {
        (offset + bytes - 1) / 4096 - offset / 4096 + 1
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for bytes in [0, 256, 5000, 128 << 10] {
            assert_eq!(FlashPages::new(bytes).unwrap_err().kind(), "size");
        }
    }

    #[test]
    fn pages_without_a_head_end_the_file() {
        let mut pages = FlashPages::with_counts(512).unwrap();
        for _ in 0..10 {
            pages.append(400);
        }
        let mut heads = heads(&pages);
        heads[4] = [0; 4];
        let recovered = FlashPages::recover(512, heads, pages.physical_length()).unwrap();
        assert_eq!(recovered.length_bytes(), 1600);
    }

    #[test]
    fn damaged_heads_are_named() {
        let mut pages = FlashPages::with_counts(512).unwrap();
        for _ in 0..10 {
            pages.append(400);
        }
        let heads = heads(&pages);
        for (head, text) in [
            ([0x91, 1, 0x6f, 0xfe], "contradicts itself"),
            ([0, 0, 0xff, 0xff], "nothing is in it"),
            ([0xfd, 1, 2, 0xfe], "more bytes"),
        ] {
            let mut damaged = heads.clone();
            damaged[4] = head;
            let error = FlashPages::recover(512, damaged.clone(), pages.physical_length()).unwrap_err();
            assert_eq!(error.kind(), "page");
            let said = error.to_string();
            assert!(said.contains("at byte 2048") && said.contains(text), "{said}");
            // The known pages stay.
            let mut known = FlashPages::with_counts(512).unwrap();
            known.append(400);
            let before = known.clone();
            known.resume(damaged, pages.physical_length()).unwrap_err();
            assert_eq!(known, before);
        }
    }

    proptest! {
        #[test]
        fn records_touch_as_few_pages_as_they_can((pages, placed) in files()) {
            for pieces in placed {
                let bytes: u64 = pieces.iter().map(|piece| piece.length_bytes).sum();
                prop_assert_eq!(pages_touched(&pieces, pages.page_bytes), bytes.div_ceil(pages.room_bytes()));
            }
        }

        #[test]
        fn mapping_has_an_inverse_and_keeps_order((pages, placed) in files()) {
            let mut before: Option<Piece> = None;
            for piece in placed.into_iter().flatten() {
                for byte in [0, piece.length_bytes - 1] {
                    prop_assert_eq!(pages.logical(piece.physical + byte), Some(piece.logical + byte));
                    let found = pages.pieces(piece.logical + byte, 1);
                    prop_assert_eq!(found[0].physical, piece.physical + byte);
                }
                let (logical, physical) = before.map_or((0, 0), |piece| {
                    (piece.logical + piece.length_bytes, piece.physical + piece.length_bytes)
                });
                prop_assert_eq!(piece.logical, logical);
                prop_assert!(piece.physical >= physical, "pieces overlap");
                before = Some(piece);
            }
        }

        #[test]
        fn a_file_is_recovered_from_its_heads((pages, _) in files()) {
            let recovered = FlashPages::recover(pages.page_bytes, heads(&pages), pages.physical_length());
            prop_assert_eq!(recovered.unwrap(), pages);
        }

        #[test]
        fn a_file_that_was_cut_off_is_a_prefix((pages, _) in files(), cut in 0_u64..200_000) {
            let cut = cut.min(pages.physical_length());
            let there = |page: &u64| page * pages.page_bytes + PAGE_COUNT_BYTES <= cut;
            let count = (0..pages.ends.len() as u64).take_while(there).count();
            let left = FlashPages::recover(pages.page_bytes, heads(&pages)[..count].to_vec(), cut).unwrap();
            prop_assert!(left.length_bytes() <= pages.length_bytes());
            prop_assert!(left.physical_length() <= cut);
            prop_assert_eq!(left.pieces(0, u64::MAX), pages.pieces(0, left.length_bytes()));
        }

        #[test]
        fn a_file_that_is_shortened_is_a_prefix((pages, _) in files(), length in 0_u64..200_000) {
            let mut left = pages.clone();
            left.truncate(length);
            prop_assert_eq!(left.length_bytes(), length.min(pages.length_bytes()));
            prop_assert_eq!(left.pieces(0, u64::MAX), pages.pieces(0, length));
            prop_assert!(left.ends.is_sorted_by(|one, other| one < other));
        }

        #[test]
        fn what_others_appended_is_taken_in((mut pages, _) in files(), more in proptest::collection::vec(1_u64..3000, 0..20)) {
            let mut other = pages.clone();
            more.iter().for_each(|bytes| drop(other.append(*bytes)));
            let known = (pages.last_page() / pages.page_bytes) as usize;
            pages.resume(heads(&other)[known..].to_vec(), other.physical_length()).unwrap();
            prop_assert_eq!(pages, other);
        }

        #[test]
        fn nothing_panics_on_any_heads(heads in proptest::collection::vec(any::<[u8; 4]>(), 0..20), length: u64) {
            let Ok(mut pages) = FlashPages::recover(4096, heads, length) else { return Ok(()) };
            pages.append(10_000);
            prop_assert_eq!(pages.logical(pages.physical_length()), None);
        }
    }
}
