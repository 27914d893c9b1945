//! T of an LSM-tree for a drive (MQSSD paper §5.1.2).

use flashgrain_cost::lsm::TableSize;

use crate::lsm_usual::{PARTITION_BYTES, REQUESTS_PER_PART, TABLES_PER_PART};
use crate::{LsmDesign, LsmLayout, LsmSurroundings};

impl LsmDesign {
    /// T: bytes of a table that let a merge of level 0 keep the drive busy by at most `parts` parts; at most
    /// those of a memtable, and exactly these if nothing is known of the drive. `in_flight` reads of 4 KiB
    /// saturate it.
    pub fn table_bytes(self, room: &LsmSurroundings, in_flight: u32, parts: u32) -> u64 {
        let batch_bytes = room.memtable_bytes.saturating_mul(self.level_zero_runs.into());
        let merged_bytes = match self.layout {
            // Level 1 has the same bytes.
            LsmLayout::Leveled => batch_bytes.saturating_mul(2),
            LsmLayout::Tiered | LsmLayout::LazyLeveled => batch_bytes,
            // Everything is merged.
            LsmLayout::SingleLevel => return room.memtable_bytes,
        };
        if room.half_bandwidth_bytes <= 0.0 {
            return room.memtable_bytes;
        }
        let size = TableSize {
            half_bandwidth_bytes: room.half_bandwidth_bytes,
            small_requests: in_flight.into(),
            request_bytes: PARTITION_BYTES as f64,
            requests_per_part: REQUESTS_PER_PART.into(),
            tables_per_part: TABLES_PER_PART as f64,
            parts_max: parts.into(),
        };
        (size.best(merged_bytes as f64) as u64).clamp(1, room.memtable_bytes.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_small_where_a_busy_drive_needs_many_parts() {
        let bytes = |half_bandwidth_bytes, in_flight, parts| {
            let room = LsmSurroundings { half_bandwidth_bytes, memtable_bytes: 32 << 20 };
            LsmDesign::USUAL.table_bytes(&room, in_flight, parts) >> 20
        };
        assert_eq!(bytes(0.0, 128, 16), 32, "nothing is known");
        assert_eq!(bytes(16_384.0, 128, 16), 31, "four parts are enough");
        assert_eq!(bytes(65_536.0, 128, 16), 14, "its setups take longer");
        assert_eq!(bytes(65_536.0, 512, 16), 8, "the most parts");
        assert_eq!(bytes(65_536.0, 512, 1), 32, "no parts side by side");
        assert_eq!(bytes(65_536.0, 1, 16), 32, "a drive that does one thing at a time");
        let single = LsmDesign { layout: LsmLayout::SingleLevel, ..LsmDesign::USUAL };
        let room = LsmSurroundings { half_bandwidth_bytes: 65_536.0, memtable_bytes: 32 << 20 };
        assert_eq!(single.table_bytes(&room, 512, 16), 32 << 20);
    }
}
