//! A simulated drive that behaves as a profile says.

use std::collections::BTreeMap;

use flashgrain_ssdsim::config::{
    About, CapConfig, CollectConfig, HostConfig, Interleave, LayoutConfig, MappingCache, MappingConfig,
    MediumConfig, NandConfig, PlacementRule, SimConfig, StartState, WriteCacheConfig,
};

use super::facts::{Fact, Facts, READ_BYTES};

/// The part of the drive that takes the time which neither the flash nor the link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// Into the command's way in and out.
    Host,
    /// Into the latency of the flash: MQSim knows no other.
    Flash,
}

/// A drive made from a profile, and for each of its fields where that comes from.
#[derive(Clone, Debug)]
pub struct LearnedDrive {
    pub config: SimConfig,
    /// Origins by the field's path.
    origins: BTreeMap<&'static str, Origin>,
}

#[derive(Clone, Debug)]
enum Origin {
    Learned(String),
    Assumed(String),
}

// Values for fields that a profile does not determine: common values of drives of the years around 2020.
const CAPACITY_BYTES: u64 = 256 << 30;
const SECTOR_BYTES: u32 = 512;
const PAGE_BYTES_MAX: u64 = 16 << 10;
const UNIT_BYTES: u64 = 4 << 10;
const QUEUE_DEPTH: u32 = 1024;
const CACHE_BYTES: u64 = 64 << 20;
const CACHE_BYTES_MAX: u64 = 1 << 30;
const OVER_PROVISIONING: f64 = 0.12;
const ERASE_US: f64 = 3000.0;
const PROGRAM_US: f64 = 700.0;
const STRIPE_BYTES: u64 = 64 << 10;
const PAGES_PER_BLOCK_MAX: u32 = 256;
const BLOCKS_PER_DIE: u64 = 128;
const CHANNEL_COMMAND_S: f64 = 320e-9;

/// Share of a read's latency that the way in and out takes if no write tells.
const OVERHEAD_FRACTION: f64 = 0.1;

/// Most of it, even if single writes take longer: then they wait for the flash.
const OVERHEAD_FRACTION_MAX: f64 = 0.5;

/// The channels together are wider than the link by this: requests meet on some while others are idle.
const WIDER: f64 = 4.0;

/// Dies and rows get this margin over the learned rates if another resource is the bottleneck.
const MARGIN: f64 = 1.5;

/// Dies are not all programming all the time.
const WRITE_MARGIN: f64 = 1.3;

/// Dies that can be told from the requests in flight: more would show only with more of these.
const BUSY_FRACTION_MAX: f64 = 0.8;

const DIES_MAX: f64 = 4096.0;

impl LearnedDrive {
    pub fn new(facts: &Facts, overhead: Overhead) -> Self {
        let mut drive = Builder::default();
        let times = Times::of(facts, overhead, &mut drive);
        let config = drive.config(facts, &times);
        let mut this = Self { config, origins: drive.origins };
        this.config.about = this.about();
        this
    }

    /// Origin of the value of the field at `path`.
    pub fn origin(&self, path: &str) -> Option<String> {
        Some(match self.origins.get(path)? {
            Origin::Learned(how) => format!("learned: {how}"),
            Origin::Assumed(why) => format!("assumed: {why}"),
        })
    }

    fn about(&self) -> About {
        let of = |wanted: bool| {
            let text = |(path, origin): (&&str, &Origin)| match origin {
                Origin::Learned(how) => wanted.then(|| format!("{path}: {how}")),
                Origin::Assumed(why) => (!wanted).then(|| format!("{path}: {why}")),
            };
            self.origins.iter().filter_map(text).collect()
        };
        About { summary: "made from a device profile".into(), calibrated: of(true), assumed: of(false) }
    }
}

/// Seconds of a 4 KiB read, and the dies that share the work.
#[derive(Clone, Copy, Debug)]
struct Times {
    overhead_s: f64,
    /// Of a die: sensing and its transfer.
    service_s: f64,
    transfer_s: f64,
    dies: u32,
    channels: u32,
    channel_bytes_per_s: f64,
    /// Of the command processor for a read, and for a write; 0 if the flash bounds the requests per second.
    command_s: f64,
    write_command_s: f64,
}

impl Times {
    /// A read at depth 1 takes overhead, service and link one after another. At `k` in flight over `D` dies
    /// at random, k D / (k + D - 1) of them are busy in the mean, which makes the throughput; that is solved
    /// for D. With a command processor, the reads per second are bounded by it, and the dies are more.
    fn of(facts: &Facts, overhead: Overhead, drive: &mut Builder) -> Self {
        let link_s = READ_BYTES / facts.read_bytes_per_s;
        let command_s = if overhead == Overhead::Host { 1.0 / facts.reads_per_s } else { 0.0 };
        // However many bytes large writes move, those of 4 KiB are bounded by the time of their mapping.
        let write_command_s = match (&facts.writes_per_s, overhead) {
            (Ok((rate, how)), Overhead::Host) => {
                drive.learned("host.write_command_ns", how.clone());
                1.0 / rate
            }
            (Err(why), Overhead::Host) => {
                drive.assumed("host.write_command_ns", format!("as for reads, because {why}"));
                command_s
            }
            (_, Overhead::Flash) => 0.0,
        };
        let overhead_s = match (&facts.write_s, overhead) {
            (_, Overhead::Flash) => 0.0,
            (Ok((write_s, how)), Overhead::Host) => {
                drive.learned("host.fetch_ns", how.clone());
                (write_s - link_s - write_command_s).clamp(0.0, facts.read_s * OVERHEAD_FRACTION_MAX)
            }
            (Err(why), Overhead::Host) => {
                drive.assumed("host.fetch_ns", format!("{why}; a tenth of a read's latency"));
                facts.read_s * OVERHEAD_FRACTION
            }
        };
        let service_s = (facts.read_s - overhead_s - command_s - link_s).max(facts.read_s * 0.05);
        let k = facts.reads_in_flight;
        let busy = (facts.reads_per_s * service_s).clamp(1.0, (k * BUSY_FRACTION_MAX).max(1.0));
        let more = if overhead == Overhead::Host { MARGIN } else { 1.0 };
        let dies = (more * busy * (k - 1.0) / (k - busy).max(f64::MIN_POSITIVE)).round().clamp(1.0, DIES_MAX);
        let channels = channels(dies as u32);
        let per_channel = (dies / f64::from(channels)).round().max(1.0);
        let channel_bytes_per_s = facts.read_bytes_per_s * WIDER / f64::from(channels);
        let transfer_s = (READ_BYTES / channel_bytes_per_s + CHANNEL_COMMAND_S).min(service_s * 0.9);
        Self {
            overhead_s,
            service_s,
            transfer_s,
            dies: channels * per_channel as u32,
            channels,
            channel_bytes_per_s,
            command_s,
            write_command_s,
        }
    }
}

/// Among common numbers of channels the one that comes nearest to `dies`.
fn channels(dies: u32) -> u32 {
    let miss = |channels: &u32| {
        (dies as f64 / f64::from(*channels)).round() * f64::from(*channels) - f64::from(dies)
    };
    let common = [8, 4, 6, 5, 7, 10, 12, 14, 16];
    let nearest = common
        .into_iter()
        .filter(|channels| *channels <= dies)
        .min_by(|one, other| miss(one).abs().total_cmp(&miss(other).abs()));
    nearest.unwrap_or(dies.max(1))
}

#[derive(Default)]
struct Builder {
    origins: BTreeMap<&'static str, Origin>,
}

impl Builder {
    fn learned(&mut self, path: &'static str, how: impl Into<String>) {
        self.origins.insert(path, Origin::Learned(how.into()));
    }

    fn assumed(&mut self, path: &'static str, why: impl Into<String>) {
        self.origins.insert(path, Origin::Assumed(why.into()));
    }

    /// The fact, or something common.
    fn take<T>(&mut self, path: &'static str, fact: &Fact<T>, otherwise: T) -> T
    where
        T: Copy + std::fmt::Display,
    {
        match fact {
            Ok((value, how)) => {
                self.learned(path, how.clone());
                *value
            }
            Err(why) => {
                self.assumed(path, format!("{otherwise}, because {why}"));
                otherwise
            }
        }
    }

    fn config(&mut self, facts: &Facts, times: &Times) -> SimConfig {
        let nand = self.nand(facts, times);
        let unit = u64::from(nand.mapping.unit_bytes);
        let capacity = self.take("capacity_bytes", &facts.capacity_bytes, CAPACITY_BYTES);
        self.learned(
            "host.link_bytes_per_s",
            format!("reads reached {:.0} MB/s", facts.read_bytes_per_s / 1e6),
        );
        self.assumed("host.queue_depth", "as of NVMe drives");
        if times.command_s > 0.0 {
            self.learned("host.command_ns", format!("{:.0} reads a second are reached", facts.reads_per_s));
        }
        SimConfig {
            name: facts.name.clone(),
            about: About::default(),
            capacity_bytes: (capacity / unit * unit).max(1 << 20),
            sector_bytes: SECTOR_BYTES,
            drives: 1,
            stripe_unit_bytes: 64 << 10,
            host: HostConfig {
                queue_depth: QUEUE_DEPTH,
                command_ns: (times.command_s * 1e9) as u64,
                write_command_ns: (times.write_command_s > 0.0)
                    .then_some((times.write_command_s * 1e9) as u64),
                partial_command_ns: 0,
                fetch_ns: (times.overhead_s * 0.75e9) as u64,
                completion_ns: (times.overhead_s * 0.25e9) as u64,
                link_bytes_per_s: (facts.read_bytes_per_s as u64).max(100_000),
                link_full_duplex: true,
                link_in_parts: true,
                command_bytes_per_s: None,
                cap: self.cap(facts),
            },
            medium: MediumConfig::Nand(Box::new(nand)),
            state: StartState::Filled,
            faults: Vec::new(),
        }
    }

    /// The limit before the drive; the size of its buckets cannot be known.
    fn cap(&mut self, facts: &Facts) -> Option<CapConfig> {
        let cap = facts.cap.as_ref()?;
        let whole =
            |rate: Option<f64>, min: f64| rate.filter(|rate| *rate >= min).map(|rate| rate.round() as u64);
        let requests_per_s = whole(cap.requests_per_second, 1.0);
        let bytes_per_s = whole(cap.bytes_per_second, 1e5);
        self.learned("host.cap", cap.evidence.clone());
        self.assumed("host.cap.burst_requests", "no credits");
        (requests_per_s.is_some() || bytes_per_s.is_some()).then_some(CapConfig {
            requests_per_s,
            bytes_per_s,
            ..CapConfig::default()
        })
    }

    fn nand(&mut self, facts: &Facts, times: &Times) -> NandConfig {
        let Sizes { page_bytes, planes, mut layout } = self.sizes(facts, times);
        let row_bytes = page_bytes * u64::from(planes);
        let program_us = self.program_us(facts, times, row_bytes);
        // Small writes go to as many dies as their rate needs.
        if let Ok((rate, _)) = &facts.writes_per_s {
            let rows_per_s = rate * READ_BYTES / row_bytes as f64;
            let needed = (rows_per_s * program_us * 1e-6 * WRITE_MARGIN).ceil() as u32;
            layout.small_write_dies = layout.small_write_dies.max(needed.min(times.dies));
        }
        let reads = format!(
            "a 4 KiB read takes {:.1} us alone; {:.0} a second are reached with {} in flight",
            facts.read_s * 1e6,
            facts.reads_per_s,
            facts.reads_in_flight
        );
        self.learned("medium.nand.read_us", reads.clone());
        self.learned("medium.nand.chips_per_channel", format!("dies that make this: {reads}"));
        self.assumed("medium.nand.channels", "a common number of channels");
        self.assumed("medium.nand.dies_per_chip", "each die counts as a chip");
        self.assumed("medium.nand.channel_mega_transfers_per_s", "channels together wider than the link");
        self.assumed("medium.nand.over_provisioning", "a common share");
        self.assumed("medium.nand.erase_us", "a common latency");
        self.assumed("medium.nand.pages_per_block", "so that every die has enough blocks");
        self.assumed("medium.nand.mapping.cache", "the whole mapping is in memory");
        let cache_bytes = self.take("medium.nand.write_cache.bytes", &facts.cache_bytes, CACHE_BYTES);
        let volatile = self.take("medium.nand.write_cache.volatile", &facts.volatile_cache, true);
        NandConfig {
            channels: times.channels,
            chips_per_channel: times.dies / times.channels,
            dies_per_chip: 1,
            planes_per_die: planes,
            pages_per_block: pages_per_block(facts, times.dies, row_bytes),
            page_bytes: page_bytes as u32,
            over_provisioning: OVER_PROVISIONING,
            read_us: vec![((times.service_s - times.transfer_s) * 1e6).max(0.01)],
            program_us: vec![program_us],
            erase_us: ERASE_US,
            jitter: 0.0,
            channel_mega_transfers_per_s: (times.channel_bytes_per_s * 1e-6).clamp(1.0, 1e6),
            channel_command_ns: (CHANNEL_COMMAND_S * 1e9) as u64,
            interleave: Interleave::Dies,
            multi_plane: planes > 1,
            reads_first: true,
            suspend_program: false,
            suspend_erase: false,
            suspend_us: 0.0,
            misaligned_read_us: 0.0,
            mapping: MappingConfig {
                unit_bytes: page_bytes.min(UNIT_BYTES) as u32,
                entry_bytes: 8,
                cache: MappingCache::Whole,
                write_back: true,
                lookup_ns: 0,
            },
            write_cache: WriteCacheConfig { bytes: cache_bytes.min(CACHE_BYTES_MAX), volatile },
            layout,
            collect: CollectConfig::default(),
        }
    }

    /// Rows large enough that dies that are all busy deliver the learned bandwidth.
    fn sizes(&mut self, facts: &Facts, times: &Times) -> Sizes {
        let needed = MARGIN * facts.read_bytes_per_s * times.service_s / f64::from(times.dies);
        let common = (needed as u64).next_power_of_two().clamp(UNIT_BYTES, PAGE_BYTES_MAX);
        let page_bytes = self.take("medium.nand.page_bytes", &facts.page_bytes, common);
        let page_bytes = page_bytes.next_power_of_two().clamp(u64::from(SECTOR_BYTES), 1 << 20);
        let planes = (needed / page_bytes as f64).ceil().clamp(1.0, 16.0) as u32;
        self.assumed("medium.nand.planes_per_die", "enough that busy dies read as fast as the link");
        let unit = page_bytes.min(UNIT_BYTES);
        let whole_units = |bytes: u64| bytes.next_multiple_of(unit).max(unit);
        let stripe_path = "medium.nand.layout.stripe_bytes";
        let chunk = self.take("medium.nand.layout.chunk_bytes", &facts.chunk_bytes, page_bytes);
        let stripe = self.take(stripe_path, &facts.stripe_bytes, STRIPE_BYTES.max(chunk));
        let (chunk, stripe) = (whole_units(chunk), whole_units(stripe).max(whole_units(chunk)));
        let desirable_path = "medium.nand.layout.desirable_write_bytes";
        let desirable = self.take(desirable_path, &facts.desirable_write_bytes, stripe);
        // Whole chunks of less than a stripe are laid out like stripes: see the simulated drive's layout.
        let told_apart = desirable == stripe || desirable < chunk;
        let desirable = if told_apart { desirable.max(SECTOR_BYTES.into()) } else { stripe };
        let layout = LayoutConfig {
            stripe_bytes: stripe,
            chunk_bytes: chunk,
            desirable_write_bytes: desirable,
            small_write_dies: times.dies.div_ceil(8),
            placement: PlacementRule::InTurn,
        };
        Sizes { page_bytes, planes, layout }
    }

    fn program_us(&mut self, facts: &Facts, times: &Times, row_bytes: u64) -> f64 {
        let path = "medium.nand.program_us";
        match &facts.write_bytes_per_s {
            Ok((rate, how)) => {
                self.learned(path, how.clone());
                (f64::from(times.dies) * row_bytes as f64 / rate / WRITE_MARGIN * 1e6).clamp(1.0, 1e5)
            }
            Err(why) => {
                self.assumed(path, format!("{PROGRAM_US} us, because {why}"));
                PROGRAM_US
            }
        }
    }
}

struct Sizes {
    page_bytes: u64,
    planes: u32,
    layout: LayoutConfig,
}

/// Small blocks where there is little room for them.
fn pages_per_block(facts: &Facts, dies: u32, row_bytes: u64) -> u32 {
    let capacity = facts.capacity_bytes.as_ref().map_or(CAPACITY_BYTES, |(bytes, _)| *bytes);
    let rows = capacity / u64::from(dies) / row_bytes / BLOCKS_PER_DIE;
    (rows.max(1).next_power_of_two().min(PAGES_PER_BLOCK_MAX.into())) as u32
}
