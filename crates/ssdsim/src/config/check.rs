//! Checks that a configuration makes a drive.
//!
//! The ranges are those in which the simulation is meant to work: nothing inside of them overflows, divides
//! by zero or waits for ever.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{
    CapConfig, CollectConfig, DiskConfig, HostConfig, LayoutConfig, MappingCache, MediumConfig, NandConfig,
    PlacementRule, SimConfig, StartState, XpointConfig,
};
use crate::error::Error;

/// No simulated command takes longer.
const COMMAND_NS_MAX: u64 = 10_000_000_000;
const COMMAND_US_MAX: f64 = 1e7;

/// Rates, bytes per second.
const RATES: RangeInclusive<u64> = 100_000..=10_000_000_000_000;

/// Rates, requests per second.
const REQUEST_RATES: RangeInclusive<u64> = 1..=100_000_000;

/// Credits of a cap, requests or bytes.
const BURST_MAX: u64 = 1 << 50;

/// Largest drive: 1 PiB.
const SIZE_BYTES_MAX: u64 = 1 << 50;

/// Most dies of a drive.
const DIES_MAX: u64 = 65_536;

impl SimConfig {
    /// Refuses a configuration that makes no drive.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first wrong field, its value and the allowed values.
    pub fn check(&self) -> Result<(), Error> {
        let at = At("");
        at.require(!self.name.trim().is_empty(), "name", format!("{:?}", self.name), "any text but none")?;
        at.power_of_two("sector_bytes", self.sector_bytes.into(), 512..=4096)?;
        let sector = u64::from(self.sector_bytes);
        at.within("drives", self.drives, 1..=1024)?;
        at.within("capacity_bytes", self.capacity_bytes, 1 << 20..=SIZE_BYTES_MAX)?;
        at.multiple("capacity_bytes", self.capacity_bytes, sector, "sector_bytes")?;
        at.within("stripe_unit_bytes", self.stripe_unit_bytes, sector..=self.capacity_bytes)?;
        at.multiple("stripe_unit_bytes", self.stripe_unit_bytes, sector, "sector_bytes")?;
        self.host.check()?;
        match &self.medium {
            MediumConfig::Nand(nand) => nand.check(self)?,
            MediumConfig::Xpoint(xpoint) => xpoint.check(self)?,
            MediumConfig::Disk(disk) => disk.check(self)?,
        }
        if let StartState::SteadyRandom { working_set } = self.state {
            let sound = working_set > 0.0 && working_set <= 1.0;
            At("state.steady-random").require(sound, "working_set", working_set, "more than 0, up to 1")?;
        }
        Ok(())
    }
}

impl HostConfig {
    fn check(&self) -> Result<(), Error> {
        let at = At("host");
        at.within("queue_depth", self.queue_depth, 1..=1 << 20)?;
        at.within("command_ns", self.command_ns, 0..=COMMAND_NS_MAX)?;
        at.within("write_command_ns", self.write_command_ns.unwrap_or(0), 0..=COMMAND_NS_MAX)?;
        at.within("partial_command_ns", self.partial_command_ns, 0..=COMMAND_NS_MAX)?;
        at.within("fetch_ns", self.fetch_ns, 0..=COMMAND_NS_MAX)?;
        at.within("completion_ns", self.completion_ns, 0..=COMMAND_NS_MAX)?;
        at.within("link_bytes_per_s", self.link_bytes_per_s, RATES)?;
        at.within("command_bytes_per_s", self.command_bytes_per_s.unwrap_or(self.link_bytes_per_s), RATES)?;
        self.cap.as_ref().map_or(Ok(()), CapConfig::check)
    }
}

impl CapConfig {
    fn check(&self) -> Result<(), Error> {
        let at = At("host.cap");
        let limits_something = self.requests_per_s.is_some() || self.bytes_per_s.is_some();
        let allowed = "one with requests_per_s, bytes_per_s or both";
        At("host").require(limits_something, "cap", "without a rate", allowed)?;
        if let Some(rate) = self.requests_per_s {
            at.within("requests_per_s", rate, REQUEST_RATES)?;
        }
        if let Some(rate) = self.bytes_per_s {
            at.within("bytes_per_s", rate, RATES)?;
        }
        let nothing = |name: &str| format!("0, as no {name} is given");
        let sound = self.requests_per_s.is_some() || self.burst_requests == 0;
        at.require(sound, "burst_requests", self.burst_requests, nothing("requests_per_s"))?;
        let sound = self.bytes_per_s.is_some() || self.burst_bytes == 0;
        at.require(sound, "burst_bytes", self.burst_bytes, nothing("bytes_per_s"))?;
        at.within("burst_requests", self.burst_requests, 0..=BURST_MAX)?;
        at.within("burst_bytes", self.burst_bytes, 0..=BURST_MAX)
    }
}

impl NandConfig {
    fn check(&self, drive: &SimConfig) -> Result<(), Error> {
        self.check_array(drive)?;
        self.check_timing()?;
        self.check_mapping(drive)?;
        self.layout.check(self, drive)?;
        self.check_spare(drive)
    }

    fn check_array(&self, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.nand");
        at.within("channels", self.channels, 1..=1024)?;
        at.within("chips_per_channel", self.chips_per_channel, 1..=1024)?;
        at.within("dies_per_chip", self.dies_per_chip, 1..=1024)?;
        let few = format!(
            "a number with at most {DIES_MAX} dies in the drive; {} channels x {} chips have {}",
            self.channels,
            self.chips_per_channel,
            u64::from(self.channels) * u64::from(self.chips_per_channel)
        );
        at.require(self.dies() <= DIES_MAX, "dies_per_chip", self.dies_per_chip, few)?;
        at.within("planes_per_die", self.planes_per_die, 1..=64)?;
        let parts = self.dies() * u64::from(self.parts_per_die());
        let few = format!(
            "a number with at most {DIES_MAX} planes in the drive, each of which is written by itself"
        );
        at.require(parts <= DIES_MAX, "planes_per_die", self.planes_per_die, few)?;
        at.within("pages_per_block", self.pages_per_block, 1..=65_536)?;
        at.power_of_two("page_bytes", self.page_bytes.into(), u64::from(drive.sector_bytes)..=1 << 20)
    }

    fn check_timing(&self) -> Result<(), Error> {
        let at = At("medium.nand");
        let types = self.read_us.len();
        let one_each = "one latency for each bit of a cell: 1 (SLC) to 4 (QLC) entries";
        at.require((1..=4).contains(&types), "read_us", format!("{:?}", self.read_us), one_each)?;
        let as_many = format!("as many entries as read_us has, {types}");
        at.require(self.program_us.len() == types, "program_us", format!("{:?}", self.program_us), as_many)?;
        for us in &self.read_us {
            at.within("read_us", *us, 0.001..=COMMAND_US_MAX)?;
        }
        for us in &self.program_us {
            at.within("program_us", *us, 0.001..=COMMAND_US_MAX)?;
        }
        at.within("erase_us", self.erase_us, 0.001..=COMMAND_US_MAX)?;
        at.within("jitter", self.jitter, 0.0..=1.0)?;
        at.within("channel_mega_transfers_per_s", self.channel_mega_transfers_per_s, 1.0..=1e6)?;
        at.within("channel_command_ns", self.channel_command_ns, 0..=COMMAND_NS_MAX)?;
        at.within("suspend_us", self.suspend_us, 0.0..=COMMAND_US_MAX)?;
        at.within("misaligned_read_us", self.misaligned_read_us, 0.0..=COMMAND_US_MAX)
    }

    fn check_mapping(&self, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.nand.mapping");
        let unit = u64::from(self.mapping.unit_bytes);
        at.power_of_two("unit_bytes", unit, u64::from(drive.sector_bytes)..=u64::from(self.page_bytes))?;
        At("").multiple("capacity_bytes", drive.capacity_bytes, unit, "medium.nand.mapping.unit_bytes")?;
        at.within("entry_bytes", self.mapping.entry_bytes, 1..=64)?;
        at.within("lookup_ns", self.mapping.lookup_ns, 0..=COMMAND_NS_MAX)?;
        let capacity = drive.capacity_bytes;
        match self.mapping.cache {
            MappingCache::Whole => {}
            MappingCache::EntriesBytes(bytes) => {
                at.within("cache.entries-bytes", bytes, u64::from(self.mapping.entry_bytes)..=capacity)?;
            }
            MappingCache::PagesBytes(bytes) => {
                at.within("cache.pages-bytes", bytes, u64::from(self.page_bytes)..=capacity)?;
            }
        }
        at_write_cache().within("bytes", self.write_cache.bytes, 0..=capacity)?;
        let row = u64::from(self.page_bytes) * u64::from(self.planes_per_row());
        let holds_a_row = self.write_cache.bytes == 0 || self.write_cache.bytes >= row;
        let allowed = format!("0, or at least {row}: the bytes that one program writes");
        at_write_cache().require(holds_a_row, "bytes", self.write_cache.bytes, allowed)
    }

    /// Without free blocks in every die nothing could be collected.
    fn check_spare(&self, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.nand.collect");
        let CollectConfig { start_below_free_blocks: start, stop_writes_below_free_blocks: stop, .. } =
            self.collect;
        at.within("stop_writes_below_free_blocks", stop, 1..=65_536)?;
        at.within("start_below_free_blocks", start, stop..=65_536)?;
        At("medium.nand").within("over_provisioning", self.over_provisioning, 0.0..=10.0)?;
        crate::nand::check_room(self, drive)
    }
}

fn at_write_cache() -> At {
    At("medium.nand.write_cache")
}

impl LayoutConfig {
    fn check(&self, nand: &NandConfig, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.nand.layout");
        let unit = u64::from(nand.mapping.unit_bytes);
        at.within("stripe_bytes", self.stripe_bytes, unit..=drive.capacity_bytes)?;
        at.multiple("stripe_bytes", self.stripe_bytes, unit, "medium.nand.mapping.unit_bytes")?;
        at.within("chunk_bytes", self.chunk_bytes, unit..=self.stripe_bytes)?;
        at.multiple("chunk_bytes", self.chunk_bytes, unit, "medium.nand.mapping.unit_bytes")?;
        at.multiple("stripe_bytes", self.stripe_bytes, self.chunk_bytes, "medium.nand.layout.chunk_bytes")?;
        let desirable = self.desirable_write_bytes;
        at.within("desirable_write_bytes", desirable, u64::from(drive.sector_bytes)..=self.stripe_bytes)?;
        // Partial stripes of whole chunks are laid out like whole stripes: the two could not be told apart.
        let told_apart = desirable == self.stripe_bytes || self.chunk_bytes > desirable;
        let allowed =
            format!("stripe_bytes ({}), or less than chunk_bytes ({})", self.stripe_bytes, self.chunk_bytes);
        at.require(told_apart, "desirable_write_bytes", desirable, allowed)?;
        at.within("small_write_dies", u64::from(self.small_write_dies), 1..=nand.dies())?;
        let page = u64::from(nand.page_bytes);
        let whole = self.placement == PlacementRule::InTurn || unit == page;
        let allowed =
            format!("\"in-turn\", unless medium.nand.mapping.unit_bytes ({unit}) is page_bytes ({page})");
        at.require(whole, "placement", "\"by-address\"", allowed)
    }
}

impl XpointConfig {
    fn check(&self, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.3d-xpoint");
        at.within("channels", self.channels, 1..=1024)?;
        at.within("banks_per_channel", self.banks_per_channel, 1..=1024)?;
        at.power_of_two("chunk_bytes", self.chunk_bytes.into(), u64::from(drive.sector_bytes)..=1 << 20)?;
        let chunk = u64::from(self.chunk_bytes);
        At("").multiple("capacity_bytes", drive.capacity_bytes, chunk, "medium.3d-xpoint.chunk_bytes")?;
        at.within("read_us", self.read_us, 0.001..=COMMAND_US_MAX)?;
        at.within("write_us", self.write_us, 0.001..=COMMAND_US_MAX)?;
        at.within("jitter", self.jitter, 0.0..=1.0)?;
        at.within("channel_bytes_per_s", self.channel_bytes_per_s, RATES)?;
        at.within("misaligned_read_us", self.misaligned_read_us, 0.0..=COMMAND_US_MAX)
    }
}

impl DiskConfig {
    fn check(&self, drive: &SimConfig) -> Result<(), Error> {
        let at = At("medium.disk");
        let longest_ms = COMMAND_US_MAX / 1e3;
        at.within("rotations_per_minute", self.rotations_per_minute, 100.0..=100_000.0)?;
        at.within("cylinders", self.cylinders, 2..=100_000_000)?;
        at.within("track_seek_ms", self.track_seek_ms, 0.001..=longest_ms)?;
        at.within("average_seek_ms", self.average_seek_ms, self.track_seek_ms..=longest_ms)?;
        at.within("full_seek_ms", self.full_seek_ms, self.average_seek_ms..=longest_ms)?;
        at.within("outer_bytes_per_s", self.outer_bytes_per_s, RATES)?;
        at.within("inner_bytes_per_s", self.inner_bytes_per_s, *RATES.start()..=self.outer_bytes_per_s)?;
        at.within("zones", self.zones, 1..=self.cylinders)?;
        at.within("reorder_depth", self.reorder_depth, 1..=65_536)?;
        at.within("read_ahead_bytes", self.read_ahead_bytes, 0..=drive.capacity_bytes)?;
        at.within("read_ahead_bytes", self.read_ahead_bytes, 0..=drive.capacity_bytes)?;
        at.within("write_cache_bytes", self.write_cache_bytes, 0..=drive.capacity_bytes)
    }
}

/// A table of the description, by its path.
#[derive(Clone, Copy)]
struct At(&'static str);

impl At {
    fn require(
        self,
        sound: bool,
        field: &str,
        value: impl Display,
        allowed: impl Into<String>,
    ) -> Result<(), Error> {
        if sound {
            return Ok(());
        }
        let field = if self.0.is_empty() { field.to_owned() } else { format!("{}.{field}", self.0) };
        Err(Error::Config { field, value: value.to_string(), allowed: allowed.into() })
    }

    /// Not a number is never within.
    fn within<T: PartialOrd + Display>(
        self,
        field: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Error> {
        let allowed = format!("{} to {}", range.start(), range.end());
        self.require(range.contains(&value), field, value, allowed)
    }

    fn power_of_two(self, field: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), Error> {
        let allowed = format!("a power of two from {} to {}", range.start(), range.end());
        self.require(range.contains(&value) && value.is_power_of_two(), field, value, allowed)
    }

    fn multiple(self, field: &str, value: u64, of: u64, name: &str) -> Result<(), Error> {
        self.require(value.is_multiple_of(of), field, value, format!("a multiple of {name} ({of})"))
    }
}

#[cfg(test)]
mod tests;
