//! Pages in memory, of which the least recently used one leaves first.

use std::collections::{BTreeMap, HashMap};

/// A page: of which kind, and which.
pub type Page = (u8, usize);

struct Held {
    used: u64,
    bytes: f64,
    is_dirty: bool,
}

/// The memory, and what it reads and writes.
#[derive(Default)]
pub struct Lru {
    capacity_bytes: f64,
    bytes: f64,
    clock: u64,
    pages: HashMap<Page, Held>,
    by_use: BTreeMap<u64, Page>,
    pub reads: f64,
    pub read_bytes: f64,
    pub writes: f64,
    pub written_bytes: f64,
}

impl Lru {
    pub fn new(capacity_bytes: f64) -> Self {
        Self { capacity_bytes, ..Self::default() }
    }

    /// Uses a page; `is_whole` if all of it is written anew, so that it need not be read.
    pub fn touch(&mut self, page: Page, bytes: f64, change: bool, is_whole: bool) {
        self.clock += 1;
        let is_dirty = match self.pages.remove(&page) {
            Some(held) => {
                self.by_use.remove(&held.used);
                self.bytes -= held.bytes;
                held.is_dirty
            }
            None => {
                if !is_whole {
                    self.reads += 1.0;
                    self.read_bytes += bytes;
                }
                false
            }
        };
        self.by_use.insert(self.clock, page);
        self.pages.insert(page, Held { used: self.clock, bytes, is_dirty: is_dirty || change });
        self.bytes += bytes;
        while self.bytes > self.capacity_bytes {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            let held = self.pages.remove(&oldest).unwrap();
            self.bytes -= held.bytes;
            if held.is_dirty {
                self.write(held.bytes);
            }
        }
    }

    /// Writes all changed pages.
    pub fn checkpoint(&mut self) {
        let dirty: Vec<f64> = self
            .pages
            .values_mut()
            .filter_map(|held| std::mem::take(&mut held.is_dirty).then_some(held.bytes))
            .collect();
        dirty.into_iter().for_each(|bytes| self.write(bytes));
    }

    /// Forgets the counts.
    pub fn reset(&mut self) {
        (self.reads, self.read_bytes, self.writes, self.written_bytes) = (0.0, 0.0, 0.0, 0.0);
    }

    fn write(&mut self, bytes: f64) {
        self.writes += 1.0;
        self.written_bytes += bytes;
    }
}
