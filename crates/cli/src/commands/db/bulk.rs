//! Many records at a time: loading them, and copying a store.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use clap::Args;
use flashgrain::{Builder, Db};
use flashgrain_report::unit;
use serde_json::json;

use super::bytes::Notation;
use super::{Members, StoreOptions, TreeOptions, parse_members};
use crate::exit::Usage;
use crate::output::{Context, print, print_json};

#[derive(Debug, Args)]
pub struct LoadArguments {
    #[command(flatten)]
    tree: TreeOptions,
    /// A file with a line for each record, as `scan` prints them with --hex: key, tab, value. Without --hex both are taken as they are. The lines need not be sorted; of those with the same key the last
    /// one counts. `-` reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct BackupArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// Where to: a directory that is empty or is made, or a block device; or several with commas between them, over which the copy is striped.
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

/// What a record takes in memory beside its bytes.
const RECORD_BYTES: usize = 64;

type Record = (Vec<u8>, Vec<u8>);

/// Records from lines.
struct Lines<'a> {
    lines: Box<dyn BufRead>,
    notation: Notation,
    interrupt: &'a AtomicBool,
    number: u64,
}

pub fn load(arguments: &LoadArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let options = &arguments.tree;
    let lines: Box<dyn BufRead> = if arguments.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let name = || format!("open {}", arguments.file.display());
        Box::new(BufReader::new(File::open(&arguments.file).with_context(name)?))
    };
    let db = options.store.open()?;
    let tree = db.tree(&options.tree)?;
    let mut lines = Lines { lines, notation: options.notation, interrupt, number: 0 };
    loop {
        let records = lines.next_sorted()?;
        if records.is_empty() {
            break;
        }
        tree.load(records)?;
    }
    db.close()?;
    if arguments.json {
        return print_json(&json!({ "lines": lines.number }));
    }
    Ok(print(&format!(
        "loaded {} lines into the tree `{}`\n",
        unit::count(lines.number as f64),
        options.tree
    ))?)
}

impl Lines<'_> {
    /// The next records that fit into memory, sorted, each key once. None at the end.
    fn next_sorted(&mut self) -> anyhow::Result<Vec<Record>> {
        let (mut records, mut bytes, mut line) = (Vec::new(), 0, Vec::new());
        while bytes < SORTED_BYTES {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(flashgrain_profile::Error::Interrupted.into());
            }
            line.clear();
            if self.lines.read_until(b'\n', &mut line).context("read the records")? == 0 {
                break;
            }
            self.number += 1;
            let (key, value) = self.parse(line.strip_suffix(b"\n").unwrap_or(&line))?;
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

    fn parse(&self, line: &[u8]) -> Result<Record, Usage> {
        let wrong = |why: &str| Usage(format!("line {}: {why}", self.number));
        let tab = line.iter().position(|byte| *byte == b'\t');
        let tab = tab.ok_or_else(|| wrong("a key, a tab and a value are expected"))?;
        let parse = |part| self.notation.parse_bytes(part).map_err(|Usage(why)| wrong(&why));
        Ok((parse(&line[..tab])?, parse(&line[tab + 1..])?))
    }
}

pub fn backup(arguments: &BackupArguments) -> anyhow::Result<()> {
    let db = arguments.store.open()?;
    let target =
        arguments.target.0.iter().fold(Db::builder(), Builder::path).cache_bytes(arguments.store.cache);
    let target = arguments.target_log.iter().flat_map(|log| &log.0).fold(target, Builder::log_path);
    let target = arguments.destroy_contents_of.iter().fold(target, Builder::destroy_contents_of);
    let copied = db.backup(target)?;
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
