//! Removing records: one, or those of a range.

use std::ops::Bound;

use clap::Args;
use flashgrain_report::unit;
use serde_json::json;

use super::bytes::Notation;
use super::{RangeOptions, TreeOptions};
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
        return Ok(print(&format!("removed {} records\n", unit::count(removed as f64)))?);
    };
    tree.remove(&key)?;
    Ok(db.close()?)
}

/// Of keys.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl RangeOptions {
    /// The bounds of the keys.
    pub fn bounds(&self, notation: Notation) -> anyhow::Result<Bounds> {
        let parse = |text: &Option<String>| text.as_ref().map(|text| notation.parse(text)).transpose();
        if let Some(prefix) = parse(&self.prefix)? {
            let end = behind(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
            return Ok((Bound::Included(prefix), end));
        }
        let from = parse(&self.from)?.map_or(Bound::Unbounded, Bound::Included);
        let to = parse(&self.to)?.map_or(Bound::Unbounded, Bound::Excluded);
        Ok((from, to))
    }
}

/// The first key behind all that begin with `prefix`, if there is one.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn a_prefix_ends_before_the_next_larger_key() {
        assert_eq!(behind(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(behind(b"\xff"), None);
        assert_eq!(behind(b""), None);
    }
}
