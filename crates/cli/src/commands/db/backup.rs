//! Many records at a time: loading them, and copying a store.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use flashgrain::{Backup, Builder, Db, Error as StoreError, Tree, VALUE_BYTES_MAX};
use flashgrain_profile::Error as ProfileError;
use flashgrain_report::unit;
use serde_json::json;

use super::kind::KindOptions;
use super::members::{Members, parse_members};
use super::options::{StoreOptions, TreeOptions, with_tree};
use super::records::{Form, Reader, Record};
use super::trees::there_is;
use crate::interrupt::Interrupt;
use crate::output::{Context, print, print_json};

#[derive(Debug, Args)]
pub struct LoadArguments {
    #[command(flatten)]
    tree: TreeOptions,
    #[command(flatten)]
    kind: KindOptions,
    /// A file with a line for each record, as `scan` prints them. They need not be sorted; of those with the
    /// same key the last one counts. `-` reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// How records are written: as text, each is a key, a tab and a value, in which a backslash begins an
    /// escape (`\t`, `\n`, `\\`, `\xNN`).
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Take keys and values of text as they are, backslashes too.
    #[arg(long, conflicts_with = "hex")]
    raw: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

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
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Bytes of records that are sorted and loaded at a time.
const SORTED_BYTES: usize = 64 << 20;

/// Memory of a record beside its bytes.
const RECORD_BYTES: usize = 64;

/// Interval at which a backup is checked for an interrupt.
const TICK: Duration = Duration::from_millis(20);

pub fn load(arguments: &LoadArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let (options, kind) = (&arguments.tree, arguments.kind.options()?);
    let lines: Box<dyn BufRead> = if arguments.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let name = || format!("open {}", arguments.file.display());
        Box::new(BufReader::new(File::open(&arguments.file).with_context(name)?))
    };
    let db = options.store.open(context)?;
    let mut reader = Reader::new(lines, arguments.format, options.notation, arguments.raw);
    if arguments.kind.is_given() && db.existing_tree(&options.tree).is_ok() {
        return Err(there_is(&options.tree).into());
    }
    with_tree(&db, (&options.tree, &kind), |tree| load_all(tree, &mut reader, context, interrupt))?;
    db.close()?;
    if arguments.json {
        return print_json(&json!({ "lines": reader.count }));
    }
    Ok(print(&format!(
        "loaded {} lines into the tree `{}`\n",
        unit::count(reader.count as f64),
        options.tree
    ))?)
}

/// Loads the records of `reader`, in pieces that fit into memory. Each piece is durable before the next one
/// is read, so that the number of loaded records is known, however it ends.
fn load_all(
    tree: &Tree,
    reader: &mut Reader,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<()> {
    loop {
        let before = reader.count;
        let loaded = next_sorted(tree, reader, interrupt).and_then(|records| {
            let is_end = records.is_empty();
            tree.load(records)?;
            Ok(is_end)
        });
        match loaded {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                let (name, count) = (tree.name(), unit::count(before as f64));
                if before == 0 {
                    return Err(error);
                }
                context.interrupt.leaves(format!(
                    "the first {count} records were loaded into the tree `{name}` and stay there, none of those behind them"
                ));
                let is_interrupt = matches!(error.downcast_ref(), Some(ProfileError::Interrupted));
                let left =
                    format!("the first {count} records were loaded into the tree `{name}` and stay there");
                return Err(if is_interrupt { error } else { error.context(left) });
            }
        }
    }
}

/// The next records that fit into memory, sorted, each key once. None at the end.
fn next_sorted(tree: &Tree, reader: &mut Reader, interrupt: &AtomicBool) -> anyhow::Result<Vec<Record>> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    let key_bytes_max = tree.key_bytes_max();
    while bytes < SORTED_BYTES {
        if interrupt.load(Ordering::Relaxed) {
            return Err(ProfileError::Interrupted.into());
        }
        let Some((key, value)) = reader.next()? else { break };
        let fits = (1..=key_bytes_max).contains(&key.len());
        if !fits || value.len() as u64 > VALUE_BYTES_MAX {
            let error = match fits {
                false => StoreError::KeyLength { got: key.len(), limit: key_bytes_max },
                true => StoreError::ValueLength { got: value.len() as u64, limit: VALUE_BYTES_MAX },
            };
            return Err(reader.wrong(&error.to_string()).into());
        }
        bytes += key.len() + value.len() + RECORD_BYTES;
        records.push((key, value));
    }
    // Stable, so that the last of equal ones is the last line.
    records.sort_by(|(one, _), (other, _)| one.cmp(other));
    records.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            std::mem::swap(later, kept);
        }
        same
    });
    Ok(records)
}

pub fn backup(arguments: &BackupArguments, context: &Context) -> anyhow::Result<()> {
    context.interrupt.watch()?;
    arguments.target.announce("the copy", context);
    let db = arguments.store.open_to_read(context)?;
    let target =
        arguments.target.0.iter().fold(Db::builder(), Builder::path).cache_bytes(arguments.store.cache);
    let target = arguments.target_log.iter().flat_map(|log| &log.0).fold(target, Builder::log_path);
    let target = arguments.destroy_contents_of.iter().fold(target, Builder::destroy_contents_of);
    let copied = copy(&db, target, &context.interrupt)?;
    if arguments.json {
        return print_json(&copied);
    }
    let count = |number: u64| unit::count(number as f64);
    Ok(print(&format!(
        "copied {} trees, {} records, {}\n",
        count(copied.trees),
        count(copied.records),
        unit::bytes(copied.bytes as f64)
    ))?)
}

/// Copies the store unless the user wants an end: closing the source then ends it, and the partial copy is
/// removed.
fn copy(db: &Db, target: Builder, interrupt: &Interrupt) -> anyhow::Result<Backup> {
    let done = AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        let copier = std::thread::Builder::new().spawn_scoped(scope, || {
            let copied = db.backup(target);
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
