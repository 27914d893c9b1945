//! Copying a store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use flashgrain::{Backup, Builder, Db, Error as StoreError};
use flashgrain_profile::Error as ProfileError;
use flashgrain_report::unit;

use super::members::{Members, parse_members};
use super::options::StoreOptions;
use crate::exit::Usage;
use crate::interrupt::Interrupt;
use crate::output::{Context, print, print_json};

#[derive(Debug, Args)]
pub struct BackupArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// Place of the copy: a directory that is empty or is made, or a block device; or several with commas
    /// between them, over which the copy is striped.
    #[arg(value_name = "TARGET", value_parser = parse_members)]
    target: Members,
    /// The directory or block device of the copy's log, if that is to be another one.
    #[arg(long, value_name = "PATH", value_parser = parse_members)]
    target_log: Option<Members>,
    /// Allow overwriting this block device. Its contents are lost. Repeat it for each.
    #[arg(long, value_name = "PATH")]
    destroy_contents_of: Vec<PathBuf>,
    /// Copy this tree alone. Repeat it for each: where one tree is damaged, the others can be copied.
    #[arg(long, value_name = "NAME")]
    tree: Vec<String>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Interval at which a backup is checked for an interrupt.
const TICK: Duration = Duration::from_millis(20);

pub fn backup(arguments: &BackupArguments, context: &Context) -> anyhow::Result<()> {
    context.interrupt.watch()?;
    arguments.target.announce("the copy", context);
    arguments.check_places()?;
    let db = arguments.store.open_to_read(context)?;
    let target =
        arguments.target.0.iter().fold(Db::builder(), Builder::path).cache_bytes(arguments.store.cache);
    let target = arguments.target_log.iter().flat_map(|log| &log.0).fold(target, Builder::log_path);
    let target = arguments.destroy_contents_of.iter().fold(target, Builder::destroy_contents_of);
    let copied = copy(&db, &arguments.tree, target, &context.interrupt)?;
    if arguments.json {
        return print_json(&copied);
    }
    Ok(print(&format!(
        "copied {}, {}, {}\n",
        unit::things(copied.trees, "tree"),
        unit::things(copied.records, "record"),
        unit::bytes(copied.bytes as f64)
    ))?)
}

impl BackupArguments {
    /// The copy lies nowhere where the store does.
    fn check_places(&self) -> Result<(), Usage> {
        let places = |one: &Members, log: &Option<Members>| -> Vec<PathBuf> {
            one.0.iter().chain(log.iter().flat_map(|log| &log.0)).cloned().collect()
        };
        let own: Vec<PathBuf> = places(&self.store.store, &self.store.log)
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| own.contains(&path));
        match places(&self.target, &self.target_log).iter().find(|path| is_own(path)) {
            None => Ok(()),
            Some(path) => Err(Usage(format!(
                "{} is the store that is to be copied: name another place for the copy",
                path.display()
            ))),
        }
    }
}

/// Copies the store, or the trees that are named, unless the user wants an end: closing the source then ends
/// it, and the partial copy is removed.
fn copy(db: &Db, names: &[String], target: Builder, interrupt: &Interrupt) -> anyhow::Result<Backup> {
    let named = names.iter().map(|name| db.existing_tree(name)).collect::<Result<Vec<_>, _>>()?;
    let done = AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        let copier = std::thread::Builder::new().spawn_scoped(scope, || {
            let copied = match named.is_empty() {
                true => db.backup(target),
                false => db.backup_trees(&named.iter().collect::<Vec<_>>(), target),
            };
            done.store(true, Ordering::Release);
            copied
        })?;
        while !done.load(Ordering::Acquire) {
            if interrupt.is_wanted() {
                let _was_closed = db.clone().close();
                break;
            }
            std::thread::park_timeout(TICK);
        }
        Ok::<_, std::io::Error>(copier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match copied.context("start the thread that copies")? {
        Err(StoreError::Closed) if interrupt.is_wanted() => {
            interrupt.leaves("the copy was not complete and was removed, as far as it was in files");
            Err(ProfileError::Interrupted.into())
        }
        copied => Ok(copied?),
    }
}
