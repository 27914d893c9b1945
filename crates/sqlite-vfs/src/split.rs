//! Writes that are split where stripes begin, as in the paper (§4.1.2): pieces in every other stripe are
//! written after a sync of the rest, so that no cache in between joins them again.
//!
//! Until then, they wait here, where reads find them.

use flashgrain_layout::stripe_pieces;

/// Pieces that wait, with their offsets in the file.
#[derive(Debug)]
pub(crate) struct Split {
    stripe_bytes: u64,
    waiting: Vec<(u64, Vec<u8>)>,
}

impl Split {
    pub fn new(stripe_bytes: u64) -> Self {
        Self { stripe_bytes: stripe_bytes.max(1), waiting: Vec::new() }
    }

    /// The pieces of a write that go now, as offsets and ranges of `bytes`; all others wait.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Vec<(u64, std::ops::Range<usize>)> {
        let mut now = Vec::new();
        for (at, length) in stripe_pieces(offset, bytes.len() as u64, self.stripe_bytes) {
            let begin = (at - offset) as usize;
            let range = begin..begin + length as usize;
            if (at / self.stripe_bytes).is_multiple_of(2) {
                now.push((at, range));
            } else {
                // Of the same bytes, the last ones count.
                self.waiting.retain(|(other, piece)| *other != at || piece.len() != range.len());
                self.waiting.push((at, bytes[range].to_vec()));
            }
        }
        now
    }

    /// Copies the waiting pieces of a range over the bytes that were read of it from the file.
    pub fn overlay(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset + bytes.len() as u64;
        for (at, piece) in &self.waiting {
            let (from, to) = ((*at).max(offset), (at + piece.len() as u64).min(end));
            if from < to {
                let new = &piece[(from - at) as usize..(to - at) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(new);
            }
        }
    }

    /// Where the last piece that waits ends.
    pub fn end(&self) -> u64 {
        self.waiting.iter().map(|(at, piece)| at + piece.len() as u64).max().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns all waiting pieces in the order of their writes.
    pub fn take(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_written_apart() {
        let mut split = Split::new(64);
        let page: Vec<u8> = (0..64).collect();
        assert_eq!(split.write(32, &page), [(32, 0..32)]);
        assert_eq!(split.write(96, &page), [(128, 32..64)]);
        split.write(32, &page);
        let mut read = [255; 64];
        split.overlay(48, &mut read);
        assert_eq!((read[15], &read[16..48], read[48]), (255, &page[32..], page[0]));
        assert_eq!(split.end(), 128);
        let waiting = split.take();
        assert_eq!(waiting.len(), 2, "each once");
        assert_eq!(waiting[0], (96, page[..32].to_vec()));
        assert_eq!(waiting[1], (64, page[32..].to_vec()));
        assert!(split.is_empty());
    }
}
