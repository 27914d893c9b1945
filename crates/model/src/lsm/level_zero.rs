//! How many files level 0 should have, and how large (3D XPoint paper §IV-B, §V-B).

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::false_positive_rate;
use crate::{Access, IoModel, Workload};

/// What files of level 0 cost readers and memtables of their size writers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelZeroCosts {
    /// Size at which the costs below hold, in bytes.
    pub reference_bytes: f64,
    /// Seconds that a query spends in one file of level 0.
    pub lookup_seconds: f64,
    /// Seconds more with each doubling of the file: the search is logarithmic, O(k·log N) over k files.
    pub lookup_seconds_per_doubling: f64,
    /// Seconds of an insert into a memtable of that size.
    pub insert_seconds: f64,
    /// Seconds more with each doubling of the memtable, whose skip list takes O(log N).
    pub insert_seconds_per_doubling: f64,
}

impl LevelZeroCosts {
    /// The paper's figures: 8.5 µs for a look-up in 32 MB and 9.7 µs in 256 MB on the 3D XPoint drive;
    /// inserts of 25 µs into 64 MB and 31 µs into 256 MB (§IV-B, 90th percentile on the SATA drive, Figure
    /// 12).
    pub const PAPER: Self = Self {
        reference_bytes: 64e6,
        lookup_seconds: 8.9e-6,
        lookup_seconds_per_doubling: 0.4e-6,
        insert_seconds: 25e-6,
        insert_seconds_per_doubling: 3e-6,
    };

    /// The same with the block reads of look-ups, of which filters let only a part pass. `clients` read at
    /// the same time; a cost of the drive is device time, which all of them share. `None` if the model knows
    /// no reads.
    pub fn with_block_reads(
        self,
        io: &dyn IoModel,
        block_bytes: f64,
        filter_bits_per_key: f64,
        clients: f64,
    ) -> Option<Self> {
        let read = io.seconds_per_request(&Workload::random(Access::Read, block_bytes, clients))?;
        let reads = false_positive_rate(filter_bits_per_key);
        Some(Self { lookup_seconds: self.lookup_seconds + reads * clients * read, ..self })
    }

    /// Seconds of the mean operation that depend on level 0, while it has `files` of `file_bytes` each.
    pub fn seconds(&self, read_share: f64, files: f64, file_bytes: f64) -> f64 {
        let doublings = (file_bytes / self.reference_bytes).log2();
        let lookup = (self.lookup_seconds + self.lookup_seconds_per_doubling * doublings).max(0.0);
        let insert = (self.insert_seconds + self.insert_seconds_per_doubling * doublings).max(0.0);
        read_share * files * lookup + (1.0 - read_share) * insert
    }

    /// The best number of files among `files`, if level 0 holds `volume_bytes` in all: few large ones for
    /// readers, many small ones for writers (§V-B assumes the volume constant, too). Memory for memtables as
    /// large as a file bounds the range from below, the stop threshold from above. `None` if the range is
    /// empty.
    pub fn best(
        &self,
        read_share: f64,
        volume_bytes: f64,
        files: RangeInclusive<u32>,
    ) -> Option<LevelZeroChoice> {
        let choice = |files: u32| {
            let file_bytes = volume_bytes / f64::from(files);
            let seconds = self.seconds(read_share, f64::from(files), file_bytes);
            LevelZeroChoice { files, file_bytes, seconds }
        };
        let choices = files.filter(|files| *files > 0).map(choice);
        choices.min_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }
}

/// A number of files of level 0 and their size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelZeroChoice {
    /// Files.
    pub files: u32,
    /// Bytes of each, and of a memtable.
    pub file_bytes: f64,
    /// Seconds of the mean operation that depend on the choice.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Affine, AffineCosts};

    #[test]
    fn the_papers_look_ups_and_inserts_are_met() {
        let costs = LevelZeroCosts::PAPER;
        for (bytes, seconds) in [(32e6, 8.5e-6), (256e6, 9.7e-6)] {
            assert!((costs.seconds(1.0, 1.0, bytes) / seconds - 1.0).abs() < 1e-9);
        }
        for (bytes, seconds) in [(64e6, 25e-6), (256e6, 31e-6)] {
            assert!((costs.seconds(0.0, 1.0, bytes) / seconds - 1.0).abs() < 1e-9);
        }
        // §IV-B: reads gain 33 µs by two files instead of eight; these look-ups explain more than that.
        let gain = costs.seconds(1.0, 8.0, 64e6) - costs.seconds(1.0, 2.0, 64e6);
        assert!(gain > 33e-6 && gain < 66e-6, "{gain}");
    }

    #[test]
    fn readers_want_few_large_files_and_writers_many_small_ones() {
        let best = |read_share| LevelZeroCosts::PAPER.best(read_share, 1.5e9, 1..=24).unwrap();
        let mut last = u32::MAX;
        for percent in [0, 2, 5, 10, 25, 50, 75, 90, 100] {
            let choice = best(f64::from(percent) / 100.0);
            println!("{percent} % reads: {} files of {:.0} MB", choice.files, choice.file_bytes / 1e6);
            assert!(choice.files <= last);
            assert!((f64::from(choice.files) * choice.file_bytes / 1.5e9 - 1.0).abs() < 1e-12);
            last = choice.files;
        }
        assert_eq!((best(0.0).files, best(1.0).files), (24, 1));
        assert_eq!(LevelZeroCosts::PAPER.best(1.0, 1.5e9, 6..=24).unwrap().files, 6);
        assert_eq!(LevelZeroCosts::PAPER.best(1.0, 1.5e9, 0..=0), None);
        // Between the extremes, the gain of a file less for readers is its cost for writers.
        let few = best(0.05).files;
        assert!(few > 1 && few < 24, "{few}");
    }

    #[test]
    fn slow_reads_make_files_fewer_unless_filters_spare_them() {
        let costs = AffineCosts::from_alpha(1e-4, 0.05, 4096.0);
        let drive = Affine::from_costs(4096.0, costs, costs);
        let files = |bits| {
            let costs = LevelZeroCosts::PAPER.with_block_reads(&drive, 4096.0, bits, 1.0).unwrap();
            costs.best(0.05, 1.5e9, 1..=24).unwrap().files
        };
        let in_memory = LevelZeroCosts::PAPER.best(0.05, 1.5e9, 1..=24).unwrap().files;
        assert!(files(0.0) < files(10.0) && files(10.0) <= in_memory, "{} {}", files(0.0), files(10.0));
    }
}
