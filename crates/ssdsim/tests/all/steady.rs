//! A drive that starts in the steady state of random writes is in it from the first write on.

use flashgrain_device::{ChannelOptions, Completion, Device, Op, Request};
use flashgrain_ssdsim::config::{MediumConfig, NandConfig, StartState};
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const UNIT_BYTES: u64 = 4096;
const DEPTH: usize = 128;

/// Parts of a run, of equally many writes; of the first, and of the last ones, rates are compared.
const PARTS: usize = 10;
const LAST_PARTS: usize = 3;

/// Blocks that each die takes writes of hosts for in a part of a run.
const BLOCKS_PER_PART: u64 = 3;

/// Units in a block of each die, together, of a drive that is small enough for a test.
const SMALL_UNITS: u64 = 4096;

/// Units of a block of each die, together.
fn units_of_blocks(nand: &NandConfig) -> u64 {
    let planes = if nand.multi_plane { nand.planes_per_die } else { 1 };
    let dies = u64::from(nand.channels * nand.chips_per_channel * nand.dies_per_chip);
    dies * u64::from(planes * nand.pages_per_block) * u64::from(nand.page_bytes) / UNIT_BYTES
}

/// The flash of a drive; `None` if it has none.
fn flash(config: &SimConfig) -> Option<&NandConfig> {
    match &config.medium {
        MediumConfig::Nand(nand) => Some(nand),
        _ => None,
    }
}

/// Random writes of single units from the start on, as many under way as there are room for.
#[derive(Debug)]
struct Run {
    /// When each part was done.
    ends_ns: Vec<u64>,
    /// Units that were moved in each part.
    moved: Vec<u64>,
    writes_per_part: u64,
    /// Longest time in which no write was done.
    stall_ns: u64,
}

impl Run {
    fn new(config: &SimConfig, writes_per_part: u64) -> Self {
        let config = SimConfig { state: StartState::SteadyRandom { working_set: 1.0 }, ..config.clone() };
        // Declared before the channel, whose writes may be under way when it is dropped.
        let mut memory = vec![1; UNIT_BYTES as usize];
        let device = SimDevice::new(&config, "sim:test", 1).unwrap();
        let options = ChannelOptions { depth: DEPTH as u32, arena: None, polled: false };
        let mut channel = device.open_channel(&options).unwrap();
        let mut random = Pcg64::seed_from_u64(3);
        let mut completions: Vec<Completion> = Vec::with_capacity(DEPTH);
        let mut run = Self { ends_ns: Vec::new(), moved: Vec::new(), writes_per_part, stall_ns: 0 };
        let (mut writes, mut moved_before, mut last_ns) = (0, 0, 0);
        while run.ends_ns.len() < PARTS {
            while channel.in_flight() < DEPTH {
                let offset_bytes = random.random_range(0..config.capacity_bytes / UNIT_BYTES) * UNIT_BYTES;
                let memory = memory.as_mut_ptr();
                let length_bytes = UNIT_BYTES as u32;
                let request = Request { op: Op::Write, offset_bytes, length_bytes, memory, tag: 0 };
                // SAFETY: the memory outlives the channel, and writes only read it.
                unsafe { channel.submit(request) }.unwrap();
            }
            completions.clear();
            channel.wait(1, None, &mut completions).unwrap();
            for completion in &completions {
                let now_ns = completion.completed.0;
                run.stall_ns = run.stall_ns.max(now_ns - last_ns);
                last_ns = now_ns;
                writes += 1;
                if writes % writes_per_part == 0 {
                    let moved = device.statistics().counters.moved_units;
                    run.ends_ns.push(now_ns);
                    run.moved.push(moved - moved_before);
                    moved_before = moved;
                }
            }
        }
        run
    }

    /// Writes per second of these parts.
    fn rate(&self, parts: std::ops::Range<usize>) -> f64 {
        let began_ns = parts.start.checked_sub(1).map_or(0, |before| self.ends_ns[before]);
        let writes = parts.len() as u64 * self.writes_per_part;
        writes as f64 / (self.ends_ns[parts.end - 1] - began_ns) as f64 * 1e9
    }

    /// Units that were written to flash for each that hosts wrote in these parts.
    fn amplification(&self, parts: std::ops::Range<usize>) -> f64 {
        let writes = parts.len() as u64 * self.writes_per_part;
        1.0 + self.moved[parts].iter().sum::<u64>() as f64 / writes as f64
    }

    /// How much faster the first part was than the last ones, as a share.
    fn drift(&self) -> f64 {
        self.rate(0..1) / self.rate(PARTS - LAST_PARTS..PARTS) - 1.0
    }

    fn print(&self, name: &str) {
        let last = PARTS - LAST_PARTS..PARTS;
        println!(
            "{name:<18} {:>9.0} ({:.2}) then {:>9.0} ({:.2}), {:+.1} %; longest stall {:.0} ms",
            self.rate(0..1),
            self.amplification(0..1),
            self.rate(last.clone()),
            self.amplification(last),
            self.drift() * 100.0,
            self.stall_ns as f64 / 1e6
        );
    }
}

/// Drives of which a scaled one is quick to simulate; those with many dies take minutes.
const QUICK: [&str; 3] = ["860evo", "intel-530", "xg5"];

/// `FLASHGRAIN_DRIVES=m500,pm1733` looks at these drives, and `all` at all;
/// `FLASHGRAIN_WHOLE_DRIVES=1` takes minutes for each, and does not scale them down.
#[test]
fn every_flash_drive_writes_as_fast_at_first_as_later() {
    let whole = std::env::var_os("FLASHGRAIN_WHOLE_DRIVES").is_some();
    let wanted = std::env::var("FLASHGRAIN_DRIVES").unwrap_or_default();
    let mut off = Vec::new();
    for name in preset::names() {
        let config = preset::find(name).unwrap();
        let Some(units) = flash(&config).map(units_of_blocks) else { continue };
        let is_wanted = match wanted.as_str() {
            "" => QUICK.contains(&name),
            "all" => true,
            wanted => wanted.split(',').any(|wanted| wanted == name),
        };
        if !is_wanted {
            continue;
        }
        let scale = if whole { 1.0 } else { (SMALL_UNITS as f64 / units as f64).min(1.0) };
        let config = config.clone().resized((config.capacity_bytes as f64 * scale) as u64);
        let units = flash(&config).map_or(0, units_of_blocks);
        let run = Run::new(&config, BLOCKS_PER_PART * units);
        run.print(name);
        if run.drift().abs() > 0.05 || run.stall_ns > 1_500_000_000 {
            off.push(name);
        }
    }
    assert!(off.is_empty(), "{off:?}");
}

/// The data sheet's rate of random writes of 4 KB, as the NVMe paper quotes it in section 2.1.
const PM1733_WRITES_PER_S: f64 = 135_000.0;

#[test]
fn the_whole_pm1733_writes_at_the_rate_of_its_data_sheet_from_the_start() {
    let run = Run::new(&preset::find("pm1733").unwrap(), 10_000);
    run.print("pm1733");
    for part in 0..PARTS {
        let rate = run.rate(part..part + 1);
        assert!((rate / PM1733_WRITES_PER_S - 1.0).abs() < 0.15, "part {part}: {rate:.0} writes a second");
    }
    assert!(run.stall_ns < 50_000_000, "no write was done for {} ns", run.stall_ns);
}
