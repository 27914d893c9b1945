//! `flashgrain db`: stores from the command line.

mod bulk;
mod bytes;
mod facts;

use std::io::Write;
use std::ops::Bound;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use flashgrain::{Builder, Db, Iter, Placement, Readable, Tree};
use flashgrain_profile::file;
use serde_json::json;

use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::parse_positive_bytes;
use bytes::{Notation, ValueSource};

/// Make stores, look into them, and change them.
#[derive(Debug, Args)]
pub struct DbArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a new store, and say how its layout was decided.
    Create(CreateArguments),
    /// Print the value of a key.
    Get(GetArguments),
    /// Give a key a value; makes the tree if there is none of that name.
    Put(PutArguments),
    /// Remove a key.
    Del(KeyArguments),
    /// Print the records of a range in key order.
    Scan(ScanArguments),
    /// Give many keys their values, a line each; makes the tree if there is none of that name.
    Load(bulk::LoadArguments),
    /// Copy the store, as it is now, to another place. The copy is a store: to restore it, open it, copy its files, or back it up to where it is wanted.
    Backup(bulk::BackupArguments),
    /// Read and verify everything that is in the store.
    Check(LookArguments),
    /// Print the trees and the numbers of a store.
    Stats(LookArguments),
}

/// Which store.
#[derive(Debug, Args)]
struct StoreOptions {
    /// The store: a directory or a block device, or several with commas between them if it is striped.
    #[arg(value_name = "STORE", value_parser = parse_members)]
    store: Members,
    /// The directory or block device of its log, if that is another one.
    #[arg(long, value_name = "PATH", value_parser = parse_members)]
    log: Option<Members>,
    /// Memory for pages.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "64MiB")]
    cache: u64,
}

/// The members of a striped device, or the one of another.
#[derive(Clone, Debug)]
struct Members(Vec<PathBuf>);

fn parse_members(text: &str) -> Result<Members, String> {
    let members: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
    if members.iter().any(|member| member.as_os_str().is_empty()) {
        return Err("expected a path, or several with commas between them".into());
    }
    Ok(Members(members))
}

/// Which tree of it.
#[derive(Debug, Args)]
struct TreeOptions {
    #[command(flatten)]
    store: StoreOptions,
    /// The tree.
    #[arg(long, value_name = "NAME", default_value = "default")]
    tree: String,
    #[command(flatten)]
    notation: Notation,
}

#[derive(Debug, Args)]
struct CreateArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// A profile of the drive, from which the layout is decided; `flashgrain tune` makes one.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Node size of trees whose creator names none, whatever the profile says.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    node_size: Option<u64>,
    /// Size of the log.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    log_size: Option<u64>,
    /// Keep each page at one place, one write per page: a baseline for measurements, not safe against crashes.
    #[arg(long)]
    in_place: bool,
    /// Allow overwriting this block device. Its contents are lost. Repeat it for each.
    #[arg(long, value_name = "PATH")]
    destroy_contents_of: Vec<PathBuf>,
    /// Print the decisions as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct KeyArguments {
    #[command(flatten)]
    tree: TreeOptions,
    /// The key.
    #[arg(value_name = "KEY")]
    key: String,
}

#[derive(Debug, Args)]
struct GetArguments {
    #[command(flatten)]
    key: KeyArguments,
    /// Write the value to this file, exactly as it is.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Print key and value as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PutArguments {
    #[command(flatten)]
    key: KeyArguments,
    #[command(flatten)]
    value: ValueSource,
}

#[derive(Debug, Args)]
struct ScanArguments {
    #[command(flatten)]
    tree: TreeOptions,
    /// First key.
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// First key that is not printed any more.
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Only keys that begin with this.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// From the last key to the first.
    #[arg(long)]
    reverse: bool,
    /// Print at most so many records.
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Leave the values out.
    #[arg(long)]
    keys_only: bool,
    /// Print one JSON object per record.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct LookArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &DbArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Create(arguments) => create(arguments),
        Action::Get(arguments) => get(arguments),
        Action::Put(arguments) => put(arguments),
        Action::Del(arguments) => delete(arguments),
        Action::Scan(arguments) => scan(arguments, context),
        Action::Load(arguments) => bulk::load(arguments, context),
        Action::Backup(arguments) => bulk::backup(arguments),
        Action::Check(arguments) => facts::check(&arguments.store.open()?, arguments.json),
        Action::Stats(arguments) => facts::stats(&arguments.store.open()?, arguments.json),
    }
}

impl StoreOptions {
    fn builder(&self) -> Builder {
        let builder = self.store.0.iter().fold(Db::builder(), Builder::path).cache_bytes(self.cache);
        self.log.iter().flat_map(|log| &log.0).fold(builder, Builder::log_path)
    }

    fn open(&self) -> anyhow::Result<Db> {
        Ok(self.builder().open()?)
    }
}

impl KeyArguments {
    fn key(&self) -> Result<Vec<u8>, Usage> {
        self.tree.notation.parse(&self.key)
    }
}

fn create(arguments: &CreateArguments) -> anyhow::Result<()> {
    let mut builder = arguments.store.builder();
    for path in &arguments.destroy_contents_of {
        builder = builder.destroy_contents_of(path);
    }
    if let Some(path) = &arguments.profile {
        builder = builder.profile(file::read(path)?);
    }
    if let Some(bytes) = arguments.node_size {
        builder = builder.node_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    if let Some(bytes) = arguments.log_size {
        builder = builder.log_bytes(bytes);
    }
    if arguments.in_place {
        builder = builder.placement(Placement::InPlace);
    }
    let db = builder.create()?;
    let decisions = db.layout().to_vec();
    db.close()?;
    facts::layout(&decisions, arguments.json)
}

fn get(arguments: &GetArguments) -> anyhow::Result<()> {
    let options = &arguments.key.tree;
    let (key, db) = (arguments.key.key()?, options.store.open()?);
    let value = db.existing_tree(&options.tree)?.get(&key)?;
    let Some(value) = value else {
        anyhow::bail!("there is no key `{}` in the tree `{}`", options.notation.show(&key), options.tree);
    };
    if let Some(path) = &arguments.output {
        return Ok(file::write_atomically(path, |writer| writer.write_all(&value))?);
    }
    let (key, value) = (options.notation.show(&key), options.notation.show(&value));
    if arguments.json {
        return print_json(&json!({ "key": key, "value": value }));
    }
    Ok(print(&(value + "\n"))?)
}

fn put(arguments: &PutArguments) -> anyhow::Result<()> {
    let options = &arguments.key.tree;
    let (key, value) = (arguments.key.key()?, arguments.value.read(options.notation)?);
    let db = options.store.open()?;
    db.tree(&options.tree)?.insert(key, value)?;
    Ok(db.close()?)
}

fn delete(arguments: &KeyArguments) -> anyhow::Result<()> {
    let (key, db) = (arguments.key()?, arguments.tree.store.open()?);
    db.existing_tree(&arguments.tree.tree)?.remove(key)?;
    Ok(db.close()?)
}

fn scan(arguments: &ScanArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let options = &arguments.tree;
    let db = options.store.open()?;
    let records = records(&db, &db.existing_tree(&options.tree)?, arguments)?;
    let limit = arguments.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let records: Box<dyn Iterator<Item = _>> =
        if arguments.reverse { Box::new(records.rev()) } else { Box::new(records) };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for record in records.take(limit) {
        if interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(flashgrain_profile::Error::Interrupted.into());
        }
        let (key, value) = record?;
        let key = options.notation.show(&key);
        match (arguments.json, arguments.keys_only) {
            (false, true) => writeln!(out, "{key}")?,
            (false, false) => writeln!(out, "{key}\t{}", options.notation.show(&value))?,
            (true, true) => writeln!(out, "{}", json!({ "key": key }))?,
            (true, false) => {
                writeln!(out, "{}", json!({ "key": key, "value": options.notation.show(&value) }))?;
            }
        }
    }
    Ok(out.flush()?)
}

fn records(db: &Db, tree: &Tree, arguments: &ScanArguments) -> anyhow::Result<Iter> {
    let parse =
        |text: &Option<String>| text.as_ref().map(|text| arguments.tree.notation.parse(text)).transpose();
    if let Some(prefix) = parse(&arguments.prefix)? {
        return Ok(db.prefix(tree, prefix)?);
    }
    let from = parse(&arguments.from)?.map_or(Bound::Unbounded, Bound::Included);
    let to = parse(&arguments.to)?.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(db.range(tree, (from, to))?)
}
