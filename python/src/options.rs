//! Keyword arguments as options of stores and trees.

use std::path::PathBuf;

use flashgrain::{
    AddOperator, AppendOperator, BackendKind, BeTreeOptions, Builder, Durability, IndexKind, LsmCompression,
    LsmLayout, LsmOptions, SyncMethod, TreeOptions,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::file_path::FilePath;
use crate::numbers::{Float, whole};
use crate::profile::Profile;

/// The choice called `name` among `choices`.
fn choice<T: Copy>(py: Python<'_>, option: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let found = choices.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        errors::argument(py, format!("{option} is {name:?}: use {}", known.join(", ")))
    })
}

/// How durable a commit is.
///
/// # Errors
/// `ArgumentError` naming the choices.
pub fn durability(py: Python<'_>, name: &str) -> PyResult<Durability> {
    let choices =
        [("sync", Durability::Sync), ("buffered", Durability::Buffered), ("none", Durability::None)];
    choice(py, "durability", name, &choices)
}

const COMPRESSIONS: [(&str, LsmCompression); 2] =
    [("none", LsmCompression::None), ("lz4", LsmCompression::Lz4)];

const LAYOUTS: [(&str, LsmLayout); 4] = [
    ("leveled", LsmLayout::Leveled),
    ("tiered", LsmLayout::Tiered),
    ("lazy-leveled", LsmLayout::LazyLeveled),
    ("single-level", LsmLayout::SingleLevel),
];

const KINDS: [(&str, IndexKind); 3] =
    [("btree", IndexKind::BTree), ("lsm", IndexKind::Lsm), ("be-tree", IndexKind::BeTree)];

const OPERATORS: [(&str, &str); 2] = [("add", AddOperator::NAME), ("append", AppendOperator::NAME)];

/// The name of a structure, as Python says it.
pub fn kind_name(kind: IndexKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}

/// One path or several.
fn paths(value: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = match value.extract() {
        Ok(path) => vec![path],
        Err(_) => value.extract()?,
    };
    paths.into_iter().map(|path| Ok(FilePath::new(value.py(), path)?.0)).collect()
}

/// A builder of a store at `path` with these options.
///
/// # Errors
/// `TypeError` for options that there are not, or values of other types; `ArgumentError` for choices.
pub fn store(
    builder: Builder,
    path: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Builder> {
    let mut builder = match path {
        Some(path) => paths(path)?.into_iter().fold(builder, Builder::path),
        None => builder,
    };
    for (name, value) in options.into_iter().flatten() {
        if !value.is_none() {
            builder = store_option(builder, &name.extract::<String>()?, &value)?;
        }
    }
    Ok(builder)
}

fn store_option(builder: Builder, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Builder> {
    let py = value.py();
    Ok(match name {
        "log_path" => paths(value)?.into_iter().fold(builder, Builder::log_path),
        "backend" => {
            let backend: Result<BackendKind, _> = value.extract::<String>()?.parse();
            builder.backend(backend.map_err(|error| errors::argument(py, error))?)
        }
        "poll_completions" => builder.poll_completions(value.extract()?),
        "cache_bytes" => builder.cache_bytes(whole(name, value)?),
        "workers" => builder.workers(whole(name, value)?),
        "durability" => builder.durability(durability(py, &value.extract::<String>()?)?),
        "log_compression" => {
            builder.log_compression(choice(py, name, &value.extract::<String>()?, &COMPRESSIONS)?)
        }
        "write_log" => builder.write_log(value.extract()?),
        "recovery_log_bytes" => builder.recovery_log_bytes(whole(name, value)?),
        "checkpoint_dirty_bytes" => builder.checkpoint_dirty_bytes(whole(name, value)?),
        "size_bytes_max" => builder.size_bytes_max(whole(name, value)?),
        "profile" => builder.profile(Profile::given(value)?),
        "write_unit_bytes" => builder.write_unit_bytes(whole(name, value)?),
        "segment_bytes" => builder.segment_bytes(whole(name, value)?),
        "flash_page_bytes" => builder.flash_page_bytes(whole(name, value)?),
        "log_bytes" => builder.log_bytes(whole(name, value)?),
        "log_block_bytes" => builder.log_block_bytes(whole(name, value)?),
        "node_bytes" => builder.node_bytes(whole(name, value)?),
        "sync_method" => {
            let method = value.extract::<String>()?;
            builder.sync_method(SyncMethod::named(&method).ok_or_else(|| {
                let names = SyncMethod::ALL.map(SyncMethod::name).join(", ");
                errors::argument(py, format!("sync_method is {method:?}, none of {names}"))
            })?)
        }
        _ => return Err(PyTypeError::new_err(format!("a store has no option {name}"))),
    })
}

/// Options of a new tree.
///
/// # Errors
/// As [`store`].
pub fn tree(py: Python<'_>, kind: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<TreeOptions> {
    let kind = choice(py, "kind", kind, &KINDS)?;
    let (mut tree, mut lsm, mut be_tree) =
        (TreeOptions::new().kind(kind), LsmOptions::new(), BeTreeOptions::new());
    for (name, value) in options.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let name = name.extract::<String>()?;
        match (kind, name.as_str()) {
            (_, "node_bytes") => tree = tree.node_bytes(whole(&name, &value)?),
            (_, "merge_operator") => {
                tree = tree.merge_operator(choice(
                    py,
                    "merge_operator",
                    &value.extract::<String>()?,
                    &OPERATORS,
                )?);
            }
            (IndexKind::Lsm, "layout") => {
                lsm = lsm.layout(choice(py, "layout", &value.extract::<String>()?, &LAYOUTS)?);
            }
            (IndexKind::Lsm, "compression") => {
                lsm = lsm.compression(choice(py, "compression", &value.extract::<String>()?, &COMPRESSIONS)?);
            }
            (IndexKind::Lsm, "fanout") => lsm = lsm.fanout(whole(&name, &value)?),
            (IndexKind::Lsm, "level_zero_runs") => lsm = lsm.level_zero_runs(whole(&name, &value)?),
            (IndexKind::Lsm, "table_bytes") => lsm = lsm.table_bytes(whole(&name, &value)?),
            (IndexKind::Lsm, "memtable_bytes") => lsm = lsm.memtable_bytes(whole(&name, &value)?),
            (IndexKind::Lsm, "filter_bits_per_key") => {
                lsm = lsm.filter_bits_per_key(value.extract::<Float>()?.0)
            }
            (IndexKind::BeTree, "buffered_node_bytes") => be_tree = be_tree.node_bytes(whole(&name, &value)?),
            (IndexKind::BeTree, "fanout") => be_tree = be_tree.fanout(whole(&name, &value)?),
            (IndexKind::BeTree, "memtable_bytes") => be_tree = be_tree.memtable_bytes(whole(&name, &value)?),
            (_, name) => {
                let kind = kind_name(kind);
                return Err(PyTypeError::new_err(format!("a tree of kind {kind} has no option {name}")));
            }
        }
    }
    Ok(tree.lsm(lsm).be_tree(be_tree))
}
