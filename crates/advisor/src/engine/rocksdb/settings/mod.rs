//! The settings of an OPTIONS file, by section.

mod background;
mod chosen;
mod levels;
mod tables;

use flashgrain_cost::lsm::Metadata;

use super::super::Setting;
use super::super::tuned::Tuned;
use super::configuration::RocksDb;
use background::{bytes_per_sync, delayed_rate, jobs, read_ahead, subcompactions};
use levels::{file_bytes, level_one, memtable, multiplier, slowdown, trigger};
use tables::{block, cache, cached_metadata, filter};

/// Section of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Database,
    Family,
    Table,
}

impl Section {
    pub const ALL: [Self; 3] = [Self::Database, Self::Family, Self::Table];

    pub fn head(self) -> &'static str {
        match self {
            Self::Database => "[DBOptions]",
            Self::Family => "[CFOptions \"default\"]",
            Self::Table => "[TableOptions/BlockBasedTable \"default\"]",
        }
    }
}

/// All, those that stay at the default included.
pub(super) fn settings(tuned: &Tuned<'_, RocksDb>) -> Vec<(Section, Setting)> {
    let mut settings = vec![
        (Section::Database, jobs(tuned)),
        (Section::Database, subcompactions(tuned)),
        (Section::Database, bytes_per_sync(tuned)),
        (Section::Database, read_ahead(tuned)),
        (Section::Database, delayed_rate(tuned)),
        (Section::Family, memtable(tuned)),
        (Section::Family, file_bytes(tuned)),
        (Section::Family, level_one(tuned)),
        (Section::Family, trigger(tuned)),
        (Section::Family, slowdown(tuned)),
        (Section::Family, multiplier(tuned)),
        (Section::Table, block(tuned)),
        (Section::Table, filter(tuned)),
        (Section::Table, cache(tuned)),
    ];
    if tuned.advised.tree_for(tuned.workload).metadata == Metadata::Cached {
        settings.extend(cached_metadata(tuned).map(|setting| (Section::Table, setting)));
    }
    settings
}
