//! The features that a run has.

use std::fmt;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x0073_7761_726d;

macro_rules! features {
    ($($(#[doc = $what:literal])+ $feature:ident: $name:literal;)*) => {
        /// Something that a run has or has not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature {
            $($(#[doc = $what])+ $feature,)*
        }

        impl Feature {
            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|feature| feature.name() == name).copied()
            }

            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$feature),*];

            /// A name for reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$feature => $name,)*
                }
            }
        }
    };
}

features! {
    // Kinds of trees.
    /// B+-trees.
    BTrees: "B+-trees";
    /// B+-trees whose nodes are in blocks.
    Blocks: "nodes in blocks";
    /// LSM-trees.
    LsmTrees: "LSM-trees";
    /// Bε-trees.
    BeTrees: "Bε-trees";

    // The place.
    /// A layout that users may give, not the small one of tests.
    PublicLayout: "public layout";
    /// A drive with a volatile write cache; otherwise memory.
    Flash: "flash";
    /// A log device of its own, in memory.
    OwnLog: "own log";
    /// Data striped over two devices, in memory.
    Stripes: "stripes";
    /// A device that grows, in memory.
    Grows: "growing device";
    /// Hardly more room than the store needs.
    LittleRoom: "little room";
    /// Reads that take long now and then.
    Stalls: "stalls";

    // Openings.
    /// More memory than the least.
    LargeCache: "large cache";
    /// Several workers.
    Workers: "workers";
    /// Few tasks of a worker at a time.
    FewTasks: "few tasks";
    /// Each opening has other options.
    OtherOpenings: "other openings";
    /// Tasks lose their processor anywhere.
    Preempted: "preemption";
    /// Processors cost time.
    CpuCosts: "processor costs";
    /// Jobs begin however little is due.
    EagerJobs: "eager jobs";

    // Data.
    /// Several trees.
    SeveralTrees: "several trees";
    /// Keys up to the longest.
    LongKeys: "long keys";
    /// All keys have the same length.
    OneLength: "one length";
    /// Many keys have a long prefix in common.
    Prefixes: "shared prefixes";
    /// Many keys.
    ManyKeys: "many keys";
    /// Values up to the room of a page.
    LargeValues: "large values";
    /// Values with pages of their own.
    OverflowValues: "overflow values";

    // Operations.
    /// Several writes as one.
    Batches: "batches";
    /// Transactions that read before they write.
    Transactions: "transactions";
    /// Values that are replaced by themselves.
    Swaps: "swaps";
    /// Operands.
    Merges: "merges";
    /// An operator that removes and grows values.
    MixedOperator: "mixed operator";
    /// An operator that fails for a while.
    FailingOperator: "failing operator";
    /// Removals of keys.
    Removals: "removals";
    /// Removals of ranges.
    Ranges: "removals of ranges";
    /// Ranges that are whole trees.
    WholeRanges: "whole ranges";
    /// Snapshots and iterators that are held for long.
    HeldSnapshots: "held snapshots";
    /// Scans of ranges.
    Scans: "scans";
    /// Sorted records at once.
    Loads: "loads";
    /// Trees that become trees of another kind.
    Conversion: "conversion";
    /// Trees that get other names.
    Renames: "renames";
    /// Trees that are dropped and made again.
    Drops: "drops";
    /// Checkpoints on request.
    Checkpoints: "checkpoints";
    /// Compaction.
    Compaction: "compaction";
    /// Backups.
    Backups: "backups";
    /// Checks during other work.
    Checks: "checks";
    /// Commits that are not durable at once.
    Buffered: "buffered commits";

    // Ends of lives.
    /// Processes that are killed.
    Kills: "kills";
    /// Power that fails.
    PowerCuts: "power cuts";

    // Situations that few programs meet.
    /// Memtables that are frozen before they are full, so that little data makes many tables and flushes.
    EarlyMemtables: "early memtables";
    /// Commits that are staged although they have few writes.
    StagedCommits: "staged commits";
    /// Keys side by side that are written or removed together, and scanned.
    Neighbours: "neighbours";
    /// A few keys that most operations concern.
    HotKeys: "hot keys";
    /// Single reads that fail.
    ReadErrors: "read errors";
    /// No log is written, or none by some openings.
    NoLog: "no log";
}

/// Operations that are rare in most programs; each run has some of them all the time.
const RARE: [Feature; 7] = [
    Feature::Loads,
    Feature::Renames,
    Feature::Drops,
    Feature::Conversion,
    Feature::Compaction,
    Feature::Backups,
    Feature::WholeRanges,
];

/// Of these three are frequent.
const FREQUENT: usize = 3;

/// Most runs are to have a log: one of these may leave it out.
const LOG_LEFT_OUT_ONE_IN: u64 = 4;

const KINDS: [Feature; 4] = [Feature::BTrees, Feature::Blocks, Feature::LsmTrees, Feature::BeTrees];

/// Groups of features that say little without each other: failures that need a flush of little data, a scan
/// over many removals, or a dropped tree that nothing else has cut short.
const GROUPS: [Group; 5] = [
    Group {
        kind: Feature::LsmTrees,
        with: &[Feature::EarlyMemtables, Feature::EagerJobs, Feature::Ranges, Feature::Scans],
        without: &[],
        frequent: &[],
    },
    Group {
        kind: Feature::LsmTrees,
        with: &[Feature::StagedCommits, Feature::Batches, Feature::Neighbours, Feature::Scans],
        without: &[],
        frequent: &[],
    },
    Group {
        kind: Feature::BeTrees,
        with: &[Feature::EarlyMemtables, Feature::Preempted, Feature::OverflowValues, Feature::Buffered],
        without: &[Feature::Kills, Feature::PowerCuts, Feature::ReadErrors, Feature::Renames],
        frequent: &[Feature::Drops],
    },
    Group {
        kind: Feature::BeTrees,
        with: &[
            Feature::EarlyMemtables,
            Feature::Preempted,
            Feature::CpuCosts,
            Feature::Merges,
            Feature::HotKeys,
            Feature::HeldSnapshots,
            Feature::LargeValues,
            Feature::Scans,
        ],
        without: &[Feature::Kills, Feature::PowerCuts],
        frequent: &[],
    },
    Group {
        kind: Feature::BeTrees,
        with: &[
            Feature::EarlyMemtables,
            Feature::Flash,
            Feature::ReadErrors,
            Feature::OverflowValues,
            Feature::HotKeys,
            Feature::HeldSnapshots,
        ],
        without: &[],
        frequent: &[],
    },
];

/// Features that a run of one kind of trees has together.
struct Group {
    kind: Feature,
    with: &'static [Feature],
    without: &'static [Feature],
    frequent: &'static [Feature],
}

/// The features of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    drawn: u64,
    frequent: u64,
}

impl Features {
    /// Each with the same probability as not, but one kind of trees at least; and in half of the runs a group
    /// of them for sure.
    pub fn draw(seed: u64) -> Self {
        let random = &mut Pcg64::seed_from_u64(seed ^ STREAM);
        let mut drawn = random.random::<u64>() & ((1 << Feature::ALL.len()) - 1);
        let bit = |feature: Feature| 1 << feature as u64;
        if KINDS.iter().all(|kind| drawn & bit(*kind) == 0) {
            drawn |= KINDS.choose(random).map_or(0, |kind| bit(*kind));
        }
        if !seed.is_multiple_of(LOG_LEFT_OUT_ONE_IN) {
            drawn &= !bit(Feature::NoLog);
        }
        let mut frequent = 0;
        if random.random() {
            let mut rare = RARE;
            rare.shuffle(random);
            frequent = rare.iter().take(FREQUENT).fold(0, |bits, feature| bits | bit(*feature));
            drawn |= frequent;
        }
        let own = Self { drawn, frequent };
        if random.random() {
            let Group { kind, with, without, frequent } = &GROUPS[random.random_range(0..GROUPS.len())];
            let own = Self { frequent: frequent.iter().fold(0, |bits, feature| bits | bit(*feature)), ..own };
            return own.without(&KINDS).without(without).with(&[*kind]).with(with).with(frequent);
        }
        own.consistent()
    }

    /// Without the features that others exclude.
    fn consistent(mut self) -> Self {
        if self.has(Feature::Flash) {
            for excluded in [Feature::OwnLog, Feature::Stripes, Feature::Grows] {
                self.drawn &= !(1 << excluded as u64);
            }
        } else {
            for excluded in [Feature::PowerCuts, Feature::Stalls, Feature::ReadErrors] {
                self.drawn &= !(1 << excluded as u64);
            }
        }
        self
    }

    /// Whether a run has it.
    pub fn has(self, feature: Feature) -> bool {
        self.drawn & 1 << feature as u64 != 0
    }

    /// Whether there is a kind of trees.
    pub fn has_trees(self) -> bool {
        KINDS.iter().any(|kind| self.has(*kind))
    }

    /// Whether a run does it all the time.
    pub fn is_frequent(self, feature: Feature) -> bool {
        self.frequent & 1 << feature as u64 != 0
    }

    /// All that a run has.
    pub fn all(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |feature| self.has(*feature))
    }

    /// The same without some.
    #[must_use]
    pub fn without(self, features: &[Feature]) -> Self {
        let left_out = features.iter().fold(0, |bits, feature| bits | 1 << *feature as u64);
        Self { drawn: self.drawn & !left_out, frequent: self.frequent & !left_out }
    }

    /// The same with some more.
    #[must_use]
    pub fn with(self, features: &[Feature]) -> Self {
        let more = features.iter().fold(0, |bits, feature| bits | 1 << *feature as u64);
        Self { drawn: self.drawn | more, ..self }.consistent()
    }
}

impl fmt::Display for Features {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, feature) in self.all().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(formatter, "{comma}{}", feature.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_two_features_that_do_not_exclude_each_other_meet() {
        let runs: Vec<Features> = (0..2000).map(Features::draw).collect();
        for run in &runs {
            assert!(run.has_trees());
            assert!(!(run.has(Feature::Flash) && run.has(Feature::Stripes)));
        }
        for one in Feature::ALL {
            assert!(runs.iter().any(|run| !run.has(*one)), "{}", one.name());
            let met =
                Feature::ALL.iter().filter(|other| runs.iter().any(|run| run.has(*one) && run.has(**other)));
            // Without a simulated drive there are no power cuts, stalls or read errors.
            assert!(met.count() >= Feature::ALL.len() - 4, "{}", one.name());
        }
    }
}
