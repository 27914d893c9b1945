//! Removing records: one, or those of a range.

use clap::Args;
use flashgrain_report::unit;
use serde_json::json;

use super::options::{RangeOptions, TreeOptions};
use crate::output::{Context, print, print_json};

#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = true, args = ["key", "from", "to", "prefix"])]
pub struct DeleteArguments {
    #[command(flatten)]
    tree: TreeOptions,
    /// The key. Instead of one, a range may be given.
    #[arg(value_name = "KEY", conflicts_with_all = ["from", "to", "prefix", "json"])]
    key: Option<String>,
    #[command(flatten)]
    range: RangeOptions,
    /// Print how many records of a range were removed as JSON.
    #[arg(long)]
    json: bool,
}

pub fn delete(arguments: &DeleteArguments, context: &Context) -> anyhow::Result<()> {
    let options = &arguments.tree;
    let key = arguments.key.as_ref().map(|key| options.notation.parse(key)).transpose()?;
    let range = arguments.range.bounds(options.notation)?;
    let db = options.store.open(context)?;
    let tree = db.existing_tree(&options.tree)?;
    let Some(key) = key else {
        let removed = tree.remove_range(range)?;
        db.close()?;
        if arguments.json {
            return print_json(&json!({ "removed": removed }));
        }
        return Ok(print(&format!("removed {}\n", unit::things(removed, "record")))?);
    };
    tree.remove(&key)?;
    Ok(db.close()?)
}
