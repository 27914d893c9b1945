//! RocksDB: an OPTIONS file.
//!
//! The model: a leveled LSM-tree whose blocks are cached by the kernel's page cache or by RocksDB, whichever
//! has the memory. Settings that it does not model (delayed writes, syncs in the middle of files, read-ahead
//! of compactions) follow from the profile by a rule, without a predicted gain. The rules for level 0 and for
//! delayed writes are those of "From Flash to 3D XPoint" §5.

mod choice;
mod configuration;
mod resting;
mod settings;
mod version;

use super::tuned::Tuned;
use super::{EngineAdvice, EngineName, Setting, explained, head};
use crate::drive::Drive;
use crate::workload::Workload;
use choice::choose;
use configuration::{DEFAULT, RocksDb};
use settings::{Section, settings};
use version::Version;

pub use resting::{RestingTree, predicted_rocksdb_rate};
pub(super) use version::VERSIONS;

pub(super) fn advise(version: &str, workload: &Workload, drive: &Drive) -> EngineAdvice {
    let version = Version::of(version);
    let default = RocksDb { version, ..DEFAULT };
    let mut tuned = Tuned { advised: default.clone(), default, workload, drive };
    choose(&mut tuned);
    let sectioned = settings(&tuned);
    let mut file = head(&format!("RocksDB {}", version.name()), "#", workload, drive);
    let release = version.release();
    file += &format!("\n[Version]\nrocksdb_version={release}\noptions_file_version=1.1\n\n");
    for section in Section::ALL {
        let own = sectioned.iter().filter(|(of, _)| *of == section);
        let own: Vec<Setting> = own.map(|(_, setting)| setting.clone()).collect();
        file += section.head();
        file.push('\n');
        file += &explained(&own, "#", |setting, value| format!("{}={value}\n", setting.name));
    }
    EngineAdvice {
        engine: EngineName::Rocksdb,
        version: version.name(),
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        settings: sectioned.into_iter().map(|(_, setting)| setting).collect(),
        trees: Vec::new(),
        notes: vec![
            "every write says by WriteOptions::sync whether it waits for the log; no file can say it"
                .to_owned(),
            "compression stays at the default: a profile does not know how well records compress".to_owned(),
        ],
        file,
    }
}
