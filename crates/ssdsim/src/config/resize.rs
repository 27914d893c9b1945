//! The same drive with another capacity, so that effects that need terabytes on the real drive show with
//! gigabytes.

use super::{MappingCache, MediumConfig, NandConfig, SimConfig};

/// Blocks that a die of a shrunk drive should have: enough for collection to choose among.
const BLOCKS_PER_DIE: f64 = 48.0;

/// Pages of a shrunk block, at least.
const PAGES_MIN: u32 = 2;

/// Blocks of a die that hold no data: open blocks, reserved ones, and the loss by rounding.
const SPARE_BLOCKS: f64 = 10.0;

/// Rows that the write cache holds for each die, at least, if it did before.
const CACHE_ROWS_PER_DIE: u64 = 2;

impl SimConfig {
    /// The drive with as much capacity, each of its members if it is a set, rounded up to whole mapping
    /// units.
    ///
    /// A flash drive keeps its channels, chips and dies with their timing. If its blocks would become too
    /// few, they become smaller, and erasing them shorter in proportion; the write cache shrinks with the
    /// blocks, and the cache of the mapping with the capacity. More spare space compensates for the blocks
    /// that a die keeps free in addition to those of data. Disks and 3D XPoint change only their capacity.
    #[must_use]
    pub fn resized(mut self, capacity_bytes: u64) -> Self {
        const MULTIPLE: u64 = 1 << 20;
        let ratio = capacity_bytes as f64 / self.capacity_bytes as f64;
        if let MediumConfig::Nand(nand) = &mut self.medium {
            nand.resize(self.capacity_bytes, capacity_bytes, ratio);
        }
        self.capacity_bytes = capacity_bytes.next_multiple_of(MULTIPLE);
        self
    }
}

impl NandConfig {
    fn resize(&mut self, from_bytes: u64, to_bytes: u64, ratio: f64) {
        let dies = self.dies() * u64::from(self.parts_per_die());
        let row_bytes = u64::from(self.page_bytes) * u64::from(self.planes_per_row());
        let pages_before = self.pages_per_block;
        let blocks = |bytes: u64, pages: u32| {
            bytes as f64 * (1.0 + self.over_provisioning) / (row_bytes * dies * u64::from(pages)) as f64
        };
        let before = blocks(from_bytes, pages_before);
        let fitting = blocks(to_bytes, 1) / BLOCKS_PER_DIE.min(before);
        self.pages_per_block = (fitting as u32).clamp(PAGES_MIN.min(pages_before), pages_before);
        let after = blocks(to_bytes, self.pages_per_block);
        let share_of_one = blocks(to_bytes, self.pages_per_block) / (1.0 + self.over_provisioning);
        self.over_provisioning += SPARE_BLOCKS * (1.0 - after / before).max(0.0) / share_of_one;
        self.erase_us *= f64::from(self.pages_per_block) / f64::from(pages_before);
        // As many blocks fit into the cache as before: how many dies small writes reach at a time depends on
        // that.
        let block_ratio = f64::from(self.pages_per_block) / f64::from(pages_before);
        let cache = &mut self.write_cache.bytes;
        *cache =
            ((*cache as f64 * block_ratio) as u64).max(CACHE_ROWS_PER_DIE * dies * row_bytes).min(*cache);
        let shrunk = |bytes: u64| (bytes as f64 * ratio) as u64;
        match &mut self.mapping.cache {
            MappingCache::Whole => {}
            MappingCache::EntriesBytes(bytes) => {
                *bytes = shrunk(*bytes).max(u64::from(self.mapping.entry_bytes));
            }
            MappingCache::PagesBytes(bytes) => *bytes = shrunk(*bytes).max(u64::from(self.page_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::MediumConfig;
    use crate::preset::{find, names};

    #[test]
    fn every_flash_drive_can_be_shrunk_and_grown() {
        for name in names() {
            let drive = find(name).unwrap();
            let is_flash = matches!(drive.medium, MediumConfig::Nand(_));
            for bytes in [32_u64 << 20, 256 << 20, 3 << 30, 2 << 40].into_iter().filter(|_| is_flash) {
                let resized = drive.clone().resized(bytes);
                resized.check().unwrap_or_else(|error| panic!("{name} with {bytes} bytes: {error}"));
                assert_eq!(resized.capacity_bytes, bytes, "{name}");
            }
        }
    }

    #[test]
    fn a_drive_of_the_same_size_is_the_same_drive() {
        let drive = find("990pro").unwrap();
        let same = drive.clone().resized(drive.capacity_bytes);
        assert_eq!(same.medium, drive.medium);
    }
}
