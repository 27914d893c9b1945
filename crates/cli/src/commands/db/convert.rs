//! Keeping a tree in another way.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
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

/// Suffix of the name of the tree that one is converted into.
const NEW: &str = ".converted";

/// Copies the tree into one of the wanted kind, which then takes its place. No other process has the store
/// open. A conversion that ends early leaves the tree as it was; a crash may leave the other one, too.
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
    let new_name = format!("{name}{NEW}");
    if db.existing_tree(&new_name).is_ok() {
        bail!(
            "there is a tree `{new_name}`: drop it with `flashgrain db drop` if a conversion that was cut \
             short has left it, or else give it another name with `flashgrain db rename`"
        );
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
    db.replace_tree(name, &new_name)?;
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
