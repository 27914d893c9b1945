//! Keeping a tree in another way.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use clap::Args;
use flashgrain::{Db, Error as StoreError, Readable as _, Tree, Value};
use flashgrain_profile::Error as ProfileError;
use flashgrain_report::unit;

use super::kind::{KindOptions, name_of};
use super::options::StoreOptions;
use crate::exit::Usage;
use crate::output::{Context, print};

#[derive(Debug, Args)]
pub struct ConvertArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// The tree.
    #[arg(value_name = "TREE")]
    tree: String,
    #[command(flatten)]
    kind: KindOptions,
}

/// Of names that trees have while one is converted.
const NEW: &str = ".converted";
const OLD: &str = ".before";

/// Copies the tree into one of the wanted kind, which takes its name then. Nobody else has the store open.
/// What ends early leaves the tree as it was; between the two renames a crash leaves both, under their own
/// names.
pub fn convert(arguments: &ConvertArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    if !arguments.kind.is_given() {
        return Err(Usage(
            "say how the tree is to be kept: `--kind lsm`, `--kind btree`, `--node-size`".into(),
        )
        .into());
    }
    let db = arguments.store.open(context)?;
    let name = &arguments.tree;
    let old = db.existing_tree(name)?;
    let options = arguments.kind.options_after(old.observed_workload())?;
    let (new_name, old_name) = (format!("{name}{NEW}"), format!("{name}{OLD}"));
    if db.existing_tree(&old_name).is_ok() {
        bail!("there is a tree `{old_name}`: rename or drop it first");
    }
    // What an earlier conversion has left behind when it was cut short.
    if db.existing_tree(&new_name).is_ok() {
        db.drop_tree(&new_name)?;
    }
    let options = match old.options().name_of_merge_operator() {
        Some(operator) => options.merge_operator(operator),
        None => options,
    };
    let new = db.tree_with(&new_name, &options)?;
    let copied = copy(&db, &old, &new, interrupt);
    let kind = new.options().index_kind();
    drop((old, new));
    let count = match copied {
        Ok(count) => count,
        Err(error) => {
            db.drop_tree(&new_name)?;
            db.close()?;
            return Err(error.context(format!("the tree `{name}` is as it was")));
        }
    };
    db.rename_tree(name, &old_name)?;
    db.rename_tree(&new_name, name)
        .with_context(|| format!("the trees `{old_name}` and `{new_name}` have the records of `{name}`"))?;
    db.drop_tree(&old_name)?;
    db.close()?;
    let records = unit::things(count, "record");
    Ok(print(&format!("the tree `{name}` is {} of {records} now\n", with_article(name_of(kind))))?)
}

fn with_article(name: &str) -> String {
    if name.starts_with('L') { format!("an {name}") } else { format!("a {name}") }
}

fn copy(db: &Db, old: &Tree, new: &Tree, interrupt: &AtomicBool) -> anyhow::Result<u64> {
    let snapshot = db.snapshot()?;
    let mut failed: Option<StoreError> = None;
    let records = snapshot.range::<&[u8]>(old, ..)?;
    let whole = |record: Result<(Value, Value), StoreError>| match record {
        Ok(record) if !interrupt.load(Ordering::Relaxed) => Some(record),
        Ok(_) => None,
        Err(error) => {
            failed = Some(error);
            None
        }
    };
    let count = new.load(records.map_while(whole))?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if interrupt.load(Ordering::Relaxed) {
        return Err(ProfileError::Interrupted.into());
    }
    Ok(count)
}
