//! The resources of a tree.

use flashgrain_device::bytes_text;
use flashgrain_settings::lsm_usual::{MEMTABLE_BYTES_MAX, MEMTABLE_DIVISOR};

/// A memtable has at most this part of a small device: a merge of level 0 needs room for its output in
/// addition to its input, several memtables.
const DEVICE_DIVISOR: u64 = 128;

/// The limits for the options of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub cache_bytes: u64,
    pub log_bytes: u64,
    pub segment_bytes: u64,
    /// Bytes of a write unit: no page is larger.
    pub unit_bytes: u64,
    /// The most that the store's segments may ever have.
    pub device_bytes: u64,
    /// The thing that has this size: a device, a file system, or the store as it is read.
    pub device_name: &'static str,
    /// Requests that saturate the drive.
    pub in_flight: u32,
    /// Bytes that the busy drive transfers in the time of a setup of its reads; 0: no profile says it.
    pub half_bandwidth_bytes: u32,
}

impl Room {
    /// No limits. The resources of an opening may differ from those at the time when a tree was made.
    pub const UNBOUNDED: Self = Self {
        cache_bytes: u64::MAX,
        log_bytes: u64::MAX,
        segment_bytes: 1,
        unit_bytes: u64::MAX,
        device_bytes: u64::MAX,
        device_name: "a device",
        in_flight: 1,
        half_bandwidth_bytes: 0,
    };

    /// Bytes of a memtable whose size is not given, and the limit that determines them.
    pub fn usual_memtable(self) -> (u64, String) {
        let (of_cache, of_device) = (self.cache_bytes / MEMTABLE_DIVISOR, self.device_bytes / DEVICE_DIVISOR);
        let (cache, device) = (bytes_text(self.cache_bytes), bytes_text(self.device_bytes));
        let (bytes, because) = match of_cache <= of_device {
            true => (of_cache, format!("an eighth of the cache of {cache}")),
            false => (of_device, format!("a 128th of {} of {device}", self.device_name)),
        };
        match bytes < MEMTABLE_BYTES_MAX {
            true => (bytes, because),
            false => (MEMTABLE_BYTES_MAX, "the most, whatever the cache has".to_owned()),
        }
    }

    /// The reason for a memtable of `bytes`, if `given` bytes were asked for, or none. The memtables of some
    /// trees have the size of whole segments.
    pub fn memtable_reason(self, given: Option<u64>, in_segments: bool, bytes: u64) -> String {
        let (usual, because) = self.usual_memtable();
        match given {
            Some(given) if given == bytes => "set by hand".to_owned(),
            Some(given) if given > bytes => {
                let (cache, given) = (bytes_text(self.cache_bytes), bytes_text(given));
                format!("the most with a cache of {cache}, instead of {given} that were set by hand")
            }
            Some(given) => {
                format!("the least that works, instead of {} that were set by hand", bytes_text(given))
            }
            None if usual == bytes => because,
            None if in_segments && self.in_segments(usual) == Some(bytes) => {
                let (usual, segment) = (bytes_text(usual), bytes_text(self.segment_bytes));
                format!("in whole segments of {segment}: {because} is {usual}")
            }
            None => format!("the least that works: {because} is {}", bytes_text(usual)),
        }
    }

    /// `bytes`, rounded up to whole segments.
    fn in_segments(self, bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(self.segment_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memtable_has_the_bound_that_binds_as_its_reason() {
        let room =
            Room { cache_bytes: 64 << 20, device_bytes: 1 << 40, segment_bytes: 4 << 20, ..Room::UNBOUNDED };
        let small = Room { device_bytes: 164 << 20, ..room };
        let large = Room { cache_bytes: 1 << 30, ..room };
        let (mib, of_small) = (1 << 20, "a 128th of a device of 164 MiB");
        let reasons = [
            (room, None, 8 * mib, "an eighth of the cache of 64 MiB".to_owned()),
            (small, None, small.device_bytes / 128, of_small.to_owned()),
            (small, None, 4 * mib, format!("in whole segments of 4 MiB: {of_small} is 1.3 MiB")),
            (small, None, 3 * mib, format!("the least that works: {of_small} is 1.3 MiB")),
            (large, None, 64 * mib, "the most, whatever the cache has".to_owned()),
            (room, Some(2 * mib), 2 * mib, "set by hand".to_owned()),
            (
                room,
                Some(64 * mib),
                16 * mib,
                "the most with a cache of 64 MiB, instead of 64 MiB that were set by hand".to_owned(),
            ),
            (room, Some(1), mib, "the least that works, instead of 1 B that were set by hand".to_owned()),
        ];
        for (room, given, bytes, expected) in reasons {
            assert_eq!(room.memtable_reason(given, true, bytes), expected);
        }
        assert!(small.memtable_reason(None, false, 4 * mib).starts_with("the least that works: "));
    }
}
