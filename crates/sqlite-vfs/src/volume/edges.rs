//! Blocks on the device that will soon be read or written in part: the end of a log, and the first block of a
//! database. SQLite reads 16 bytes of it at each transaction.

use std::collections::VecDeque;

use super::FileId;

const BLOCKS_MAX: usize = 16;

/// A few blocks, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Edges(VecDeque<Block>);

#[derive(Debug)]
struct Block {
    file: FileId,
    offset: u64,
    bytes: Vec<u8>,
}

impl Block {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl Edges {
    /// Fills `bytes` if all of them are in one block that is known.
    pub fn read(&self, file: FileId, offset: u64, bytes: &mut [u8]) -> bool {
        let has = |block: &&Block| {
            block.file == file && block.offset <= offset && offset + bytes.len() as u64 <= block.end()
        };
        let Some(block) = self.0.iter().find(has) else { return false };
        bytes.copy_from_slice(&block.bytes[(offset - block.offset) as usize..][..bytes.len()]);
        true
    }

    pub fn remember(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        self.0.retain(|block| (block.file, block.offset) != (file, offset));
        if self.0.len() == BLOCKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Block { file, offset, bytes: bytes.to_vec() });
    }

    /// Whole blocks are being written.
    pub fn written(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        for block in self.0.iter_mut().filter(|block| block.file == file && block.offset >= offset) {
            let at = usize::try_from(block.offset - offset).unwrap_or(usize::MAX);
            if let Some(new) = bytes.get(at..).and_then(|rest| rest.get(..block.bytes.len())) {
                block.bytes.copy_from_slice(new);
            }
        }
    }

    pub fn forget(&mut self, file: FileId) {
        self.0.retain(|block| block.file != file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_they_were_written_last() {
        let (mut edges, mut found) = (Edges::default(), [0; 4]);
        edges.remember(FileId::NONE, 512, &[1; 512]);
        assert!(edges.read(FileId::NONE, 1020, &mut found));
        assert!(!edges.read(FileId::NONE, 1021, &mut found), "a part is elsewhere");
        edges.written(FileId::NONE, 0, &[2; 1024]);
        assert!(edges.read(FileId::NONE, 600, &mut found));
        assert_eq!(found, [2; 4]);
        edges.forget(FileId::NONE);
        assert!(!edges.read(FileId::NONE, 600, &mut found));
    }
}
