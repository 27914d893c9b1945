//! Writing `ssdconfig.xml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::drive::{
    DEVICE, DEVICE_TAG, FLASH, FLASH_TAG, HOST, HOST_TAG, PACKET_BYTES, PACKET_OVERHEAD_BYTES, ROOT,
};
use super::fields::Field;
use crate::config::{
    CollectPolicy, HostConfig, Interleave, MappingCache, MediumConfig, NandConfig, SimConfig,
};
use crate::error::Error;

/// PCIe lanes; only their bandwidth together matters.
const LANES: f64 = 4.0;

/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1e3;

/// MQSim's widest bus that is tried for a transfer rate.
const WIDEST_BYTES: u32 = 16;

/// A drive as MQSim's `ssdconfig.xml`, with every field that MQSim knows.
///
/// `remark` is asked for a remark on each field of the drive's description by its path, such as
/// `medium.nand.page_bytes`; it becomes a comment next to the elements that were made from that field.
///
/// # Errors
/// [`Error::Config`] for drives that MQSim cannot simulate: other media than flash, stripe sets, and drives
/// with a cap.
pub fn export_drive(config: &SimConfig, remark: &dyn Fn(&str) -> Option<String>) -> Result<String, Error> {
    let refuse = |field: &str, value: String, allowed: &str| {
        Err(Error::Config { field: field.to_owned(), value, allowed: allowed.to_owned() })
    };
    let MediumConfig::Nand(nand) = &config.medium else {
        return refuse("medium", "no flash".into(), "nand: MQSim simulates flash only");
    };
    if config.drives > 1 {
        return refuse("drives", config.drives.to_string(), "1: MQSim simulates one drive");
    }
    if config.host.cap.is_some() {
        return refuse("host.cap", "given".into(), "none: MQSim knows no caps");
    }
    let mut values = Values::default();
    values.host(&config.host);
    values.array(nand);
    values.blocks(nand, config.capacity_bytes);
    values.timing(nand);
    values.translation(nand);

    let mut text = String::from("<?xml version=\"1.0\" encoding=\"us-ascii\"?>\n");
    let _ = writeln!(text, "<!-- {} -->", plain(&config.name));
    let _ = writeln!(text, "<{ROOT}>\n\t<{HOST_TAG}>");
    values.write(&mut text, HOST, "\t\t", remark);
    let _ = writeln!(text, "\t</{HOST_TAG}>\n\t<{DEVICE_TAG}>");
    values.write(&mut text, DEVICE, "\t\t", remark);
    let _ = writeln!(text, "\t\t<{FLASH_TAG}>");
    values.write(&mut text, FLASH, "\t\t\t", remark);
    let _ = writeln!(text, "\t\t</{FLASH_TAG}>\n\t</{DEVICE_TAG}>\n</{ROOT}>");
    Ok(text)
}

/// Replaces characters that may not stand in a comment: the file says that it is ASCII, and two hyphens would
/// end the comment.
fn plain(text: &str) -> String {
    let ascii = |character: char| if (' '..='~').contains(&character) { character } else { '?' };
    let mut text: String = text.replace('µ', "u").chars().map(ascii).collect();
    while text.contains("--") {
        text = text.replace("--", "-");
    }
    text
}

/// A value and the path of the field that it comes from.
#[derive(Debug)]
struct Value {
    text: String,
    path: &'static str,
}

/// Values by MQSim's names.
#[derive(Debug, Default)]
struct Values(BTreeMap<&'static str, Value>);

impl Values {
    fn set(&mut self, name: &'static str, value: impl ToString, path: &'static str) {
        self.0.insert(name, Value { text: value.to_string(), path });
    }

    fn write(
        &self,
        text: &mut String,
        fields: &[Field],
        indent: &str,
        remark: &dyn Fn(&str) -> Option<String>,
    ) {
        for Field { name, default, .. } in fields {
            let (value, remark) = match self.0.get(name) {
                Some(value) => (value.text.as_str(), remark(value.path)),
                None => (*default, Some("MQSim's default".to_owned())),
            };
            let _ = write!(text, "{indent}<{name}>{value}</{name}>");
            if let Some(remark) = remark {
                let _ = write!(text, " <!-- {} -->", plain(&remark));
            }
            text.push('\n');
        }
    }

    fn host(&mut self, host: &HostConfig) {
        let packets = (PACKET_BYTES + PACKET_OVERHEAD_BYTES) as f64 / PACKET_BYTES as f64;
        let lane = host.link_bytes_per_s as f64 * packets / 1e9 / LANES;
        self.set("PCIe_Lane_Bandwidth", format!("{lane:.9}"), "host.link_bytes_per_s");
        self.set("PCIe_Lane_Count", LANES, "host.link_bytes_per_s");
        // Before it starts, MQSim would write and age the drive: on a large drive that takes very long.
        self.set("Enabled_Preconditioning", false, "state");
        self.set("HostInterface_Type", "NVME", "host.queue_depth");
        self.set("IO_Queue_Depth", u16::MAX, "host.queue_depth");
        self.set("Queue_Fetch_Size", host.queue_depth.min(u16::MAX.into()), "host.queue_depth");
    }

    fn array(&mut self, nand: &NandConfig) {
        self.set("Flash_Channel_Count", nand.channels, "medium.nand.channels");
        // A busy die blocks nothing else where dies work by themselves; in MQSim chips do.
        let (chips, dies) = match nand.interleave {
            Interleave::ChipBusy => (nand.chips_per_channel, nand.dies_per_chip),
            Interleave::Dies => (nand.chips_per_channel * nand.dies_per_chip, 1),
        };
        self.set("Chip_No_Per_Channel", chips, "medium.nand.chips_per_channel");
        self.set("Die_No_Per_Chip", dies, "medium.nand.dies_per_chip");
        let planes = if nand.multi_plane { nand.planes_per_die } else { 1 };
        self.set("Plane_No_Per_Die", planes, "medium.nand.planes_per_die");
        self.set("Page_No_Per_Block", nand.pages_per_block, "medium.nand.pages_per_block");
        self.set("Page_Capacity", nand.page_bytes, "medium.nand.page_bytes");
        let (width, rate) = bus(nand.channel_mega_transfers_per_s);
        self.set("Flash_Channel_Width", width, "medium.nand.channel_mega_transfers_per_s");
        self.set("Channel_Transfer_Rate", rate, "medium.nand.channel_mega_transfers_per_s");
    }

    fn blocks(&mut self, nand: &NandConfig, capacity_bytes: u64) {
        let over = nand.over_provisioning;
        self.set(
            "Overprovisioning_Ratio",
            format!("{:.12}", over / (1.0 + over)),
            "medium.nand.over_provisioning",
        );
        let planes = if nand.multi_plane { f64::from(nand.planes_per_die) } else { 1.0 };
        let dies =
            f64::from(nand.channels) * f64::from(nand.chips_per_channel) * f64::from(nand.dies_per_chip);
        let plane_bytes = capacity_bytes as f64 * (1.0 + over) / dies / planes;
        let blocks = plane_bytes / f64::from(nand.page_bytes) / f64::from(nand.pages_per_block);
        self.set("Block_No_Per_Plane", blocks.ceil(), "capacity_bytes");
        // MQSim rounds down to whole blocks.
        let share = |free: u32| format!("{:.9}", (f64::from(free) + 0.5) / blocks.ceil());
        let collect = &nand.collect;
        let start = "medium.nand.collect.start_below_free_blocks";
        self.set("GC_Exec_Threshold", share(collect.start_below_free_blocks), start);
        let stop = "medium.nand.collect.stop_writes_below_free_blocks";
        self.set("GC_Hard_Threshold", share(collect.stop_writes_below_free_blocks), stop);
        let policy = match collect.policy {
            CollectPolicy::Greedy | CollectPolicy::CostBenefit => "GREEDY",
            CollectPolicy::Fifo => "FIFO",
        };
        self.set("GC_Block_Selection_Policy", policy, "medium.nand.collect.policy");
        self.set("Static_Wearleveling_Enabled", collect.wear_gap > 0, "medium.nand.collect.wear_gap");
        self.set("Static_Wearleveling_Threshold", collect.wear_gap.max(1), "medium.nand.collect.wear_gap");
    }

    fn timing(&mut self, nand: &NandConfig) {
        let nanos = |us: f64| (us * NS_PER_US).round();
        let technology = ["SLC", "MLC", "TLC"].get(nand.read_us.len() - 1).unwrap_or(&"TLC");
        self.set("Flash_Technology", technology, "medium.nand.read_us");
        let read =
            [("Page_Read_Latency_LSB", 0.0), ("Page_Read_Latency_CSB", 0.5), ("Page_Read_Latency_MSB", 1.0)];
        for (name, place) in read {
            self.set(name, nanos(at(&nand.read_us, place)), "medium.nand.read_us");
        }
        let program = [
            ("Page_Program_Latency_LSB", 0.0),
            ("Page_Program_Latency_CSB", 0.5),
            ("Page_Program_Latency_MSB", 1.0),
        ];
        for (name, place) in program {
            self.set(name, nanos(at(&nand.program_us, place)), "medium.nand.program_us");
        }
        self.set("Block_Erase_Latency", nanos(nand.erase_us), "medium.nand.erase_us");
        let suspension = match (nand.suspend_program, nand.suspend_erase) {
            (false, false) => "NONE",
            (true, false) => "PROGRAM",
            (false, true) => "ERASE",
            (true, true) => "PROGRAM_ERASE",
        };
        self.set("CMD_Suspension_Support", suspension, "medium.nand.suspend_program");
        if suspension != "NONE" {
            self.set("Suspend_Program_Time", nanos(nand.suspend_us).max(1.0), "medium.nand.suspend_us");
            self.set("Suspend_Erase_Time", nanos(nand.suspend_us).max(1.0), "medium.nand.suspend_us");
        }
    }

    fn translation(&mut self, nand: &NandConfig) {
        let path = "medium.nand.mapping.cache";
        let (ideal, bytes) = match nand.mapping.cache {
            MappingCache::Whole => (true, None),
            MappingCache::EntriesBytes(bytes) | MappingCache::PagesBytes(bytes) => (false, Some(bytes)),
        };
        self.set("Ideal_Mapping_Table", ideal, path);
        if let Some(bytes) = bytes {
            self.set("CMT_Capacity", bytes, path);
        }
        self.set("Data_Cache_Capacity", nand.write_cache.bytes, "medium.nand.write_cache.bytes");
        self.set("Plane_Allocation_Scheme", "CWDP", "medium.nand.layout.chunk_bytes");
    }
}

/// The latency at `place`, 0 to 1, among those of the page types: MQSim knows three of them, there may be
/// four.
fn at(latencies_us: &[f64], place: f64) -> f64 {
    let last = latencies_us.len().saturating_sub(1) as f64;
    let value = |index: f64| latencies_us.get(index as usize).copied().unwrap_or(0.0);
    (value((last * place).floor()) + value((last * place).ceil())) / 2.0
}

/// Width in bytes and rate in MT/s of a bus that comes near to `wanted` bytes per microsecond: the cycles of
/// MQSim's are whole nanoseconds.
fn bus(wanted: f64) -> (u32, u32) {
    let mut best = (f64::INFINITY, 1, 1);
    for width in 1..=WIDEST_BYTES {
        let half_cycle_ns = (1000.0 * f64::from(width) / wanted).round().clamp(1.0, 1000.0);
        let miss = (f64::from(width) * 1000.0 / half_cycle_ns / wanted).ln().abs();
        // A wider bus must be worth it.
        if miss + 0.002 < best.0 {
            best = (miss, width, (1000.0 / half_cycle_ns) as u32);
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_comes_near_to_any_rate_in_whole_nanoseconds() {
        assert_eq!(bus(1000.0 / 3.0), (1, 333));
        assert_eq!(bus(1000.0), (1, 1000));
        for wanted in [5.0, 100.0, 333.0, 400.0, 666.0, 800.0, 1200.0, 1600.0, 2400.0] {
            let (width, rate) = bus(wanted);
            let got = f64::from(width) * 1000.0 / (1000.0 / f64::from(rate)).floor();
            assert!((got / wanted - 1.0).abs() < 0.05, "{wanted}: {width} x {rate} are {got}");
        }
    }

    #[test]
    fn four_page_types_become_three() {
        assert_eq!([0.0, 0.5, 1.0].map(|place| at(&[50.0, 60.0, 80.0, 90.0], place)), [50.0, 70.0, 90.0]);
        assert_eq!([0.0, 0.5, 1.0].map(|place| at(&[50.0], place)), [50.0, 50.0, 50.0]);
    }

    #[test]
    fn comments_end_where_they_should() {
        assert_eq!(plain("5 µs --> 6"), "5 us -> 6");
        assert!(!plain("a---b").contains("--"));
    }
}
