//! How hosts wrote before the start, which decides where collection stands.

use super::collect::PROGRAMS_AHEAD;
use super::geometry::Geometry;
use crate::config::{NandConfig, SimConfig};

/// See the module. Hosts wrote single units at random, and never paused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum History {
    /// To the dies with a free block, each of which gives one.
    FreeDies {
        /// Dies that may program blocks of hosts at the same time: all, or those that small writes go to and
        /// those whose blocks are full and still in the write cache.
        programming: f64,
        /// Rows that the write cache holds; `None`: those of whole blocks.
        cached_rows: Option<f64>,
        /// Units per second that the command processor and the link let in.
        units_per_s: f64,
        times: RowTimes,
    },
    /// To the die of each unit; each die may have `queued_rows` waiting to be programmed.
    FixedDies { queued_rows: f64 },
}

/// Seconds that a die takes for the work on a row, and its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowTimes {
    /// Programming, the transfer included.
    pub program_s: f64,
    /// Sensing the moved units, without the transfer.
    pub sense_s: f64,
    /// Erasing a block, a row's share.
    pub erase_s: f64,
    /// The channel's time for a full row.
    pub transfer_s: f64,
    pub dies_per_channel: f64,
}

/// Where the time of a die goes between two blocks that hosts open there, as shares of that time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cycle {
    /// Programming the block of the hosts, before collection goes on.
    pub programming: f64,
    /// Programming and collecting; the die is idle for the rest.
    pub busy: f64,
    /// Free blocks when hosts have opened one.
    pub free: u32,
    /// Rows of the block of the hosts that wait in the write cache, at most.
    pub cached_rows: u32,
}

impl History {
    pub fn new(geometry: &Geometry, config: &NandConfig, drive: &SimConfig) -> Self {
        let row_bytes = f64::from(geometry.row_bytes);
        let cache_bytes = config.write_cache.bytes as f64;
        let cached_rows = cache_bytes / row_bytes;
        if geometry.by_address {
            return Self::FixedDies { queued_rows: cached_rows / f64::from(geometry.dies) };
        }
        let is_small = u64::from(geometry.unit_bytes) < config.layout.desirable_write_bytes;
        let host = &drive.host;
        let command_s = host.write_command_ns.unwrap_or(host.command_ns) as f64 / 1e9;
        let link_s = f64::from(geometry.unit_bytes) / host.link_bytes_per_s as f64;
        let mean_s = |us: &[f64]| us.iter().sum::<f64>() / us.len() as f64 / 1e6;
        let transfer_s =
            row_bytes / (config.channel_mega_transfers_per_s * 1e6) + config.channel_command_ns as f64 / 1e9;
        let block_bytes = row_bytes * f64::from(geometry.rows_per_block);
        let small_dies = f64::from(config.layout.small_write_dies);
        Self::FreeDies {
            // On average, half of a block is programmed, and its other half is in the cache.
            programming: if is_small {
                small_dies + 2.0 * cache_bytes / block_bytes
            } else {
                f64::from(geometry.dies)
            },
            cached_rows: (!is_small).then_some(cached_rows),
            units_per_s: 1.0 / command_s.max(link_s),
            times: RowTimes {
                program_s: mean_s(&config.program_us) + transfer_s,
                sense_s: mean_s(&config.read_us),
                erase_s: config.erase_us / 1e6 / f64::from(geometry.rows_per_block),
                transfer_s,
                dies_per_channel: f64::from(geometry.dies) / f64::from(config.channels),
            },
        }
    }

    /// The cycle of a die whose victims have the share `kept` of their units still valid; `None` if
    /// collection keeps up with hosts that write to all dies.
    pub fn cycle(&self, geometry: &Geometry, kept: f64) -> Option<Cycle> {
        let behind = geometry.stop_below - 1;
        match *self {
            Self::FixedDies { queued_rows } => {
                // A die programs in the order of arrival, and collection has a few rows waiting: its backlog
                // grows as far as it may, unless it has little to move.
                let programs_ahead = f64::from(PROGRAMS_AHEAD);
                let falls_behind = kept > programs_ahead / (programs_ahead + queued_rows);
                let at_all_times = Cycle { programming: 0.0, busy: 1.0, free: behind, cached_rows: 0 };
                falls_behind.then_some(at_all_times)
            }
            Self::FreeDies { programming, cached_rows, units_per_s, times } => {
                let victims = 1.0 / (1.0 - kept);
                let moving_s = times.sense_s + kept * (times.transfer_s + times.program_s) + times.erase_s;
                let busy_s = times.program_s + victims * moving_s;
                let channel_s = times.dies_per_channel * times.transfer_s * (1.0 + 2.0 * victims * kept);
                let (dies, units) = (f64::from(geometry.dies), f64::from(geometry.units_per_row));
                // Seconds for a row of hosts' on every die: as collection allows, as hosts write.
                let collected_s = busy_s.max(channel_s);
                let written_s = (dies * times.program_s / programming).max(dies * units / units_per_s);
                let falls_behind = collected_s >= written_s;
                let cycle_s = collected_s.max(written_s);
                let programming = times.program_s / cycle_s;
                let on_each = cached_rows.map_or(f64::INFINITY, |rows| rows / (dies * programming));
                Some(Cycle {
                    programming,
                    cached_rows: (on_each as u32).min(geometry.rows_per_block),
                    busy: if falls_behind { 1.0 } else { collected_s / cycle_s },
                    free: if falls_behind { behind } else { geometry.collect_below - 1 },
                })
            }
        }
    }
}
