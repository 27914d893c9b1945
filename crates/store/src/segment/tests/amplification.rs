//! How much is written for each byte of a changed page, at several shares of the space in use.
//! `FLASHGRAIN_AMPLIFICATION=1 cargo test -p flashgrain amplification -- --nocapture` prints all of it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::model::{Durable, Model};
use super::*;

const SEGMENTS: u64 = 256;

/// How often every page is changed on average before, and while, it is counted.
const ROUNDS: u64 = 3;

/// Of pages of 4 KiB, as full as leaves are after random inserts: half to full, ln 2 on average.
fn used_bytes(random: &mut Pcg64) -> u32 {
    (2048.0 * (random.random_range(0.0..1.0f64)).exp2()) as u32
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

/// What was written while pages were changed that, in memory, would take so many percent of the space.
fn written(updates: Updates, percent: u64) -> (Written, Usage) {
    let start = 1 << 20;
    let segment_bytes = 256 << 10;
    let capacity = SEGMENTS * segment_bytes;
    let mut world = World::in_memory(start + capacity, 0);
    let layout = Layout {
        unit_bytes: 64 << 10,
        segment_bytes,
        segments_start_bytes: start,
        ..layout(Placement::OutOfPlace)
    };
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    let before = world.harness.run(move || {
        let pages = capacity / 100 * percent / 4096;
        let mut random = Pcg64::seed_from_u64(1);
        (1..=pages).for_each(|id| own.change(id, 0, used_bytes(&mut random)).unwrap());
        let mut change = || {
            let id = updates.page(pages, &mut random);
            own.change(id, 0, used_bytes(&mut random)).unwrap();
        };
        (0..ROUNDS * pages).for_each(|_| change());
        let before = own.segments.written();
        (0..ROUNDS * pages).for_each(|_| change());
        before
    });
    (model.segments.written().since(&before), model.segments.usage())
}

#[test]
fn changed_pages_cost_little_more_than_their_own_bytes() {
    let of = |updates: Updates, percent: u64| {
        let (written, usage) = written(updates, percent);
        let images = 100.0 * usage.live_bytes as f64 / (usage.segments * usage.segment_bytes) as f64;
        println!(
            "{updates:?}, pages {percent} % of the space, images {images:.0} %: {:.2} bytes written for each of a changed page, {:.1} % in whole units",
            written.write_amplification(),
            100.0 * written.full_unit_share()
        );
        written
    };
    let more = std::env::var_os("FLASHGRAIN_AMPLIFICATION").map_or(&[][..], |_| &[60, 70, 90, 100]);
    for percent in more.iter().copied() {
        of(Updates::Uniform, percent);
        of(Updates::Skewed, percent);
    }
    let (uniform, skewed) = (of(Updates::Uniform, 80), of(Updates::Skewed, 80));
    // Few and small segments, of which every checkpoint half fills some units: large stores do better.
    assert!(uniform.write_amplification() <= 1.7, "{uniform:?}");
    assert!(skewed.write_amplification() <= 1.35, "{skewed:?}");
    assert!(uniform.full_unit_share() >= 0.8, "{uniform:?}");
}
