//! Bytes of one file that were written but not handed to the device yet.

use std::collections::BTreeMap;

use super::FileId;

/// Most bytes of the buffer.
const BYTES_MAX: u64 = 4 << 20;

/// Ranges that do not overlap, by their begin.
#[derive(Debug, Default)]
pub(super) struct WriteBuffer {
    file: Option<FileId>,
    ranges: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl WriteBuffer {
    /// The file whose bytes it has.
    pub fn file(&self) -> Option<FileId> {
        self.file
    }

    /// Whether it has bytes of this range.
    pub fn overlaps(&self, file: FileId, offset: u64, bytes: u64) -> bool {
        self.file == Some(file)
            && (self.range_before(offset + bytes).is_some_and(|(begin, range)| begin + range > offset))
    }

    /// The last range that begins before `offset`: its begin and length.
    fn range_before(&self, offset: u64) -> Option<(u64, u64)> {
        self.ranges.range(..offset).next_back().map(|(begin, range)| (*begin, range.len() as u64))
    }

    /// Whether it takes this range as it is: all of it is in a range that it has, or none.
    pub fn takes(&self, file: FileId, offset: u64, bytes: u64) -> bool {
        let is_inside =
            self.range_before(offset + 1).is_some_and(|(begin, range)| begin + range >= offset + bytes);
        match self.file {
            None => true,
            Some(own) => {
                own == file
                    && (is_inside || self.bytes + bytes <= BYTES_MAX && !self.overlaps(file, offset, bytes))
            }
        }
    }

    /// Adds a range that it takes.
    pub fn put(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        debug_assert!(self.takes(file, offset, bytes.len() as u64), "written out before");
        self.file = Some(file);
        let before = self.ranges.range_mut(..=offset).next_back();
        if let Some((begin, range)) = before {
            let within = (offset - begin) as usize;
            if within == range.len() {
                range.extend(bytes);
                self.bytes += bytes.len() as u64;
                return;
            }
            if let Some(place) = range.get_mut(within..).and_then(|rest| rest.get_mut(..bytes.len())) {
                place.copy_from_slice(bytes);
                return;
            }
        }
        self.bytes += bytes.len() as u64;
        self.ranges.insert(offset, bytes.to_vec());
    }

    /// Gives all ranges away, in order; no two of them touch.
    pub fn take(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.file = None;
        self.bytes = 0;
        let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
        for (offset, bytes) in std::mem::take(&mut self.ranges) {
            match joined.last_mut() {
                Some((begin, range)) if *begin + range.len() as u64 == offset => range.extend(bytes),
                _ => joined.push((offset, bytes)),
            }
        }
        joined
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let mut buffer = WriteBuffer::default();
        buffer.put(FileId::NONE, 32, &[1; 24]);
        buffer.put(FileId::NONE, 56, &[2; 512]);
        buffer.put(FileId::NONE, 40, &[3; 4]);
        let ranges = buffer.take();
        assert_eq!((ranges.len(), ranges[0].0, ranges[0].1.len()), (1, 32, 536));
        assert_eq!(ranges[0].1[6..14], [1, 1, 3, 3, 3, 3, 1, 1]);
        // A frame's header lies after its page, and is written before.
        buffer.put(FileId::NONE, 4072, &[1; 24]);
        buffer.put(FileId::NONE, 0, &[2; 4072]);
        assert_eq!(
            buffer.take().iter().map(|(at, range)| (*at, range.len())).collect::<Vec<_>>(),
            [(0, 4096)]
        );
    }

    proptest! {
        #[test]
        fn bytes_are_the_last_ones_written(writes in proptest::collection::vec((0_u64..200, 1_usize..40), 1..40)) {
            let (mut buffer, mut model) = (WriteBuffer::default(), vec![0_u8; 300]);
            let mut device = model.clone();
            for (number, (offset, length)) in writes.into_iter().enumerate() {
                let bytes = vec![number as u8 + 1; length];
                if !buffer.takes(FileId::NONE, offset, length as u64) {
                    for (begin, range) in buffer.take() {
                        device[begin as usize..][..range.len()].copy_from_slice(&range);
                    }
                }
                buffer.put(FileId::NONE, offset, &bytes);
                prop_assert!(buffer.overlaps(FileId::NONE, offset, length as u64));
                model[offset as usize..][..length].copy_from_slice(&bytes);
            }
            for (begin, range) in buffer.take() {
                device[begin as usize..][..range.len()].copy_from_slice(&range);
            }
            prop_assert_eq!(device, model);
        }
    }
}
