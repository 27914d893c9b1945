//! `flashgrain db`: stores from the command line.

mod backup;
mod bytes;
mod compact;
mod convert;
mod delete;
mod facts;
mod input;
mod kind;
mod load;
mod members;
mod merge;
mod options;
mod records;
mod trees;

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use flashgrain::Placement;
use flashgrain_report::unit;

use crate::exit::Usage;
use crate::output::{Context, print};
use crate::results;
use crate::units::{count_within, parse_positive_bytes};
use bytes::{ValueSource, write_value};
use options::{LookArguments, RangeOptions, StoreOptions, TreeOptions, with_shortages, with_tree};
use records::{Form, Printer};

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
    /// Make an empty tree, and say how it is kept: as a B+-tree, a Bε-tree, or an LSM-tree for a workload.
    CreateTree(trees::CreateTreeArguments),
    /// Print the value of a key.
    Get(GetArguments),
    /// Give a key a value; makes the tree if there is none of that name.
    Put(PutArguments),
    /// Write an operand over a key's value, for the merge operator of its tree.
    Merge(merge::MergeArguments),
    /// Remove a key, or all keys of a range.
    Del(delete::DeleteArguments),
    /// Print the records of a range in key order. `load` reads this output.
    Scan(ScanArguments),
    /// Print the content of each tree: its records, and the bytes that they take. It reads all of it.
    Trees(LookArguments),
    /// How a tree is kept: each of its settings, with its reason.
    Explain(trees::ExplainArguments),
    /// Remove a tree with all its records.
    Drop(trees::DropArguments),
    /// Give a tree another name.
    Rename(trees::RenameArguments),
    /// Keep a tree in another way: as a B+-tree, Bε-tree or LSM-tree, with nodes of another
    /// size.
    Convert(convert::ConvertArguments),
    /// Give many keys their values, a line each; makes the tree if there is none of that name.
    Load(load::LoadArguments),
    /// Copy the store, as it is now, to another place. The copy is a store: to restore it, open it, copy its
    /// files, or back it up to where it is wanted.
    Backup(backup::BackupArguments),
    /// Give the room back that removed records have left: the store's files become as short as its records
    /// allow.
    Compact(LookArguments),
    /// Read and verify everything that is in the store. It changes nothing without `--reclaim`.
    Check(CheckArguments),
    /// Print the trees and the numbers of a store.
    Stats(LookArguments),
}

#[derive(Debug, Args)]
struct CreateArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// A profile of the drive, or the folder of results with one, which decides the layout; `flashgrain tune`
    /// makes one.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Node size of trees whose creator names none, whatever the profile says.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    node_size: Option<u64>,
    /// Size of the log.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    log_size: Option<u64>,
    /// Keep each page at one place, one write per page: a baseline for measurements, not safe against
    /// crashes.
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
    /// Write the value to this file, exactly as it is; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Write the value to standard output exactly as it is, with nothing after it.
    #[arg(long, conflicts_with_all = ["json", "output"])]
    raw: bool,
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
    #[command(flatten)]
    range: RangeOptions,
    /// From the last key to the first.
    #[arg(long)]
    reverse: bool,
    /// Print at most this number of records.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u64>(..))]
    limit: Option<u64>,
    /// Leave the values out.
    #[arg(long)]
    keys_only: bool,
    /// How records are printed.
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Print one JSON object per record: the same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Args)]
struct CheckArguments {
    #[command(flatten)]
    look: LookArguments,
    /// Free pages of overflow values that a crash has left.
    #[arg(long)]
    reclaim: bool,
}

pub fn run(arguments: &DbArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Create(arguments) => create(arguments, context),
        Action::CreateTree(arguments) => trees::create_tree(arguments, context),
        Action::Get(arguments) => get(arguments, context),
        Action::Put(arguments) => put(arguments, context),
        Action::Merge(arguments) => merge::merge(arguments, context),
        Action::Del(arguments) => delete::delete(arguments, context),
        Action::Scan(arguments) => scan(arguments, context),
        Action::Trees(arguments) => trees::list(arguments, context),
        Action::Explain(arguments) => trees::explain(arguments, context),
        Action::Drop(arguments) => trees::drop_tree(arguments, context),
        Action::Rename(arguments) => trees::rename(arguments, context),
        Action::Convert(arguments) => convert::convert(arguments, context),
        Action::Load(arguments) => load::load(arguments, context),
        Action::Backup(arguments) => backup::backup(arguments, context),
        Action::Compact(arguments) => compact::compact(arguments, context),
        Action::Check(arguments) => check(arguments, context),
        Action::Stats(arguments) => facts::stats(&arguments.store.open_to_read(context)?, arguments.json),
    }
}

impl KeyArguments {
    fn key(&self) -> Result<Vec<u8>, Usage> {
        self.tree.notation.parse(&self.key)
    }
}

fn create(arguments: &CreateArguments, context: &Context) -> anyhow::Result<()> {
    let mut builder = arguments.store.builder(context);
    for path in &arguments.destroy_contents_of {
        builder = builder.destroy_contents_of(path);
    }
    if let Some(path) = &arguments.profile {
        builder = builder.profile(results::read_profile(path)?);
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
    let db = with_shortages(builder.create()?, context);
    let decisions = db.layout().to_vec();
    db.close()?;
    facts::layout(&decisions, arguments.json)
}

fn check(arguments: &CheckArguments, context: &Context) -> anyhow::Result<()> {
    let CheckArguments { look: LookArguments { store, json }, reclaim } = arguments;
    context.interrupt.watch()?;
    let db = if *reclaim { store.open(context)? } else { store.open_to_read(context)? };
    if *reclaim {
        context.interrupt.leaves("no record was changed; opening the store makes it whole again");
    }
    facts::check(&db, *reclaim, *json, &context.interrupt)?;
    Ok(db.close()?)
}

fn get(arguments: &GetArguments, context: &Context) -> anyhow::Result<()> {
    let options = &arguments.key.tree;
    let (key, db) = (arguments.key.key()?, options.store.open_to_read(context)?);
    let tree = db.existing_tree(&options.tree)?;
    let missing =
        || anyhow!("there is no key `{}` in the tree `{}`", options.notation.show(&key), options.tree);
    let output = arguments.raw.then_some(Path::new("-")).or(arguments.output.as_deref());
    if let Some(path) = output {
        return write_value(tree.reader(&key)?.ok_or_else(missing)?, path);
    }
    let value = tree.get(&key)?.ok_or_else(missing)?;
    if arguments.json {
        return Ok(print(&(records::json(options.notation, &key, Some(&value))? + "\n"))?);
    }
    Ok(print(&(options.notation.show(&value) + "\n"))?)
}

fn put(arguments: &PutArguments, context: &Context) -> anyhow::Result<()> {
    let options = &arguments.key.tree;
    let (key, value) = (arguments.key.key()?, arguments.value.open(options.notation)?);
    let db = options.store.open(context)?;
    with_tree(&db, (&options.tree, &flashgrain::TreeOptions::new()), |tree| value.insert(tree, &key))?;
    Ok(db.close()?)
}

fn scan(arguments: &ScanArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let options = &arguments.tree;
    let range = arguments.range.bounds(options.notation)?;
    let db = options.store.open_to_read(context)?;
    let records = db.existing_tree(&options.tree)?.range(range)?;
    let limit = arguments.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let records: Box<dyn Iterator<Item = _>> =
        if arguments.reverse { Box::new(records.rev()) } else { Box::new(records) };
    let out = BufWriter::new(std::io::stdout().lock());
    let form = if arguments.json { Form::Json } else { arguments.format };
    let mut printer = Printer::new(out, form, options.notation, arguments.keys_only)?;
    for record in records.take(limit) {
        if interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            context
                .interrupt
                .leaves(format!("printed only {} of the range", unit::things(printer.count, "record")));
            printer.finish()?;
            return Err(flashgrain_profile::Error::Interrupted.into());
        }
        let (key, value) = record?;
        printer.print(&key, &value)?;
    }
    Ok(printer.finish()?)
}
