//! WiredTiger: the defaults get the advised memory, and the log with its checkpoints that the workload's
//! durability needs, as in the prediction; the advised side has its `WiredTiger.config`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::EngineAdvice;

use super::super::scratch::Scratch;
use super::super::turns::Side;
use super::{Opening, Stores};
use crate::engine::{self, Durability, EngineName};

pub(in super::super) fn is_compiled_in() -> anyhow::Result<()> {
    match EngineName::WiredTiger.is_compiled_in() {
        true => Ok(()),
        false => bail!(
            "this program was built without WiredTiger: run scripts/install-peers.sh, which installs its \
             package libwiredtiger-dev, and cargo build --release --features wiredtiger"
        ),
    }
}

/// Puts the advised file into the home of the advised side.
pub(in super::super) fn wiredtiger(
    workload: &Workload,
    advice: &EngineAdvice,
    seconds: u32,
    scratch: &Scratch,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<Stores> {
    let directory = |side: Side| scratch.join(side.name());
    let home = directory(Side::Advised);
    std::fs::create_dir(&home).with_context(|| format!("make {}", home.display()))?;
    let file = home.join("WiredTiger.config");
    std::fs::write(&file, &advice.file).with_context(|| format!("write {}", file.display()))?;
    let value = |name| advice.value(name).map(|value| format!("{name}={value}")).unwrap_or_default();
    let opening = |side| Opening {
        // Unused, as the settings below name the cache, or leave it at the default.
        cache_bytes: workload.memory_bytes,
        durability: Durability::Full,
        settings: Some(match side {
            Side::Default => engine::Settings {
                store: ["cache_size", "log", "transaction_sync", "checkpoint"].map(value).join(","),
                table: String::new(),
            },
            Side::Advised => engine::Settings { store: String::new(), table: value("leaf_page_max") },
        }),
    };
    Ok(Stores::new(EngineName::WiredTiger, (workload, seconds), directory, opening, interrupt))
}
