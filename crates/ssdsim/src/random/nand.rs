//! Random flash.

use super::draw::Draw;
use super::host;
use super::read_times::Times;
use crate::config::{
    CollectConfig, CollectPolicy, HostConfig, Interleave, LayoutConfig, MappingCache, MappingConfig,
    MediumConfig, NandConfig, PlacementRule, WriteCacheConfig,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Erase blocks are drawn no larger than this.
const BLOCK_BYTES_MAX: u64 = 8 * MIB;

/// Data written in small pieces must read back slower by at least this factor.
const SMALL_WRITE_COST_MIN: f64 = 1.5;

/// Reads of data that were written in halves of a stripe must differ by this share from those of whole ones.
const HALF_COST_MIN: f64 = 0.25;

/// Reads of a chunk must be faster by at least this share at the hot offset.
const DROP_MIN: f64 = 0.10;

/// Read and program latency of cells of one to four bits, microseconds: ranges.
const CELLS: [((f64, f64), (f64, f64)); 4] = [
    ((20.0, 40.0), (150.0, 300.0)),
    ((35.0, 70.0), (300.0, 900.0)),
    ((45.0, 100.0), (300.0, 1000.0)),
    ((80.0, 150.0), (800.0, 2000.0)),
];

/// Chunks of a stripe: powers of two, and as real drives have it three times those.
const CHUNKS_PER_STRIPE: [u64; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];

/// Stripes are drawn no larger than this, or than a chunk.
const STRIPE_BYTES_MAX: u64 = 384 * KIB;

/// Share of chunks of several pages that are no power of two of them.
const ODD_FRACTION: f64 = 0.3;

/// A size of whole pages near a power of two of them, such as 40, 48 or 56 KiB for 32 KiB.
fn odd(draw: &mut Draw, bytes: u64, page: u64) -> u64 {
    let pages = bytes / page;
    let eighths = draw.one_of(&[10, 12, 12, 12, 14]);
    (pages * eighths / 8).max(1) * page
}

/// Draws until the layout shows from outside.
pub(super) fn drive(draw: &mut Draw, sector_bytes: u32) -> (HostConfig, MediumConfig, u64) {
    loop {
        let host = host(draw);
        let mut nand = array(draw);
        if layout(draw, &mut nand, &host, sector_bytes).is_some() {
            let dies = dies(&nand);
            return (host, MediumConfig::Nand(Box::new(nand)), (draw.power_of_two(1, 4) * dies) << 30);
        }
    }
}

fn dies(nand: &NandConfig) -> u64 {
    u64::from(nand.channels * nand.chips_per_channel * nand.dies_per_chip)
}

/// Dies that can work at the same time.
fn servers(nand: &NandConfig) -> u64 {
    match nand.interleave {
        Interleave::Dies => dies(nand),
        Interleave::ChipBusy => u64::from(nand.channels * nand.chips_per_channel),
    }
}

/// Everything but the layout.
fn array(draw: &mut Draw) -> NandConfig {
    let bits = draw.one_of(&[1, 2, 3, 3, 3, 4]);
    let ((read_low, read_high), (program_low, program_high)) = CELLS[bits - 1];
    let (read, program) = (draw.between(read_low, read_high), draw.between(program_low, program_high));
    let spread = draw.unit() * 0.5;
    // The pages of a row's cells differ evenly around the mean.
    let by_type = |mean: f64| -> Vec<f64> {
        let place = |index: usize| if bits == 1 { 0.0 } else { index as f64 / (bits - 1) as f64 - 0.5 };
        (0..bits).map(|index| (mean * (1.0 + spread * place(index)) * 10.0).round() / 10.0).collect()
    };
    let planes_per_die = draw.power_of_two(1, 4) as u32;
    let page_bytes = draw.power_of_two(4 * KIB, 16 * KIB) as u32;
    let row_bytes = u64::from(page_bytes * planes_per_die);
    NandConfig {
        channels: draw.power_of_two(4, 16) as u32,
        chips_per_channel: draw.power_of_two(1, 4) as u32,
        dies_per_chip: draw.power_of_two(1, 4) as u32,
        planes_per_die,
        pages_per_block: draw.power_of_two(64, 512.min(BLOCK_BYTES_MAX / row_bytes)) as u32,
        page_bytes,
        over_provisioning: draw.between(0.15, 0.3),
        read_us: by_type(read),
        program_us: by_type(program),
        erase_us: draw.between(2e3, 8e3).round(),
        jitter: draw.unit() * 0.05,
        channel_mega_transfers_per_s: draw.between(200.0, 2400.0).round(),
        channel_command_ns: draw.between(100.0, 400.0) as u64,
        interleave: if draw.chance(0.15) { Interleave::ChipBusy } else { Interleave::Dies },
        multi_plane: planes_per_die > 1 && draw.chance(0.8),
        reads_first: draw.chance(0.9),
        suspend_program: draw.chance(0.5),
        suspend_erase: draw.chance(0.5),
        suspend_us: draw.between(5.0, 30.0).round(),
        misaligned_read_us: 0.0,
        mapping: mapping(draw),
        write_cache: WriteCacheConfig { bytes: draw.power_of_two(MIB, 64 * MIB), volatile: draw.chance(0.7) },
        layout: LayoutConfig {
            stripe_bytes: 0,
            chunk_bytes: 0,
            desirable_write_bytes: 0,
            small_write_dies: 0,
            placement: PlacementRule::InTurn,
        },
        collect: CollectConfig {
            policy: draw.one_of(&[CollectPolicy::Greedy, CollectPolicy::CostBenefit, CollectPolicy::Fifo]),
            ..CollectConfig::default()
        },
    }
}

fn mapping(draw: &mut Draw) -> MappingConfig {
    let cache = match draw.unit() {
        share if share < 0.7 => MappingCache::Whole,
        share if share < 0.9 => MappingCache::PagesBytes(draw.power_of_two(MIB, 32 * MIB)),
        _ => MappingCache::EntriesBytes(draw.power_of_two(4 * MIB, 32 * MIB)),
    };
    MappingConfig {
        unit_bytes: 4096,
        entry_bytes: draw.one_of(&[4, 8]),
        cache,
        write_back: true,
        lookup_ns: draw.between(50.0, 500.0) as u64,
    }
}

/// Gives `nand` a layout; `None` if this one would not show from outside.
fn layout(draw: &mut Draw, nand: &mut NandConfig, host: &HostConfig, sector_bytes: u32) -> Option<()> {
    let page = u64::from(nand.page_bytes);
    let times = Times::new(nand, host);
    let chunk = if draw.chance(0.5) {
        // A chunk is a page, and reads that begin or end inside of one take longer.
        let drop = draw.between(DROP_MIN, 0.4);
        let aligned_us = times.one_chunk(page);
        let gained_us = aligned_us - times.two_halves(page);
        nand.misaligned_read_us = ((aligned_us * drop / (1.0 - drop) + gained_us) * 10.0).round() / 10.0;
        page
    } else {
        // Doublings of the page, and a half, a quarter and three quarters more: not all drives count in
        // powers of two.
        let chunk = draw.power_of_two(2 * page, (512 * KIB).max(2 * page));
        let chunk = if draw.chance(ODD_FRACTION) { odd(draw, chunk.min(256 * KIB), page) } else { chunk };
        let drop = 1.0 - times.two_halves(chunk) / times.one_chunk(chunk);
        if drop < DROP_MIN {
            return None;
        }
        chunk
    };
    let fitting: Vec<u64> = CHUNKS_PER_STRIPE
        .into_iter()
        .filter(|chunks| chunk * chunks <= STRIPE_BYTES_MAX.max(chunk))
        .collect();
    let stripe = chunk * draw.one_of(&fitting);
    // A smaller desirable write shows only if it makes smaller parts: see `LayoutConfig`.
    let servers = servers(nand);
    let half = chunk == stripe && chunk / 2 >= u64::from(sector_bytes.max(4096)) && draw.chance(0.5);
    let half_shows = [16 * KIB, 64 * KIB, 256 * KIB, MIB].into_iter().any(|read| {
        let (whole_us, half_us) =
            (times.spread(read, chunk, servers), times.spread(read, chunk / 2, servers));
        (whole_us / half_us - 1.0).abs() >= HALF_COST_MIN
    });
    let desirable = if half && half_shows { chunk / 2 } else { stripe };
    nand.layout.stripe_bytes = stripe;
    nand.layout.chunk_bytes = chunk;
    nand.layout.desirable_write_bytes = desirable;
    let part = chunk.min(desirable);
    let striped_us = times.spread(MIB, part, servers);
    let wanted = draw.between(SMALL_WRITE_COST_MIN, 4.0);
    let few = (0..=servers.ilog2()).rev().map(|exponent| 1_u64 << exponent).filter(|few| *few < servers);
    let cost = |few: u64| times.spread(MIB, 4 * KIB, few) / striped_us;
    let enough = few.into_iter().find(|few| cost(*few) >= wanted)?;
    nand.layout.small_write_dies = enough as u32;
    // Room for a row of every die, and as much again on its way to flash.
    let rows = 2 * dies(nand) * page * u64::from(nand.planes_per_die);
    nand.write_cache.bytes = nand.write_cache.bytes.max(rows);
    Some(())
}
