//! Reading ahead of scans: which bytes are asked for before SQLite does.
//!
//! A stream is where the calling thread's reads have gone on one after the other. From the third read on,
//! reads of the next bytes are under way, up to the window, which doubles. Reads elsewhere, as of inner pages
//! of a tree, do not end a stream at once.

use super::FileId;

/// Bytes of a chunk, and of its place in the arena.
pub(super) const CHUNK_BYTES: u64 = 128 << 10;

/// Places for chunks.
pub(super) const CHUNKS: usize = 32;

/// Reads in a row before a stream is taken for a scan.
const READS_MIN: u32 = 2;

/// Reads elsewhere that a scan survives.
const STRAYS_MAX: u32 = 8;

/// Where a thread reads.
#[derive(Clone, Copy, Debug)]
struct Stream {
    file: FileId,
    next: u64,
    reads: u32,
    strays: u32,
    sent_until: u64,
    window_bytes: u64,
}

/// Bytes that were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub file: FileId,
    pub version: u64,
    pub offset: u64,
    pub bytes: u64,
    /// Its place.
    pub place: usize,
    /// Requests that are under way.
    pub in_flight: u32,
    /// It is no longer wanted, or a request has failed.
    pub is_dropped: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    stream: Option<Stream>,
    chunks: Vec<Chunk>,
}

impl ReadAhead {
    /// Ranges to ask for after a read of `begin..end`, with at most `bytes_max` under way.
    pub fn wanted(&mut self, file: FileId, begin: u64, end: u64, bytes_max: u64) -> Vec<(u64, u64)> {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.file == file) else {
            self.begin(file, end);
            return Vec::new();
        };
        if begin < stream.next || begin > stream.next.max(stream.sent_until) {
            stream.strays += 1;
            if stream.reads < READS_MIN || stream.strays > STRAYS_MAX {
                self.begin(file, end);
            }
            return Vec::new();
        }
        (stream.next, stream.strays, stream.reads) = (end, 0, stream.reads.saturating_add(1));
        if stream.reads < READS_MIN {
            return Vec::new();
        }
        let limit = bytes_max.min((CHUNKS as u64 - 2) * CHUNK_BYTES);
        stream.window_bytes = (stream.window_bytes * 2).clamp(CHUNK_BYTES.min(limit), limit);
        let (until, mut at) = (end + stream.window_bytes, stream.sent_until.max(end));
        let mut free = CHUNKS - self.chunks.len();
        let mut wanted = Vec::new();
        while at + CHUNK_BYTES <= until && free > 0 {
            wanted.push((at, CHUNK_BYTES));
            (at, free) = (at + CHUNK_BYTES, free - 1);
        }
        stream.sent_until = at;
        wanted
    }

    fn begin(&mut self, file: FileId, next: u64) {
        self.stream =
            Some(Stream { file, next, reads: 0, strays: 0, sent_until: next, window_bytes: CHUNK_BYTES / 2 });
        self.chunks.iter_mut().for_each(|chunk| chunk.is_dropped = true);
        self.clean();
    }

    /// A place for a chunk that is read by `in_flight` requests.
    pub fn add(
        &mut self,
        file: FileId,
        version: u64,
        offset: u64,
        bytes: u64,
        in_flight: u32,
    ) -> Option<usize> {
        let place = (0..CHUNKS).find(|place| self.chunks.iter().all(|chunk| chunk.place != *place))?;
        self.chunks.push(Chunk { file, version, offset, bytes, place, in_flight, is_dropped: false });
        Some(place)
    }

    /// The chunk that has this byte.
    pub fn find(&self, file: FileId, version: u64, offset: u64) -> Option<Chunk> {
        let has = |chunk: &&Chunk| {
            !chunk.is_dropped
                && (chunk.file, chunk.version) == (file, version)
                && (chunk.offset..chunk.offset + chunk.bytes).contains(&offset)
        };
        self.chunks.iter().find(has).copied()
    }

    /// A request of the chunk at this place has ended.
    pub fn done(&mut self, place: usize, is_failed: bool) {
        if let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.place == place) {
            chunk.in_flight -= 1;
            chunk.is_dropped |= is_failed;
        }
        self.clean();
    }

    /// Drops chunks that end at or before `offset`, which was read, and those of older versions.
    pub fn pass(&mut self, file: FileId, version: u64, offset: u64) {
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.file == file) {
            chunk.is_dropped |= chunk.version != version || chunk.offset + chunk.bytes <= offset;
        }
        self.clean();
    }

    fn clean(&mut self) {
        self.chunks.retain(|chunk| !chunk.is_dropped || chunk.in_flight > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 16 << 10;

    fn read(ahead: &mut ReadAhead, page: u64) -> Vec<(u64, u64)> {
        ahead.wanted(FileId::NONE, page * PAGE, (page + 1) * PAGE, 1 << 20)
    }

    #[test]
    fn scans_are_read_ahead_of_and_strays_do_not_matter() {
        let mut ahead = ReadAhead::default();
        assert_eq!([read(&mut ahead, 10), read(&mut ahead, 11)], [vec![], vec![]]);
        assert_eq!(read(&mut ahead, 12), [(13 * PAGE, CHUNK_BYTES)]);
        assert_eq!(read(&mut ahead, 500), []);
        assert_eq!(read(&mut ahead, 13)[0], (13 * PAGE + CHUNK_BYTES, CHUNK_BYTES));
    }

    #[test]
    fn random_reads_are_not() {
        let mut ahead = ReadAhead::default();
        for page in [7, 3, 99, 98, 40, 41, 5] {
            assert_eq!(read(&mut ahead, page), []);
        }
    }

    #[test]
    fn chunks_keep_their_places_while_under_way() {
        let mut ahead = ReadAhead::default();
        let place = ahead.add(FileId::NONE, 1, 0, CHUNK_BYTES, 2).unwrap();
        assert!(ahead.find(FileId::NONE, 1, 5).is_some());
        assert!(ahead.find(FileId::NONE, 2, 5).is_none(), "it was written to");
        ahead.pass(FileId::NONE, 2, 0);
        assert_ne!(ahead.add(FileId::NONE, 2, 0, CHUNK_BYTES, 1), Some(place));
        ahead.done(place, false);
        ahead.done(place, false);
        assert_eq!(ahead.add(FileId::NONE, 2, 0, CHUNK_BYTES, 1), Some(place));
    }
}
