//! The trees of a store as such: their content, their names, and their removal.

use clap::Args;
use flashgrain::{Check, IndexKind, LsmOptions};
use flashgrain_report::unit;
use serde_json::json;

use super::facts;
use super::kind::{KindOptions, NOT_OBSERVED, name_of};
use super::merge::Operator;
use super::options::{LookArguments, StoreOptions};
use crate::exit::Usage;
use crate::output::{Context, print, print_json};

#[derive(Debug, Args)]
pub struct CreateTreeArguments {
    #[command(flatten)]
    look: LookArguments,
    /// The tree.
    #[arg(value_name = "TREE")]
    tree: String,
    #[command(flatten)]
    kind: KindOptions,
    /// Merge operator, for `flashgrain db merge`: it makes one value of a key's value and the operands that
    /// were written over it.
    #[arg(long, value_enum)]
    merge_operator: Option<Operator>,
}

#[derive(Debug, Args)]
pub struct ExplainArguments {
    #[command(flatten)]
    look: LookArguments,
    /// The tree.
    #[arg(value_name = "TREE")]
    tree: String,
    /// Say how an LSM-tree would be kept for the operations on this one so far, in addition to how it is;
    /// `convert --workload observed` makes it.
    #[arg(long)]
    observed: bool,
}

#[derive(Debug, Args)]
pub struct DropArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// The tree. All its records are lost.
    #[arg(value_name = "TREE")]
    tree: String,
}

#[derive(Debug, Args)]
pub struct RenameArguments {
    #[command(flatten)]
    store: StoreOptions,
    /// The tree's name.
    #[arg(value_name = "TREE")]
    tree: String,
    /// Its new name, which no tree has.
    #[arg(value_name = "NEW")]
    new_name: String,
}

/// Makes an empty tree, and says how it is kept.
pub fn create_tree(arguments: &CreateTreeArguments, context: &Context) -> anyhow::Result<()> {
    let (LookArguments { store, json }, name) = (&arguments.look, &arguments.tree);
    let options = arguments.kind.options()?;
    let options = match arguments.merge_operator {
        Some(operator) => options.merge_operator(operator.name()),
        None => options,
    };
    let db = store.open(context)?;
    if db.existing_tree(name).is_ok() {
        return Err(there_is(name).into());
    }
    let decisions = db.tree_with(name, &options)?.layout();
    db.close()?;
    facts::layout(&decisions, *json)
}

/// A tree that cannot be made as it is wanted.
pub fn there_is(name: &str) -> Usage {
    Usage(format!("there is a tree `{name}` already: `flashgrain db convert` keeps it in another way"))
}

pub fn drop_tree(arguments: &DropArguments, context: &Context) -> anyhow::Result<()> {
    let db = arguments.store.open(context)?;
    db.drop_tree(&arguments.tree)?;
    Ok(db.close()?)
}

pub fn rename(arguments: &RenameArguments, context: &Context) -> anyhow::Result<()> {
    let db = arguments.store.open(context)?;
    db.rename_tree(&arguments.tree, &arguments.new_name)?;
    Ok(db.close()?)
}

/// A line for each setting of a tree.
pub fn explain(arguments: &ExplainArguments, context: &Context) -> anyhow::Result<()> {
    let LookArguments { store, json } = &arguments.look;
    let db = store.open_to_read(context)?;
    let tree = db.existing_tree(&arguments.tree)?;
    let decisions = tree.layout();
    if !arguments.observed {
        db.close()?;
        return facts::layout(&decisions, *json);
    }
    let observed = tree.observed_workload().ok_or_else(|| Usage(NOT_OBSERVED.into()))?;
    let options = tree.options().kind(IndexKind::Lsm).lsm(LsmOptions::new().workload(observed));
    let (operations, would) = (tree.operations(), db.layout_of(&options)?);
    drop(tree);
    db.close()?;
    facts::observed_layout(operations, &decisions, &would, *json)
}

/// A line, or an object, for each tree: its content and the room that this takes.
pub fn list(arguments: &LookArguments, context: &Context) -> anyhow::Result<()> {
    context.interrupt.watch()?;
    let db = arguments.store.open_to_read(context)?;
    let mut rows = Vec::new();
    for name in db.tree_names() {
        let tree = db.existing_tree(&name)?;
        let options = tree.options();
        let checked = context.interrupt.unless_wanted(move || tree.check())??;
        rows.push((name, options.index_kind(), options.size_of_nodes().unwrap_or(0), checked));
    }
    if arguments.json {
        let row = |(name, kind, node_bytes, check): &(String, IndexKind, u32, Check)| {
            json!({
                "name": name,
                "kind": name_of(*kind),
                "node_bytes": node_bytes,
                "records": check.records,
                "used_bytes": check.used_bytes + check.overflow_value_bytes,
                "nodes": check.nodes,
                "nodes_bytes": check.node_bytes,
                "overflow_values": check.overflow_values,
                "overflow_value_bytes": check.overflow_value_bytes,
            })
        };
        return print_json(&rows.iter().map(row).collect::<Vec<_>>());
    }
    let width = rows.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0).max("tree".len());
    let mut text = format!(
        "{:<width$}  {:<8}  {:>12}  {:>10}  {:>10}  {:>8}\n",
        "tree", "kind", "records", "in use", "in nodes", "of"
    );
    for (name, kind, node_bytes, check) in &rows {
        let bytes = |bytes: u64| unit::bytes(bytes as f64);
        text += &format!(
            "{name:<width$}  {:<8}  {:>12}  {:>10}  {:>10}  {:>8}\n",
            name_of(*kind),
            unit::count(check.records as f64),
            bytes(check.used_bytes + check.overflow_value_bytes),
            bytes(check.node_bytes),
            bytes(u64::from(*node_bytes)),
        );
    }
    Ok(print(&text)?)
}
