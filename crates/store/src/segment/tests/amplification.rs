//! Bytes written for each byte of a changed page, at several shares of the space in use.
//! `FLASHGRAIN_AMPLIFICATION=1 cargo test --release -p flashgrain --lib amplification -- --nocapture` prints
//! all of it.

use std::sync::atomic::Ordering;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::model::{Durable, Model};
use super::*;

const SEGMENTS: u64 = 256;
const UNIT_BYTES: u32 = 64 << 10;

/// How often every page is changed on average before, and while, it is counted.
const ROUNDS: u64 = 3;

/// How pages of 4 KiB are filled.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// As after random inserts: half to full, ln 2 on average.
    Grown,
    /// As after inserts in the order of the keys: there is nothing to leave out.
    Full,
}

impl Leaves {
    fn used_bytes(self, random: &mut Pcg64) -> u32 {
        match self {
            // A leaf's share s has the density 1 / (s² ln 2) between a half and 1 (Yao 1978), whose mean is
            // ln 2.
            Self::Grown => (2048.0 / (1.0 - random.random_range(0.0..0.5f64))) as u32,
            Self::Full => 4096,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Updates {
    Uniform,
    /// Nine of ten to a tenth of the pages.
    Skewed,
}

impl Updates {
    fn page(self, pages: u64, random: &mut Pcg64) -> u64 {
        let hot = pages / 10;
        // Hot pages lie all over the place.
        let spread = |number: u64| 1 + number * 7919 % pages;
        match self {
            Self::Skewed if random.random_bool(0.9) => spread(random.random_range(0..hot)),
            Self::Skewed => spread(random.random_range(hot..pages)),
            Self::Uniform => spread(random.random_range(0..pages)),
        }
    }
}

/// Pages that, in memory, would take this share of the space, and the borders that their images keep within.
#[derive(Clone, Copy)]
struct Case {
    updates: Updates,
    leaves: Leaves,
    percent: u64,
    pack_bytes: u32,
    /// Whether the store is closed and opened again before it is counted.
    reopened: bool,
}

const CASE: Case = Case {
    updates: Updates::Uniform,
    leaves: Leaves::Grown,
    percent: 80,
    pack_bytes: UNIT_BYTES,
    reopened: false,
};

/// The source of changes of pages.
struct Changes {
    updates: Updates,
    /// Used bytes of each page.
    used_bytes: Vec<u32>,
    random: Pcg64,
}

impl Changes {
    fn new(case: Case, capacity_bytes: u64) -> Self {
        let pages = capacity_bytes / 100 * case.percent / 4096;
        let mut random = Pcg64::seed_from_u64(1);
        let used_bytes = (0..pages).map(|_| case.leaves.used_bytes(&mut random)).collect();
        Self { updates: case.updates, used_bytes, random }
    }

    fn change(&self, model: &Model, id: u64) {
        model.change(id, 0, self.used_bytes[id as usize - 1]).unwrap();
    }

    fn all(&self, model: &Model) {
        (1..=self.used_bytes.len() as u64).for_each(|id| self.change(model, id));
    }

    fn some(&mut self, model: &Model) {
        let pages = self.used_bytes.len() as u64;
        for _ in 0..ROUNDS * pages {
            let id = self.updates.page(pages, &mut self.random);
            self.change(model, id);
        }
    }
}

/// The writes while pages were changed.
fn written(case: Case) -> (Written, Usage) {
    let mut world = World::large();
    let segment_bytes = 4 * u64::from(UNIT_BYTES);
    let capacity = SEGMENTS * segment_bytes;
    let layout = Layout {
        unit_bytes: UNIT_BYTES,
        segment_bytes,
        pack_bytes: case.pack_bytes,
        segments_start_bytes: world.devices.device(Role::Data).capacity_bytes() - capacity,
        ..layout(Placement::OutOfPlace)
    };
    let mut changes = Changes::new(case, capacity);
    let mut model = busy_model(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    changes = world.harness.run(move || {
        changes.all(&own);
        changes.some(&own);
        own.checkpoint().unwrap();
        changes
    });
    if case.reopened {
        model.segments.upkeep.stop();
        model = busy_model(&world, &layout, model.durable());
    }
    let before = model.segments.written();
    let own = Arc::clone(&model);
    world.harness.run(move || changes.some(&own));
    (model.segments.written().since(&before), model.segments.usage())
}

/// One with always more to come.
fn busy_model(world: &World, layout: &Layout, durable: Durable) -> Arc<Model> {
    let model = Model::new(world, layout, durable);
    model.dirty_bytes.store(1, Ordering::Relaxed);
    model
}

/// The least that a cleaner can write for each byte of an image, if all images are equally likely to change
/// next and this share of the space is live: the solution of `share = (1 - v) / -ln v` for the share `v` that
/// is live in the segments that it cleans gives `1 / (1 - v)` (Menon 1995; Desnoyers 2012).
fn least(share: f64) -> f64 {
    let (mut low, mut high) = (1e-9_f64, 1.0 - 1e-9);
    for _ in 0..100 {
        let victim = (low + high) / 2.0;
        if (1.0 - victim) / -victim.ln() < share { low = victim } else { high = victim }
    }
    1.0 / (1.0 - low)
}

fn said(case: Case) -> Written {
    let (written, usage) = written(case);
    let images = usage.live_bytes as f64 / usage.bytes as f64;
    let pages = case.percent as f64 / 100.0;
    println!(
        "{:?} updates of {:?} leaves, {}borders of {:>2} KiB: pages {} % and images {:.0} % of the space: {:.2} bytes written for each of a changed page (at equal chances at least {:.2}), {:.1} % in whole units; {:.2} bytes read for each that was moved",
        case.updates,
        case.leaves,
        if case.reopened { "reopened, " } else { "" },
        case.pack_bytes >> 10,
        case.percent,
        100.0 * images,
        written.write_amplification(),
        images / pages * least(images),
        100.0 * written.full_unit_share(),
        written.read_per_moved_byte()
    );
    written
}

#[test]
fn changed_pages_cost_little_more_than_their_own_bytes() {
    if std::env::var_os("FLASHGRAIN_AMPLIFICATION").is_some() {
        for percent in [60, 70, 80, 90, 95] {
            for updates in [Updates::Uniform, Updates::Skewed] {
                let case = Case { updates, percent, ..CASE };
                said(case);
                said(Case { pack_bytes: 16 << 10, ..case });
                if percent <= 80 {
                    said(Case { leaves: Leaves::Full, ..case });
                }
            }
        }
    }
    let (uniform, skewed) = (said(CASE), said(Case { updates: Updates::Skewed, ..CASE }));
    let in_packs = said(Case { pack_bytes: 16 << 10, ..CASE });
    let reopened = said(Case { updates: Updates::Skewed, reopened: true, ..CASE });
    assert!(uniform.write_amplification() <= 1.25, "{uniform:?}");
    assert!(skewed.write_amplification() <= 1.05, "{skewed:?}");
    // Images that were written before it was opened are not all equally old.
    assert!(reopened.write_amplification() <= skewed.write_amplification() + 0.05, "{reopened:?}");
    assert!(in_packs.write_amplification() <= 1.35, "{in_packs:?}");
    for written in [uniform, skewed, in_packs] {
        assert!(written.full_unit_share() >= 0.95, "{written:?}");
        assert!(written.read_per_moved_byte() <= 2.0, "{written:?}");
    }
}
