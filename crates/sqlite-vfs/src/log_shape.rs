//! The layout of a log whose frames are aligned, as far as it is known.
//!
//! The connection that writes the header of an empty log first states the shape of its frames, and all others
//! look at that. The statement stays until the log is removed, also when SQLite empties the log: connections
//! that know it go on without looking. Only a header with pages of another size replaces it: the database has
//! left the mode of the log in between, for which SQLite makes sure that no other connection has the log
//! open.

use flashgrain_layout::header::{self, HEADER_BYTES, Statement};
use flashgrain_layout::{AlignedFrames, Error, LOG_HEADER_AT, LOG_HEADER_BYTES, Place};

/// How the bytes of a log are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogShape {
    /// Nothing is stated yet.
    Undecided,
    /// As was stated.
    Stated(Statement),
}

/// A part of a logical range: where it is, if it is not zero anyway, and its length.
pub(crate) type Part = (Option<u64>, u64);

impl LogShape {
    /// The shape of a log of `length_bytes` that begins with `beginning`.
    ///
    /// # Errors
    /// The defect of the statement.
    pub fn of_file(length_bytes: u64, beginning: &[u8]) -> Result<Self, Error> {
        // A crash while the statement was written leaves zeros, and no frame that anybody was told of.
        if length_bytes == 0 || beginning.iter().all(|byte| *byte == 0) {
            return Ok(Self::Undecided);
        }
        header::decode_log(beginning)?.map(Self::Stated).ok_or(Error::Newer)
    }
}

/// Whether a file has the statement of a log and nothing else.
pub(crate) fn is_empty(length_bytes: u64, beginning: &[u8]) -> bool {
    match LogShape::of_file(length_bytes, beginning) {
        Ok(LogShape::Stated(statement)) => logical_length(statement, length_bytes) == 0,
        Ok(LogShape::Undecided) | Err(_) => false,
    }
}

/// The statement for a log with this header, on stripes of `stripe_bytes`, if pages have room for the headers
/// of frames.
pub(crate) fn statement(log_header: &[u8], stripe_bytes: u64, has_room: bool) -> Statement {
    page_bytes_of(log_header)
        .filter(|_| has_room)
        .and_then(|bytes| AlignedFrames::new(bytes, stripe_bytes).ok())
        .map_or(Statement::Unaligned, Statement::Aligned)
}

/// Whether an empty log with this statement may begin with this header.
pub(crate) fn is_for(statement: Statement, log_header: &[u8]) -> bool {
    match statement {
        Statement::Unaligned => true,
        Statement::Aligned(frames) => {
            page_bytes_of(log_header).is_some_and(|bytes| bytes == frames.page_bytes())
        }
    }
}

/// The size of pages in the log's header.
fn page_bytes_of(log_header: &[u8]) -> Option<u64> {
    Some(u32::from_be_bytes(*log_header.get(8..)?.first_chunk()?).into())
}

/// Whether a write of this range is that of the log's header.
pub(crate) fn is_header(offset: u64, bytes: usize) -> bool {
    offset == 0 && bytes as u64 == LOG_HEADER_BYTES
}

/// Where a range of the log is.
pub(crate) fn parts(statement: Statement, offset: u64, bytes: u64) -> Vec<Part> {
    match statement {
        Statement::Unaligned => vec![(offset.checked_add(HEADER_BYTES), bytes)],
        Statement::Aligned(frames) => {
            let part = |piece: flashgrain_layout::PlacedPiece| match piece.place {
                Place::At(physical) => (Some(physical), piece.length_bytes),
                Place::Reserved => (None, piece.length_bytes),
            };
            frames.pieces(offset, bytes).map(part).collect()
        }
    }
}

/// Length of the log in a file of `physical_bytes`.
pub(crate) fn logical_length(statement: Statement, physical_bytes: u64) -> u64 {
    match statement {
        Statement::Unaligned => physical_bytes.saturating_sub(HEADER_BYTES),
        Statement::Aligned(frames) => frames.logical_length(physical_bytes),
    }
}

/// Length of the file for a log of `logical_bytes`: the statement stays.
pub(crate) fn physical_length(statement: Statement, logical_bytes: u64) -> u64 {
    match statement {
        Statement::Unaligned => HEADER_BYTES.saturating_add(logical_bytes),
        Statement::Aligned(frames) => frames.physical_length(logical_bytes).max(LOG_HEADER_AT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned() -> Statement {
        Statement::Aligned(AlignedFrames::new(64 << 10, 4096).unwrap())
    }

    #[test]
    fn what_is_stated_counts() {
        let bytes = header::encode_log(aligned());
        assert_eq!(LogShape::of_file(0, &[]), Ok(LogShape::Undecided));
        assert_eq!(LogShape::of_file(544, &[0; 64]), Ok(LogShape::Undecided));
        assert_eq!(LogShape::of_file(544, &bytes), Ok(LogShape::Stated(aligned())));
        assert_eq!(LogShape::of_file(544, &[0x37, 0x7f, 6, 0x82]), Err(Error::Newer));
        let mut damaged = bytes;
        damaged[30] ^= 1;
        assert_eq!(LogShape::of_file(544, &damaged).unwrap_err().kind(), "checksum");
    }

    #[test]
    fn the_first_header_has_the_page_s_size() {
        let mut log_header = [0; 32];
        log_header[8..12].copy_from_slice(&65_536_u32.to_be_bytes());
        assert_eq!(statement(&log_header, 4096, true), aligned());
        assert_eq!(statement(&log_header, 4096, false), Statement::Unaligned);
        assert_eq!(statement(&[0; 32], 4096, true), Statement::Unaligned, "no such pages");
    }

    #[test]
    fn frames_of_one_size_are_not_those_of_another() {
        let mut log_header = [0; 32];
        for (page_bytes, is_so) in [(65_536_u32, true), (4096, false)] {
            log_header[8..12].copy_from_slice(&page_bytes.to_be_bytes());
            assert_eq!(is_for(aligned(), &log_header), is_so);
            assert!(is_for(Statement::Unaligned, &log_header));
        }
        assert!(!is_for(aligned(), &[]));
    }

    #[test]
    fn an_empty_log_keeps_its_statement() {
        for statement in [aligned(), Statement::Unaligned] {
            let kept = physical_length(statement, 0);
            assert!(kept >= header::ENCODED_BYTES as u64);
            assert_eq!(logical_length(statement, kept), 0);
        }
    }
}
