//! *write-aligned-stripes* (hidden-parameters paper §3.3, Figure 11): a log of pages whose frames are as
//! large as the pages, so that each begins where a stripe or a page of the drive does.
//!
//! ```text
//! logical   ├ log header, 32 ┼ frame header, 24 ┼ page ─────────────┼ …
//! physical  ├ statement ┬ log header ┬ unused ┼ page without its end ┬ frame header ┼ …
//!           0           512                   first                                 first + page
//! ```
//!
//! The header of a frame takes the place of the page's last 24 bytes. The database reserves these (SQLite's
//! reserved space at the end of each page), so that they are zero: they have no place in the file. The log's
//! own header lies in a block before the first frame; the paper has a separate file for it. That block begins
//! with a statement, [`crate::header`], so that each opener of the log knows its layout.
//!
//! Since the header ends a frame, a file that was cut off holds whole frames and nothing of the last one.

use crate::Error;

/// Bytes at the begin of SQLite's write-ahead log.
pub const LOG_HEADER_BYTES: u64 = 32;

/// Bytes before each page in the log.
pub const FRAME_HEADER_BYTES: u64 = 24;

/// Where the log's header is in the file: in a sector of its own.
pub const LOG_HEADER_AT: u64 = 512;

/// The block with the statement and the log's header is at least so long.
const FIRST_BYTES_MIN: u64 = 4096;

const PAGE_BYTES_MIN: u64 = 512;
const PAGE_BYTES_MAX: u64 = 64 << 10;
const STRIPE_BYTES_MAX: u64 = 64 << 20;

/// The place of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There, in the file.
    At(u64),
    /// Nowhere: these bytes are zero.
    Reserved,
}

/// A part of a logical range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPiece {
    /// Its logical offset.
    pub logical: u64,
    /// Its place.
    pub place: Place,
    /// How many bytes it has; not zero.
    pub length_bytes: u64,
}

/// A log with frames of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedFrames {
    page_bytes: u64,
    stripe_bytes: u64,
    first_bytes: u64,
}

/// Whether stripes of `bytes` bytes are possible.
pub(crate) fn check_stripe(bytes: u64) -> Result<(), Error> {
    if bytes.is_power_of_two() && (PAGE_BYTES_MIN..=STRIPE_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let allowed = "a power of two, from 512 bytes to 64 MiB";
    Err(Error::Size { what: "the stripe", bytes, allowed })
}

impl AlignedFrames {
    /// For pages of `page_bytes` on a drive with stripes of `stripe_bytes`.
    ///
    /// # Errors
    /// [`Error::Size`] if SQLite has no such pages, or a stripe is not a power of two.
    pub fn new(page_bytes: u64, stripe_bytes: u64) -> Result<Self, Error> {
        if !page_bytes.is_power_of_two() || !(PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes) {
            let allowed = "a power of two, from 512 bytes to 64 KiB";
            return Err(Error::Size { what: "the page", bytes: page_bytes, allowed });
        }
        check_stripe(stripe_bytes)?;
        let first_bytes = page_bytes.max(stripe_bytes).max(FIRST_BYTES_MIN);
        Ok(Self { page_bytes, stripe_bytes, first_bytes })
    }

    /// Bytes of a page, and of its frame.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Bytes of a stripe.
    pub fn stripe_bytes(&self) -> u64 {
        self.stripe_bytes
    }

    /// The place in the file of the frame whose header begins at a logical offset; `None` if none does there.
    pub fn frame_at(&self, logical: u64) -> Option<u64> {
        let behind = logical.checked_sub(LOG_HEADER_BYTES)?;
        let place = (behind / self.frame_bytes()).checked_mul(self.page_bytes)?.checked_add(self.first_bytes);
        place.filter(|_| behind.is_multiple_of(self.frame_bytes()))
    }

    /// Bytes of a page that its frame stores; the rest is reserved.
    pub fn stored_bytes(&self) -> u64 {
        self.page_bytes - FRAME_HEADER_BYTES
    }

    fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES + self.page_bytes
    }

    /// The parts of a logical range, in its order.
    pub fn pieces(&self, logical: u64, length_bytes: u64) -> impl Iterator<Item = PlacedPiece> {
        let layout = *self;
        let end = logical.saturating_add(length_bytes);
        let mut at = logical;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (place, until) = layout.place(at);
                let next = until.min(end);
                let piece = PlacedPiece { logical: at, place, length_bytes: next - at };
                at = next;
                piece
            })
        })
    }

    /// Where a logical byte is, and where the bytes that follow it there end.
    fn place(&self, logical: u64) -> (Place, u64) {
        let Some(behind) = logical.checked_sub(LOG_HEADER_BYTES) else {
            return (Place::At(LOG_HEADER_AT + logical), LOG_HEADER_BYTES);
        };
        let (frame, within) = (behind / self.frame_bytes(), behind % self.frame_bytes());
        let begin = logical - within;
        let slot = self.first_bytes + frame * self.page_bytes;
        let stored = self.page_bytes - FRAME_HEADER_BYTES;
        match within.checked_sub(FRAME_HEADER_BYTES) {
            None => (Place::At(slot + stored + within), begin.saturating_add(FRAME_HEADER_BYTES)),
            Some(of_page) if of_page < stored => {
                (Place::At(slot + of_page), begin.saturating_add(self.page_bytes))
            }
            Some(_) => (Place::Reserved, begin.saturating_add(self.frame_bytes())),
        }
    }

    /// The logical byte at this place; `None` in the statement, and after the log's header.
    pub fn logical(&self, physical: u64) -> Option<u64> {
        let Some(behind) = physical.checked_sub(self.first_bytes) else {
            return physical.checked_sub(LOG_HEADER_AT).filter(|at| *at < LOG_HEADER_BYTES);
        };
        let (frame, within) = (behind / self.page_bytes, behind % self.page_bytes);
        let begin = frame.checked_mul(self.frame_bytes())?.checked_add(LOG_HEADER_BYTES)?;
        let stored = self.page_bytes - FRAME_HEADER_BYTES;
        begin.checked_add(within.checked_sub(stored).unwrap_or(within + FRAME_HEADER_BYTES))
    }

    /// Length of the file that holds `logical_bytes`; frames are whole.
    pub fn physical_length(&self, logical_bytes: u64) -> u64 {
        match logical_bytes.checked_sub(LOG_HEADER_BYTES) {
            None if logical_bytes == 0 => 0,
            None | Some(0) => LOG_HEADER_AT + logical_bytes,
            Some(behind) => {
                self.first_bytes.saturating_add(behind.div_ceil(self.frame_bytes()) * self.page_bytes)
            }
        }
    }

    /// Logical bytes of a file of this length: of frames, only those that are whole.
    pub fn logical_length(&self, physical_bytes: u64) -> u64 {
        match physical_bytes.checked_sub(self.first_bytes) {
            None => physical_bytes.saturating_sub(LOG_HEADER_AT).min(LOG_HEADER_BYTES),
            Some(behind) => {
                LOG_HEADER_BYTES.saturating_add((behind / self.page_bytes).saturating_mul(self.frame_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layouts() -> impl Strategy<Value = AlignedFrames> {
        (9_u32..=16, 9_u32..=20)
            .prop_map(|(page, stripe)| AlignedFrames::new(1 << page, 1 << stripe).unwrap())
    }

    #[test]
    fn the_paper_s_frames_fill_stripes() {
        let layout = AlignedFrames::new(64 << 10, 64 << 10).unwrap();
        let frame = |number: u64| 32 + number * (24 + (64 << 10));
        for number in 0..5 {
            let pieces: Vec<_> = layout.pieces(frame(number), 24 + (64 << 10)).collect();
            let slot = (number + 1) * (64 << 10);
            let at = |logical, physical, length_bytes| PlacedPiece {
                logical,
                place: Place::At(physical),
                length_bytes,
            };
            assert_eq!(pieces[0], at(frame(number), slot + (64 << 10) - 24, 24));
            assert_eq!(pieces[1], at(frame(number) + 24, slot, (64 << 10) - 24));
            assert_eq!((pieces[2].place, pieces[2].length_bytes, pieces.len()), (Place::Reserved, 24, 3));
        }
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for (page, stripe) in
            [(0, 4096), (256, 4096), (1000, 4096), (128 << 10, 4096), (4096, 0), (4096, 5000)]
        {
            assert_eq!(AlignedFrames::new(page, stripe).unwrap_err().kind(), "size");
        }
    }

    proptest! {
        #[test]
        fn frames_begin_where_their_pages_do(layout in layouts(), number in 0_u64..1 << 20, off in 1_u64..512) {
            let logical = LOG_HEADER_BYTES + number * layout.frame_bytes();
            let page = layout.place(logical + FRAME_HEADER_BYTES).0;
            prop_assert_eq!(layout.frame_at(logical).map(Place::At), Some(page));
            prop_assert_eq!(layout.frame_at(logical + off), None);
        }

        #[test]
        fn pieces_are_the_range(layout in layouts(), logical in 0_u64..1 << 40, length in 0_u64..300_000) {
            let mut at = logical;
            for piece in layout.pieces(logical, length) {
                prop_assert_eq!(piece.logical, at);
                prop_assert!(piece.length_bytes > 0);
                at += piece.length_bytes;
            }
            prop_assert_eq!(at, logical + length);
        }

        #[test]
        fn mapping_has_an_inverse(layout in layouts(), logical in 0_u64..1 << 40, length in 1_u64..100_000) {
            for piece in layout.pieces(logical, length) {
                if let Place::At(physical) = piece.place {
                    for byte in [0, piece.length_bytes - 1] {
                        prop_assert_eq!(layout.logical(physical + byte), Some(piece.logical + byte));
                    }
                }
            }
        }

        #[test]
        fn every_byte_behind_the_first_slot_is_used_once(layout in layouts(), physical in 0_u64..1 << 30) {
            let Some(logical) = layout.logical(physical) else {
                prop_assert!(physical < layout.first_bytes);
                prop_assert!(!(LOG_HEADER_AT..LOG_HEADER_AT + LOG_HEADER_BYTES).contains(&physical));
                return Ok(());
            };
            prop_assert_eq!(layout.place(logical).0, Place::At(physical));
        }

        #[test]
        fn lengths_hold_whole_frames(layout in layouts(), logical in 0_u64..1 << 40) {
            let physical = layout.physical_length(logical);
            let back = layout.logical_length(physical);
            prop_assert!(back >= logical && back < logical + layout.frame_bytes());
            prop_assert_eq!(layout.physical_length(back), physical);
        }

        #[test]
        fn a_truncated_file_holds_whole_frames_of_the_same_log(layout in layouts(), cut in 0_u64..1 << 40) {
            let left = layout.logical_length(cut);
            prop_assert!(left < LOG_HEADER_BYTES || (left - LOG_HEADER_BYTES).is_multiple_of(layout.frame_bytes()));
            let last = left.saturating_sub(layout.frame_bytes());
            for piece in layout.pieces(last, left - last) {
                if let Place::At(physical) = piece.place {
                    prop_assert!(physical + piece.length_bytes <= cut);
                }
            }
        }
    }
}
