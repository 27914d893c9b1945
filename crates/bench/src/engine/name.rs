//! Names of the engines, and those among them that this program can open.

use std::fmt::{self, Display};
use std::fs;

use ::flashgrain::IndexKind;
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::version::locked_version;
use super::{Engine, Setup, flashgrain};

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum EngineName {
    /// This project's store.
    Flashgrain,
    /// The same with LSM-trees.
    #[serde(rename = "flashgrain-lsm")]
    #[value(name = "flashgrain-lsm")]
    FlashgrainLsm,
    /// The same with Bε-trees.
    #[serde(rename = "flashgrain-be-tree")]
    #[value(name = "flashgrain-be-tree")]
    FlashgrainBeTree,
    /// A log-structured merge tree.
    RocksDb,
    /// The same with universal compaction, which writes less and takes more space.
    #[serde(rename = "rocksdb-universal")]
    #[value(name = "rocksdb-universal")]
    RocksDbUniversal,
    /// A B-tree with snapshot isolation: MongoDB's.
    WiredTiger,
    /// A B-tree mapped into memory.
    Lmdb,
    /// B-trees below a query language.
    Sqlite,
    /// A B-tree with locks on pages.
    BerkeleyDb,
    /// A log-structured merge tree in Rust.
    Fjall,
    /// Copy-on-write B-trees in Rust.
    Redb,
    /// B-trees with a buffer pool and tasks; its branch for NVMe drives has no transactions and no recovery.
    LeanStore,
}

/// Memory that an engine caches data in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// In memory of its own, of the size in its settings; its data go around the kernel's page cache.
    Own,
    /// In the kernel's page cache too, or only there: [`Setup::cache_bytes`] holds for it only if the runner
    /// limits the memory of the process, page cache included.
    PageCache,
}

type Open = fn(&Setup) -> anyhow::Result<Box<dyn Engine>>;

struct Compiled {
    name: EngineName,
    version: fn() -> String,
    open: Open,
}

/// The engines that this program was built with.
const COMPILED: &[Compiled] = &[
    Compiled {
        name: EngineName::Flashgrain,
        version: || locked_version("flashgrain"),
        open: |setup| flashgrain::open(setup, IndexKind::BTree),
    },
    Compiled {
        name: EngineName::FlashgrainLsm,
        version: || locked_version("flashgrain"),
        open: |setup| flashgrain::open(setup, IndexKind::Lsm),
    },
    Compiled {
        name: EngineName::FlashgrainBeTree,
        version: || locked_version("flashgrain"),
        open: |setup| flashgrain::open(setup, IndexKind::BeTree),
    },
    #[cfg(feature = "rocksdb")]
    Compiled {
        name: EngineName::RocksDb,
        version: || super::c::version(super::c::rocksdb()),
        open: |setup| super::c::open(super::c::rocksdb(), setup),
    },
    #[cfg(feature = "rocksdb")]
    Compiled {
        name: EngineName::RocksDbUniversal,
        version: || super::c::version(super::c::rocksdb_universal()),
        open: |setup| super::c::open(super::c::rocksdb_universal(), setup),
    },
    #[cfg(feature = "wiredtiger")]
    Compiled {
        name: EngineName::WiredTiger,
        version: || super::c::version(super::c::wiredtiger()),
        open: |setup| super::c::open(super::c::wiredtiger(), setup),
    },
    #[cfg(feature = "lmdb")]
    Compiled {
        name: EngineName::Lmdb,
        version: || super::c::version(super::c::lmdb()),
        open: |setup| super::c::open(super::c::lmdb(), setup),
    },
    #[cfg(feature = "sqlite")]
    Compiled {
        name: EngineName::Sqlite,
        version: || super::c::version(super::c::sqlite()),
        open: |setup| super::c::open(super::c::sqlite(), setup),
    },
    #[cfg(feature = "berkeleydb")]
    Compiled {
        name: EngineName::BerkeleyDb,
        version: || super::c::version(super::c::berkeleydb()),
        open: |setup| super::c::open(super::c::berkeleydb(), setup),
    },
    #[cfg(feature = "fjall")]
    Compiled { name: EngineName::Fjall, version: || locked_version("fjall"), open: super::fjall::open },
    #[cfg(feature = "leanstore")]
    Compiled {
        name: EngineName::LeanStore,
        version: || super::c::version(super::c::leanstore()),
        open: |setup| super::c::open(super::c::leanstore(), setup),
    },
    #[cfg(feature = "redb")]
    Compiled { name: EngineName::Redb, version: || locked_version("redb"), open: super::redb::open },
];

impl EngineName {
    /// All that there are, compiled in or not.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Whether it is this project's store.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Flashgrain | Self::FlashgrainLsm | Self::FlashgrainBeTree)
    }

    fn compiled(self) -> Option<&'static Compiled> {
        COMPILED.iter().find(|compiled| compiled.name == self)
    }

    /// Whether this program can open it.
    pub fn is_compiled_in(self) -> bool {
        self.compiled().is_some()
    }

    /// Version of the engine that is compiled in.
    pub fn version(self) -> Option<String> {
        self.compiled().map(|compiled| (compiled.version)())
    }

    /// Whether its records are there again when a directory is opened once more. If not, a process can open
    /// one store, once.
    pub fn keeps_records(self) -> bool {
        self != Self::LeanStore
    }

    /// Whether it has transactions of several operations, which can be rolled back.
    pub fn has_transactions(self) -> bool {
        self != Self::LeanStore
    }

    /// Memory that it caches data in.
    pub fn caching(self) -> Caching {
        match self {
            Self::Flashgrain
            | Self::FlashgrainLsm
            | Self::FlashgrainBeTree
            | Self::RocksDb
            | Self::RocksDbUniversal
            | Self::WiredTiger
            | Self::LeanStore => Caching::Own,
            Self::Lmdb | Self::Sqlite | Self::BerkeleyDb | Self::Fjall | Self::Redb => Caching::PageCache,
        }
    }

    /// How to get a program that can open it.
    pub fn how_to_get(self) -> String {
        let build = format!("cargo build --release -p flashgrain_bench --features {self}");
        match self {
            Self::Fjall | Self::Redb | Self::Flashgrain | Self::FlashgrainLsm | Self::FlashgrainBeTree => {
                build
            }
            Self::LeanStore => format!("LEANSTORE_DIR=SOURCES {build}"),
            _ => format!("scripts/install-peers.sh && {build}"),
        }
    }

    /// Opens or makes its store in the directory of `setup`, which is made if it is not there.
    ///
    /// # Errors
    /// Errors of the engine; or how to get a program that has the engine.
    pub fn open(self, setup: &Setup) -> anyhow::Result<Box<dyn Engine>> {
        let Some(compiled) = self.compiled() else {
            bail!("this program was built without {self} (feature \"{self}\"): run {}", self.how_to_get());
        };
        if setup.tables.is_empty() || setup.clients_max == 0 || setup.cores == 0 {
            bail!("{self} needs at least one table, one client and one core");
        }
        if setup.settings.is_some() && !matches!(self, Self::RocksDb | Self::WiredTiger | Self::BerkeleyDb) {
            bail!("{self} takes no settings as text");
        }
        if setup.page_bytes.is_some() && self != Self::WiredTiger {
            bail!("{self} has pages as the benchmarks choose them: only WiredTiger takes another size");
        }
        let dir = setup.dir.display();
        fs::create_dir_all(&setup.dir)
            .with_context(|| format!("{dir} is no directory, and none can be made there"))?;
        (compiled.open)(setup).with_context(|| format!("{self} in {dir}"))
    }
}

impl Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", clap::builder::PossibleValue::get_name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_features() {
        let manifest = include_str!("../../Cargo.toml");
        for name in EngineName::all().iter().filter(|name| !name.is_own()) {
            assert!(manifest.contains(&format!("\n{name} = [")), "{name} is no feature");
        }
    }
}
