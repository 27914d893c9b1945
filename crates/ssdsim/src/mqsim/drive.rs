//! `ssdconfig.xml`.

use super::fields::{Field, Section, children, ignored, is_internal, line, parse, syntax, used};
use crate::config::{
    About, CollectConfig, CollectPolicy, HostConfig, Interleave, LayoutConfig, MappingCache, MappingConfig,
    MediumConfig, NandConfig, PlacementRule, SimConfig, StartState, WriteCacheConfig,
};
use crate::error::Error;

/// A drive of MQSim, and its fields without a counterpart here.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The drive. `about.assumed` holds the notes, too.
    pub config: SimConfig,
    /// Fields that are ignored, missing, or taken differently, each in words.
    pub notes: Vec<String>,
}

pub(super) const ROOT: &str = "Execution_Parameter_Set";
pub(super) const HOST_TAG: &str = "Host_Parameter_Set";
pub(super) const DEVICE_TAG: &str = "Device_Parameter_Set";
pub(super) const FLASH_TAG: &str = "Flash_Parameter_Set";

const LOGGING: &str = "it is about MQSim's own output";
const DRAM: &str = "the memory of the cache takes no time here";
const SHARING: &str = "all flows share one cache here";

/// Fields in the order of MQSim's own files.
pub(super) const HOST: &[Field] = &[
    used("PCIe_Lane_Bandwidth", "0.4"),
    used("PCIe_Lane_Count", "4"),
    used("SATA_Processing_Delay", "0"),
    ignored("Enable_ResponseTime_Logging", "false", LOGGING),
    ignored("ResponseTime_Logging_Period_Length", "400000", LOGGING),
];

pub(super) const DEVICE: &[Field] = &[
    ignored("Seed", "123", "randomness comes from the seed of the run"),
    used("Enabled_Preconditioning", "true"),
    used("Memory_Type", "FLASH"),
    used("HostInterface_Type", "NVME"),
    used("IO_Queue_Depth", "1024"),
    used("Queue_Fetch_Size", "512"),
    ignored("Caching_Mechanism", "ADVANCED", "there is one kind of write cache here"),
    ignored("Data_Cache_Sharing_Mode", "SHARED", SHARING),
    used("Data_Cache_Capacity", "536870912"),
    ignored("Data_Cache_DRAM_Row_Size", "8192", DRAM),
    ignored("Data_Cache_DRAM_Data_Rate", "800", DRAM),
    ignored("Data_Cache_DRAM_Data_Busrt_Size", "4", DRAM).also(&["Data_Cache_DRAM_Data_Burst_Size"]),
    ignored("Data_Cache_DRAM_tRCD", "13", DRAM),
    ignored("Data_Cache_DRAM_tCL", "13", DRAM),
    ignored("Data_Cache_DRAM_tRP", "13", DRAM),
    used("Address_Mapping", "PAGE_LEVEL"),
    used("Ideal_Mapping_Table", "false"),
    used("CMT_Capacity", "2097152"),
    ignored("CMT_Sharing_Mode", "SHARED", SHARING),
    used("Plane_Allocation_Scheme", "CWDP"),
    used("Transaction_Scheduling_Policy", "OUT_OF_ORDER"),
    used("Overprovisioning_Ratio", "0.02"),
    used("GC_Exec_Threshold", "0.05").also(&["GC_Exect_Threshold"]),
    used("GC_Block_Selection_Policy", "RGA"),
    ignored("Use_Copyback_for_GC", "true", "moved pages cross the channel here"),
    ignored("Preemptible_GC_Enabled", "true", "collection yields to waiting reads here"),
    used("GC_Hard_Threshold", "0.005"),
    ignored("Dynamic_Wearleveling_Enabled", "true", "the least erased free block is always taken first here"),
    used("Static_Wearleveling_Enabled", "true"),
    used("Static_Wearleveling_Threshold", "100"),
    // MQSim writes the second and reads the first.
    ignored("Prefered_suspend_erase_time_for_read", "700000", SUSPENDING)
        .also(&["Preferred_suspend_erase_time_for_read"]),
    ignored("Preferred_suspend_erase_time_for_write", "700000", SUSPENDING),
    ignored("Preferred_suspend_write_time_for_read", "100000", SUSPENDING),
    used("Flash_Channel_Count", "8"),
    used("Flash_Channel_Width", "1"),
    used("Channel_Transfer_Rate", "300"),
    used("Chip_No_Per_Channel", "4"),
    used("Flash_Comm_Protocol", "NVDDR2"),
];

const SUSPENDING: &str = "a read suspends whenever the chips can; MQSim's out-of-order scheduler never lets one, although they can";

/// MQSim's fixed behaviour, which no field of its files sets.
const WITHOUT_A_FIELD: &str = "as in MQSim, without a field for it: changed parts of the mapping table that leave the cache are never programmed, the whole table is on flash at the start, planes of a die work together only where operations on the same page of theirs wait at the same time, and a read of unwritten sectors senses a page; otherwise than in MQSim, such a read takes no page of a block, and a block's pages are programmed strictly in their order";

pub(super) const FLASH: &[Field] = &[
    used("Flash_Technology", "MLC"),
    used("CMD_Suspension_Support", "ERASE"),
    used("Page_Read_Latency_LSB", "75000"),
    used("Page_Read_Latency_CSB", "75000"),
    used("Page_Read_Latency_MSB", "75000"),
    used("Page_Program_Latency_LSB", "750000"),
    used("Page_Program_Latency_CSB", "750000"),
    used("Page_Program_Latency_MSB", "750000"),
    used("Block_Erase_Latency", "3800000"),
    ignored("Block_PE_Cycles_Limit", "10000", "blocks do not wear out here"),
    used("Suspend_Erase_Time", "700000"),
    used("Suspend_Program_Time", "100000").also(&["Suspend_Write_Time"]),
    used("Die_No_Per_Chip", "2"),
    used("Plane_No_Per_Die", "2"),
    used("Block_No_Per_Plane", "2048"),
    used("Page_No_Per_Block", "256"),
    used("Page_Capacity", "8192"),
    ignored("Page_Metadat_Capacity", "1872", "MQSim does not transfer it either"),
];

/// Bus time of commands and addresses of a read in MQSim's NV-DDR2 channel: 20 + 6 x 25 + 100 + 20 ns before
/// the cells work, 15 + 15 ns before data come out.
pub(super) const CHANNEL_COMMAND_NS: u64 = 320;

/// MQSim's PCIe packets: payload and overhead.
pub(super) const PACKET_BYTES: u64 = 128;
pub(super) const PACKET_OVERHEAD_BYTES: u64 = 28;

/// Blocks of a die that are being written or collected.
const KEPT_BLOCKS: f64 = 5.0;

/// Upper bound of counts that may be large.
const MANY: u32 = 1 << 20;

/// Reads `ssdconfig.xml`. `origin` says where the text comes from, for messages.
///
/// # Errors
/// [`Error::Syntax`] for a text that is no such file and for unknown fields, [`Error::Config`] for values
/// that make no drive or that nothing here corresponds to; both name the field.
pub fn import_drive(text: &str, origin: &str) -> Result<Imported, Error> {
    let mut parts = Parts {
        host: Section::empty(HOST_TAG, HOST),
        device: Section::empty(DEVICE_TAG, DEVICE),
        flash: Section::empty(FLASH_TAG, FLASH),
        notes: Vec::new(),
    };
    if !is_internal(text) {
        parts.read(text, origin)?;
    }
    let mut config = parts.config()?;
    let sections = [&parts.host, &parts.device, &parts.flash];
    let mut notes: Vec<String> = sections.into_iter().flat_map(Section::notes).collect();
    notes.append(&mut parts.notes);
    config.about.assumed.clone_from(&notes);
    config.check()?;
    Ok(Imported { config, notes })
}

/// The sections of the file.
struct Parts {
    host: Section,
    device: Section,
    flash: Section,
    notes: Vec<String>,
}

impl Parts {
    fn read(&mut self, text: &str, origin: &str) -> Result<(), Error> {
        let document = parse(text, origin, ROOT)?;
        for node in children(document.root_element()) {
            match node.tag_name().name() {
                HOST_TAG => self.host = Section::read(node, HOST_TAG, HOST, &[], origin)?,
                DEVICE_TAG => {
                    self.device = Section::read(node, DEVICE_TAG, DEVICE, &[FLASH_TAG], origin)?;
                    for flash in children(node).filter(|node| node.tag_name().name() == FLASH_TAG) {
                        self.flash = Section::read(flash, FLASH_TAG, FLASH, &[], origin)?;
                    }
                }
                other => {
                    return Err(syntax(
                        origin,
                        format!(
                            "line {}: unknown element {other}; there are {HOST_TAG}, {DEVICE_TAG}",
                            line(&node)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn config(&mut self) -> Result<SimConfig, Error> {
        self.device.choice("Memory_Type", &[("FLASH", ())])?;
        self.device.choice("Address_Mapping", &[("PAGE_LEVEL", ())])?;
        self.device.choice("Flash_Comm_Protocol", &[("NVDDR2", ())])?;
        let ratio = self.device.number("Overprovisioning_Ratio", 0.0..=0.9)?;
        let host = self.host()?;
        let mut nand = self.array()?;
        let blocks = self.flash.number("Block_No_Per_Plane", 1..=MANY)?;
        let planes = u64::from(nand.planes_per_die) * dies(&nand);
        let block_bytes = u64::from(nand.pages_per_block) * u64::from(nand.page_bytes);
        let physical_bytes = u64::from(blocks).saturating_mul(planes.saturating_mul(block_bytes));
        // MQSim's ratio is of all, ours is of the capacity.
        let page = u64::from(nand.page_bytes).max(1);
        let capacity_bytes = ((physical_bytes as f64 * (1.0 - ratio)) as u64 / page * page).max(page);
        // A little less, so that rounding up to whole blocks does not find one more than there is.
        nand.over_provisioning =
            (physical_bytes as f64 * (1.0 - 1e-12) / capacity_bytes as f64 - 1.0).max(0.0);
        nand.mapping = self.mapping(&nand, blocks)?;
        let table_share = f64::from(nand.mapping.entry_bytes) / page as f64;
        let taken = KEPT_BLOCKS + (f64::from(blocks) * (1.0 - ratio) * table_share).ceil();
        nand.collect = self.collect(blocks, (f64::from(blocks) * ratio - taken).max(1.0) as u32)?;
        Ok(SimConfig {
            name: "drive of MQSim".into(),
            about: About { summary: "imported from MQSim's ssdconfig.xml".into(), ..About::default() },
            capacity_bytes,
            sector_bytes: super::SECTOR_BYTES as u32,
            drives: 1,
            stripe_unit_bytes: 64 << 10,
            host,
            medium: MediumConfig::Nand(Box::new(nand)),
            state: self.state(),
            faults: Vec::new(),
        })
    }

    /// MQSim preconditions with the workload that it is going to run.
    fn state(&mut self) -> StartState {
        if !self.device.flag("Enabled_Preconditioning") {
            return StartState::Fresh;
        }
        self.notes.push(
            "Enabled_Preconditioning = true: the drive is filled once from front to back here, unless --state says otherwise".to_owned(),
        );
        StartState::Filled
    }

    fn host(&mut self) -> Result<HostConfig, Error> {
        let lanes = self.host.number("PCIe_Lane_Count", 1..=1024_u64)?;
        let gigabytes_per_s = self.host.number("PCIe_Lane_Bandwidth", 0.0001..=1000.0)?;
        let is_nvme = self.device.choice("HostInterface_Type", &[("NVME", true), ("SATA", false)])?;
        let packet_ns = |payload: u64| {
            ((payload + PACKET_OVERHEAD_BYTES).div_ceil(lanes) as f64 / gigabytes_per_s) as u64
        };
        let share = PACKET_BYTES as f64 / (PACKET_BYTES + PACKET_OVERHEAD_BYTES) as f64;
        let processing_ns =
            if is_nvme { 0 } else { self.host.number("SATA_Processing_Delay", 0..=1_000_000_000)? };
        let depth = if is_nvme { "Queue_Fetch_Size" } else { "IO_Queue_Depth" };
        Ok(HostConfig {
            queue_depth: self.device.number(depth, 1..=u32::from(u16::MAX))?,
            command_ns: 0,
            write_command_ns: None,
            partial_command_ns: 0,
            // The doorbell, the request for the command, and the command of 64 bytes.
            fetch_ns: 2 * packet_ns(4) + packet_ns(64) + processing_ns,
            // A completion of 16 bytes.
            completion_ns: packet_ns(16) + processing_ns,
            link_bytes_per_s: (gigabytes_per_s * 1e9 * lanes as f64 * share) as u64,
            link_full_duplex: true,
            // The last page of a read starts its way to the host.
            link_in_parts: false,
            command_bytes_per_s: None,
            cap: None,
        })
    }

    /// Chips and their timings; fields that depend on sizes are filled in later.
    fn array(&mut self) -> Result<NandConfig, Error> {
        let latency = |name: &str| Ok(self.flash.number(name, 1.0..=1e10)? * 1e-3);
        let bits: &[&str] = self.flash.choice(
            "Flash_Technology",
            &[("SLC", &["LSB"][..]), ("MLC", &["LSB", "MSB"][..]), ("TLC", &["LSB", "CSB", "MSB"][..])],
        )?;
        let of_bits = |kind: &str| {
            bits.iter()
                .map(|bit| latency(&format!("Page_{kind}_Latency_{bit}")))
                .collect::<Result<Vec<f64>, Error>>()
        };
        let (suspend_program, suspend_erase) = self.suspension()?;
        let suspending = if suspend_program { "Suspend_Program_Time" } else { "Suspend_Erase_Time" };
        let planes_per_die = self.flash.number("Plane_No_Per_Die", 1..=64)?;
        let page_bytes: u32 = self.flash.number("Page_Capacity", super::SECTOR_BYTES as u32..=MANY)?;
        if !page_bytes.is_power_of_two() {
            return Err(self.flash.wrong("Page_Capacity", format!("a power of two from 512 to {MANY}")));
        }
        let mut nand = NandConfig {
            channels: self.device.number("Flash_Channel_Count", 1..=1024)?,
            chips_per_channel: self.device.number("Chip_No_Per_Channel", 1..=1024)?,
            dies_per_chip: self.flash.number("Die_No_Per_Chip", 1..=1024)?,
            planes_per_die,
            pages_per_block: self.flash.number("Page_No_Per_Block", 1..=MANY)?,
            page_bytes,
            over_provisioning: 0.0,
            read_us: of_bits("Read")?,
            program_us: of_bits("Program")?,
            erase_us: latency("Block_Erase_Latency")?,
            jitter: 0.0,
            channel_mega_transfers_per_s: 0.0,
            channel_command_ns: CHANNEL_COMMAND_NS,
            interleave: Interleave::ChipBusy,
            multi_plane: planes_per_die > 1,
            reads_first: true,
            suspend_program,
            suspend_erase,
            suspend_us: if suspend_program || suspend_erase { latency(suspending)? } else { 0.0 },
            misaligned_read_us: 0.0,
            mapping: MappingConfig {
                unit_bytes: page_bytes,
                entry_bytes: 1,
                cache: MappingCache::Whole,
                write_back: false,
                lookup_ns: 0,
            },
            write_cache: WriteCacheConfig { bytes: 0, volatile: true },
            // Page by page over the planes, however small the writes.
            layout: LayoutConfig {
                stripe_bytes: page_bytes.into(),
                chunk_bytes: page_bytes.into(),
                desirable_write_bytes: super::SECTOR_BYTES,
                small_write_dies: 1,
                placement: PlacementRule::ByAddress,
            },
            collect: CollectConfig::default(),
        };
        nand.write_cache.bytes = self.cache_bytes(&nand)?;
        nand.channel_mega_transfers_per_s = self.transfers()?;
        nand.layout.small_write_dies = dies(&nand).try_into().unwrap_or(u32::MAX);
        self.scheme();
        Ok(nand)
    }

    /// MQSim takes no more writes while sectors of one page for each plane are on their way to flash, however
    /// large its cache.
    fn cache_bytes(&mut self, nand: &NandConfig) -> Result<u64, Error> {
        let capacity: u64 = self.device.number("Data_Cache_Capacity", 0..=1 << 50)?;
        let planes = dies(nand).saturating_mul(nand.planes_per_die.into());
        let under_way = planes.saturating_mul(nand.page_bytes.into());
        if capacity > under_way {
            self.notes.push(format!(
                "Data_Cache_Capacity = {capacity}: MQSim has no more than a page of each plane on its way to flash, {under_way} bytes, and takes no write beyond that"
            ));
        }
        Ok(capacity.min(under_way))
    }

    /// Whether programs and erases can be suspended.
    fn suspension(&self) -> Result<(bool, bool), Error> {
        self.flash.choice(
            "CMD_Suspension_Support",
            &[
                ("NONE", (false, false)),
                ("PROGRAM", (true, false)),
                ("ERASE", (false, true)),
                ("PROGRAM_ERASE", (true, true)),
            ],
        )
    }

    /// Bytes in a microsecond over a channel. MQSim's cycle is a whole number of nanoseconds.
    fn transfers(&mut self) -> Result<f64, Error> {
        let rate = self.device.number("Channel_Transfer_Rate", 1.0..=1e6)?;
        let width = self.device.number("Flash_Channel_Width", 1.0..=64.0)?;
        let half_cycle_ns = (1000.0_f64 / rate).floor();
        if half_cycle_ns < 1.0 {
            self.notes.push(format!(
                "Channel_Transfer_Rate = {rate}: MQSim rounds the cycle down to no time at all; here it is {rate} MT/s"
            ));
            return Ok(rate * width);
        }
        Ok(1000.0 / half_cycle_ns * width)
    }

    fn scheme(&mut self) {
        let scheme = self.device.text("Plane_Allocation_Scheme").to_ascii_uppercase();
        if scheme != "CWDP" {
            self.notes.push(format!(
                "Plane_Allocation_Scheme = {scheme}: data go over channels, chips, dies and planes in this order (CWDP) here"
            ));
        }
        self.notes.push(WITHOUT_A_FIELD.to_owned());
        let policy = self.device.text("Transaction_Scheduling_Policy").to_ascii_uppercase();
        if policy != "OUT_OF_ORDER" {
            self.notes.push(format!("Transaction_Scheduling_Policy = {policy}: it is OUT_OF_ORDER here"));
        }
    }

    /// An entry in memory holds the logical and the physical page and a bit for each sector, as MQSim counts
    /// it.
    fn mapping(&self, nand: &NandConfig, blocks_per_plane: u32) -> Result<MappingConfig, Error> {
        let planes = dies(nand) * u64::from(nand.planes_per_die);
        let pages =
            planes.saturating_mul(u64::from(blocks_per_plane)).saturating_mul(nand.pages_per_block.into());
        let sectors = u64::from(nand.page_bytes) / super::SECTOR_BYTES;
        let bits = 2.0 * (pages as f64).log2() + sectors as f64;
        let cache = if self.device.flag("Ideal_Mapping_Table") {
            MappingCache::Whole
        } else {
            MappingCache::EntriesBytes(self.device.number("CMT_Capacity", 1..=1 << 50)?)
        };
        Ok(MappingConfig { entry_bytes: (bits / 8.0).ceil() as u32, cache, ..nand.mapping.clone() })
    }

    /// `most`: free blocks of a die that collection can keep.
    fn collect(&mut self, blocks: u32, most: u32) -> Result<CollectConfig, Error> {
        let threshold = |name: &str| -> Result<u32, Error> {
            Ok(((self.device.number(name, 0.0..=1.0)? * f64::from(blocks)) as u32).max(1))
        };
        let wanted = threshold("GC_Exec_Threshold")?;
        let hard = threshold("GC_Hard_Threshold")?;
        let start = wanted.max(hard).min(most);
        if start < wanted {
            self.notes.push(format!(
                "GC_Exec_Threshold asks for {wanted} free blocks of a plane: Overprovisioning_Ratio leaves {start}"
            ));
        }
        let policy = self.device.text("GC_Block_Selection_Policy").to_ascii_uppercase();
        let policy = match policy.as_str() {
            "GREEDY" => CollectPolicy::Greedy,
            "FIFO" => CollectPolicy::Fifo,
            "RGA" | "RANDOM" | "RANDOM_P" | "RANDOM_PP" => {
                self.notes.push(format!(
                    "GC_Block_Selection_Policy = {policy}: it is GREEDY here, which moves as few pages as the theory says; with this policy MQSim moves more"
                ));
                CollectPolicy::Greedy
            }
            _ => {
                let allowed = "one of GREEDY, RGA, RANDOM, RANDOM_P, RANDOM_PP, FIFO".to_owned();
                return Err(self.device.wrong("GC_Block_Selection_Policy", allowed));
            }
        };
        let wear_gap = match self.device.flag("Static_Wearleveling_Enabled") {
            true => self.device.number("Static_Wearleveling_Threshold", 0..=MANY)?,
            false => 0,
        };
        Ok(CollectConfig {
            policy,
            start_below_free_blocks: start,
            stop_writes_below_free_blocks: hard.min(start),
            wear_gap,
        })
    }
}

/// Dies of the drive.
fn dies(nand: &NandConfig) -> u64 {
    u64::from(nand.channels) * u64::from(nand.chips_per_channel) * u64::from(nand.dies_per_chip)
}
