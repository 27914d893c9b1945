//! A pool over real segments on a device.

use std::sync::Arc;

use flashgrain_device::Device;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use crate::Error;
use crate::class::class_bytes;
use crate::header::{BACK_START, FRONT_END, PAGE_HEADER_BYTES, PageId};
use crate::io_context::Devices;
use crate::layout::{Layout, LogExtent, Placement, SyncMethod};
use crate::page::Page;
use crate::poison::Poison;
use crate::pool::Pool;
use crate::segment::blocks::Undivided;
use crate::segment::{Location, Segments};
use crate::task::Executor;
use crate::worker::Harness;

/// A small store without a log.
pub(super) fn layout() -> Layout {
    Layout {
        sector_bytes: 512,
        unit_bytes: 64 << 10,
        segment_bytes: 256 << 10,
        segments_start_bytes: 1 << 20,
        pack_bytes: 16 << 10,
        first_segment_bytes: 0,
        log: LogExtent { start_bytes: 0, bytes: 0 },
        log_at_creation: LogExtent { start_bytes: 0, bytes: 0 },
        log_bytes_max: 0,
        log_block_bytes: 4096,
        placement: Placement::OutOfPlace,
        sync_method: SyncMethod::Dsync,
        read_ahead_bytes: 0,
        in_flight: 1,
        half_bandwidth_bytes: 0,
        node_bytes: 4096,
    }
}

/// A device with workers on the calling thread, and the layers upon it.
pub(super) struct World {
    pub device: Arc<SimDevice>,
    pub harness: Harness,
    pub segments: Arc<Segments>,
    pub pool: Arc<Pool>,
}

impl World {
    pub fn new(budget_bytes: u64, workers: usize) -> Self {
        let config = SimConfig { capacity_bytes: 256 << 20, ..SimConfig::named("905p").unwrap() };
        let device = Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap());
        let devices = Devices::new(Arc::clone(&device) as Arc<dyn Device>, None);
        let harness = Harness::new(&devices, workers);
        let poison = Poison::default();
        let (segments, pool) = above(&devices, harness.executor(), &poison, budget_bytes);
        Self { device, harness, segments, pool }
    }

    /// Reads that the device has answered.
    pub fn reads(&self) -> u64 {
        self.device.statistics().counters.reads
    }
}

/// Segments and a pool, both empty.
pub(super) fn above(
    devices: &Devices,
    executor: &Executor,
    poison: &Poison,
    budget_bytes: u64,
) -> (Arc<Segments>, Arc<Pool>) {
    let segments =
        Segments::new(&layout(), devices.clone(), executor.clone(), poison.clone(), &Undivided).unwrap();
    let pool = Pool::new(budget_bytes, Arc::clone(&segments) as _, executor.clone()).unwrap();
    (segments, pool)
}

/// Fills a page's used bytes. Their number and content depend on `seed` and the page's number.
pub(super) fn fill(page: Page<'_>, id: PageId, seed: u32) {
    let room = page.len_bytes() - PAGE_HEADER_BYTES - 4;
    let front_end = PAGE_HEADER_BYTES + 4 + seed.wrapping_mul(97) % (room / 2) / 4 * 4;
    let back_start = page.len_bytes() - seed.wrapping_mul(31) % (room / 2) / 4 * 4;
    page.set_word(FRONT_END, front_end);
    page.set_word(BACK_START, back_start);
    page.set_word(PAGE_HEADER_BYTES, seed);
    for at in (PAGE_HEADER_BYTES + 4..front_end).chain(back_start..page.len_bytes()).step_by(4) {
        page.set_word(at, word(id, seed, at));
    }
}

fn word(id: PageId, seed: u32, at: u32) -> u32 {
    (seed ^ id.0 as u32).wrapping_mul(0x9e37_79b9).wrapping_add(at)
}

/// The seed that a page was filled with; `None` if not all of it was. A page that changes meanwhile gives
/// anything.
pub(super) fn seed_of(page: Page<'_>, id: PageId) -> Option<u32> {
    let seed = page.word(PAGE_HEADER_BYTES);
    let (front_end, back_start) = (page.word(FRONT_END), page.word(BACK_START).min(page.len_bytes()));
    let mut used = (PAGE_HEADER_BYTES + 4..front_end.min(page.len_bytes()))
        .chain(back_start..page.len_bytes())
        .step_by(4);
    used.all(|at| page.word(at) == word(id, seed, at)).then_some(seed)
}

/// The seed of the page whose image is at `location`, read from the device. Parks.
pub(super) fn seed_at(segments: &Segments, id: PageId, location: Location) -> Result<Option<u32>, Error> {
    let bytes = class_bytes(location.class());
    let memory = flashgrain_device::Arena::new(bytes as usize).unwrap();
    // SAFETY: the arena has the bytes of the class and lives until the read is done.
    unsafe { segments.reader.read(location, id, memory.as_ptr())? };
    // SAFETY: as above; words are valid whatever they are, and the arena is aligned.
    let words = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), bytes as usize / 4) };
    Ok(seed_of(Page::new(words), id))
}
