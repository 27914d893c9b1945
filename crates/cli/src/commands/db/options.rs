//! Options that several of the commands on stores share: which store, which tree of it, which keys of that.

use std::ops::Bound;

use clap::Args;
use flashgrain::{Builder, Db, Tree};

use super::bytes::Notation;
use super::members::{Members, parse_members};
use crate::output::Context;
use crate::units::parse_positive_bytes;

/// The store.
#[derive(Debug, Args)]
pub struct StoreOptions {
    /// The store: a directory or a block device, or several with commas between them if it is striped. A
    /// comma that belongs to a name is written `\,`.
    #[arg(value_name = "STORE", value_parser = parse_members)]
    pub store: Members,
    /// The directory or block device of its log, if that is another one.
    #[arg(long, value_name = "PATH", value_parser = parse_members)]
    pub log: Option<Members>,
    /// Memory for pages.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "64MiB")]
    pub cache: u64,
}

/// The store, and a tree of it.
#[derive(Debug, Args)]
pub struct TreeOptions {
    #[command(flatten)]
    pub store: StoreOptions,
    /// The tree.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tree: String,
    #[command(flatten)]
    pub notation: Notation,
}

/// A range of keys.
#[derive(Debug, Args)]
pub struct RangeOptions {
    /// First key.
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// First key that is not meant any more.
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Only keys that begin with this.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
}

/// A store that is looked at.
#[derive(Debug, Args)]
pub struct LookArguments {
    #[command(flatten)]
    pub store: StoreOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

impl StoreOptions {
    pub fn builder(&self, context: &Context) -> Builder {
        self.store.announce("the store", context);
        let builder = self.store.0.iter().fold(Db::builder(), Builder::path).cache_bytes(self.cache);
        match &self.log {
            None => builder,
            Some(log) => {
                log.announce("its log", context);
                log.0.iter().fold(builder, Builder::log_path)
            }
        }
    }

    pub fn open(&self, context: &Context) -> anyhow::Result<Db> {
        Ok(with_shortages(self.builder(context).open()?, context))
    }

    /// Opens the store for commands that change nothing.
    pub fn open_to_read(&self, context: &Context) -> anyhow::Result<Db> {
        Ok(with_shortages(self.builder(context).open_read_only()?, context))
    }
}

/// Says which limits keep a store from its best.
pub fn with_shortages(db: Db, context: &Context) -> Db {
    db.shortages().iter().for_each(|shortage| context.note(&format!("note: {shortage}")));
    db
}

/// Has `work` done on a tree, which is made if it is missing. If the work fails, a new tree that is empty is
/// removed.
pub fn with_tree<T>(
    db: &Db,
    (name, options): (&str, &flashgrain::TreeOptions),
    work: impl FnOnce(&Tree) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let is_new = db.existing_tree(name).is_err();
    let tree = db.tree_with(name, options)?;
    let result = work(&tree);
    if result.is_err() && is_new && tree.iter().is_ok_and(|mut records| records.next().is_none()) {
        drop(tree);
        // The failure of the work is the one to report.
        let _removed = db.drop_tree(name);
    }
    result
}

/// Bounds of keys.
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

/// The first key after all that begin with `prefix`, if there is one.
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
