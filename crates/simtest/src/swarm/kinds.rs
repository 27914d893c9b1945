//! How trees are kept.

use flashgrain::{
    AppendOperator, BeTreeOptions, IndexKind, LsmCompression, LsmLayout, LsmOptions, LsmThrottling,
    NodeBlocks, TreeOptions,
};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::draw::{log_uniform, one_of, power_of_two};
use super::feature::{Feature, Features};
use super::site::Site;
use crate::world::MixedOperator;

const LAYOUTS: [LsmLayout; 4] =
    [LsmLayout::Leveled, LsmLayout::Tiered, LsmLayout::LazyLeveled, LsmLayout::SingleLevel];

const THROTTLINGS: [LsmThrottling; 3] =
    [LsmThrottling::Graded, LsmThrottling::TwoStage, LsmThrottling::RocksDb];

/// Options of a tree; the store may refuse them, as not all fit together.
pub fn draw(random: &mut Pcg64, features: Features, site: &Site) -> TreeOptions {
    let kinds: Vec<Feature> = [Feature::BTrees, Feature::Blocks, Feature::LsmTrees, Feature::BeTrees]
        .into_iter()
        .filter(|kind| features.has(*kind))
        .collect();
    let node_bytes = power_of_two(random, 4 << 10, site.node_bytes_max());
    let options = TreeOptions::new();
    // Of a size that the store decides, too.
    let options = if random.random_bool(0.8) { options.node_bytes(node_bytes as u32) } else { options };
    let options = match one_of(random, &kinds) {
        Feature::Blocks => {
            let blocks = power_of_two(random, 2, site.blocks_max());
            options.kind(IndexKind::BTree).node_bytes(4 << 10).node_blocks(NodeBlocks::Of(blocks as u32))
        }
        Feature::LsmTrees => options.kind(IndexKind::Lsm).lsm(lsm(random, site)),
        Feature::BeTrees => options.kind(IndexKind::BeTree).be_tree(be_tree(random, site)),
        _ => options.kind(IndexKind::BTree),
    };
    let mixed = features.has(Feature::MixedOperator) || features.has(Feature::FailingOperator);
    let operator = if mixed && random.random_bool(0.8) { MixedOperator::NAME } else { AppendOperator::NAME };
    options.merge_operator(operator)
}

/// B from the least on, F up to the most; most trees have few children, so that they are deep.
fn be_tree(random: &mut Pcg64, site: &Site) -> BeTreeOptions {
    let node_bytes = log_uniform(random, 8 << 10, site.be_node_bytes_max());
    let fanout =
        if random.random_bool(0.8) { log_uniform(random, 2, 16) } else { log_uniform(random, 2, 1024) };
    let mut options = BeTreeOptions::new();
    if random.random_bool(0.9) {
        options = options.node_bytes(node_bytes);
    }
    if random.random_bool(0.9) {
        options = options.fanout(fanout as u32);
    }
    if random.random_bool(0.3) {
        options = options.memtable_bytes(log_uniform(random, 16 << 10, site.cache_bytes_min() / 4));
    }
    options
}

fn lsm(random: &mut Pcg64, site: &Site) -> LsmOptions {
    let runs = log_uniform(random, 1, 8) as u32;
    let mut options = LsmOptions::new()
        .layout(one_of(random, &LAYOUTS))
        .fanout(if random.random_bool(0.9) {
            log_uniform(random, 2, 16)
        } else {
            log_uniform(random, 2, 1000)
        } as u32)
        .level_zero_runs(runs)
        .filter_bits_per_key(one_of(random, &[0.0, 0.5, 5.0, 10.0, 30.0]))
        .jobs(log_uniform(random, 1, 64) as u32)
        .parts(log_uniform(random, 1, 64) as u32)
        .level_zero_by_reads(random.random())
        .throttling(one_of(random, &THROTTLINGS))
        .compression(one_of(random, &[LsmCompression::None, LsmCompression::None, LsmCompression::Lz4]));
    if random.random() {
        options = options.table_bytes(site.segment_bytes() * log_uniform(random, 1, 4));
    }
    if random.random_bool(0.3) {
        options =
            options.memtable_bytes(log_uniform(random, site.segment_bytes(), site.cache_bytes_min() / 4));
    }
    if random.random_bool(0.3) {
        let slowed = runs + log_uniform(random, 0, 8) as u32;
        options = options.slowdown_runs(slowed).stop_runs(slowed + log_uniform(random, 1, 8) as u32);
    }
    options
}
