//! The store of this project: the advised one is made by the advised command.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, ensure};
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::EngineAdvice;
use flashgrain_profile::{DeviceProfile, file};

use super::super::program;
use super::super::scratch::Scratch;
use super::super::turns::Side;
use super::{Opening, Stores};
use crate::engine::{Durability, EngineName, flashgrain};
use crate::workload::TABLES;

/// Makes the advised store; the default one is made when it is opened first.
pub(in super::super) fn flashgrain(
    workload: &Workload,
    advice: &EngineAdvice,
    seconds: u32,
    profile: &DeviceProfile,
    scratch: &Scratch,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<Stores> {
    let directory = |side: Side| scratch.join(side.name());
    make(advice, profile, &flashgrain::store_in(&directory(Side::Advised)), scratch, interrupt)?;
    let cache_bytes = advice.value("cache_bytes").and_then(|bytes| bytes.parse().ok());
    let cache_bytes = cache_bytes.context("the advice names no cache")?;
    let opening = |side| Opening {
        cache_bytes,
        durability: match advice.value("durability").filter(|_| side == Side::Advised) {
            Some(_) => Durability::Buffered,
            None => Durability::Full,
        },
        settings: None,
    };
    Ok(Stores::new(EngineName::Flashgrain, (workload, seconds), directory, opening, interrupt))
}

/// Runs the advised script.
fn make(
    advice: &EngineAdvice,
    profile: &DeviceProfile,
    store: &std::path::Path,
    scratch: &Scratch,
    interrupt: &AtomicBool,
) -> anyhow::Result<()> {
    let (script, learned) = (scratch.join("create.sh"), scratch.join("profile.json"));
    std::fs::write(&script, &advice.file).with_context(|| format!("write {}", script.display()))?;
    file::write(&learned, profile)?;
    if let Some(parent) = store.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
    }
    let this = std::env::current_exe().context("find this program")?;
    let mut command = Command::new("/bin/sh");
    command.arg(&script).env("STORE", store).env("PROFILE", &learned).env("FLASHGRAIN", this);
    TABLES.first().map(|name| command.env("TREE", name));
    program::output(&mut command, &scratch.join("log"), interrupt).context("make the advised store")?;
    ensure!(store.exists(), "the advised command has made no store at {}", store.display());
    Ok(())
}
