//! The options of one opening of a store.

use flashgrain::{Builder, Durability, LsmCompression};
use rand_pcg::Pcg64;

use super::draw::{log_uniform, one_of};
use super::feature::{Feature, Features};
use super::site::Site;
use crate::world::MixedOperator;

/// Workers of a store that has several.
const WORKERS_MAX: u64 = 8;

/// Tasks of a worker that has few.
const FEW_TASKS_MAX: u64 = 8;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Memory for pages.
    pub cache_bytes: u64,
    workers: usize,
    tasks: Option<usize>,
    dirty_bytes: Option<u64>,
    /// How durable commits are that do not say.
    pub durability: Durability,
    log_compression: LsmCompression,
    writes_log: bool,
}

impl Opening {
    /// Drawn.
    pub fn draw(random: &mut Pcg64, features: Features, site: &Site) -> Self {
        let least = site.cache_bytes_min();
        // Up to more than the data.
        let most =
            if features.has(Feature::LargeCache) { (2 * site.data_bytes).max(4 * least) } else { least };
        let cache_bytes = log_uniform(random, least, most);
        let workers = if features.has(Feature::Workers) { log_uniform(random, 1, WORKERS_MAX) } else { 1 };
        let tasks = features.has(Feature::FewTasks).then(|| log_uniform(random, 1, FEW_TASKS_MAX) as usize);
        let dirty_bytes =
            (log_uniform(random, 1, 4) == 1).then(|| log_uniform(random, 64 << 10, cache_bytes));
        let durability = match features.has(Feature::Buffered) {
            true => one_of(random, &[Durability::None, Durability::Buffered, Durability::Sync]),
            false => Durability::Sync,
        };
        // Not drawn, so that seeds from before it was there still draw the same.
        let log_compression =
            if cache_bytes.is_multiple_of(2) { LsmCompression::Lz4 } else { LsmCompression::None };
        let some_write = features.has(Feature::OtherOpenings) && cache_bytes.is_multiple_of(5);
        let writes_log = !features.has(Feature::NoLog) || some_write;
        let workers = workers as usize;
        Self { cache_bytes, workers, tasks, dirty_bytes, durability, log_compression, writes_log }
    }

    /// A builder that opens so.
    pub fn of(&self, builder: Builder, operator: &MixedOperator) -> Builder {
        let builder = builder
            .cache_bytes(self.cache_bytes)
            .workers(self.workers)
            .durability(self.durability)
            .log_compression(self.log_compression)
            .write_log(self.writes_log)
            .merge_operator(operator.clone());
        let builder = self.tasks.into_iter().fold(builder, Builder::tasks_per_worker);
        self.dirty_bytes.into_iter().fold(builder, Builder::checkpoint_dirty_bytes)
    }
}
