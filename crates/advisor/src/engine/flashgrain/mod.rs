//! The store of this project: the commands that make it and its tree, and the options that programs open it
//! with.
//!
//! 1. For each structure of trees the parameters with the best predicted rate are chosen ([`trees`]), by a
//!    model of its I/O ([`model`]).
//! 2. The tree is a B+-tree with nodes that are read whole unless another one gains at the values and loses
//!    at no end of the drive's intervals; then it is the fastest of these.
//! 3. The store itself decides the design of an LSM-tree from the declared workload and the size of tables;
//!    the prediction is for that design, [around](around) the declared size.

mod around;
mod model;
mod settings;
mod trees;

use super::tuned::Tuned;
use super::{EngineAdvice, EngineName, Setting, commented, explained, head};
use crate::drive::Drive;
use crate::workload::Workload;
use model::{DEFAULT, Store};
use trees::{Ours, Trees};

pub use model::{StoreFacts, TreeStructure};
pub use trees::PredictedTree;

/// Predictions for a tree with nodes of `node_bytes`, in a store with the layout that the drive's profile
/// decides, whose cache takes all the memory of the workload.
pub fn predicted_tree(
    workload: &Workload,
    drive: &Drive,
    structure: TreeStructure,
    node_bytes: f64,
    facts: &StoreFacts,
) -> PredictedTree {
    let advised = Store::advised(workload, drive);
    let cache_bytes = workload.memory_bytes as f64;
    let store =
        Store { cache_bytes, node_bytes, structure, facts: *facts, is_there: true, ..advised.clone() };
    PredictedTree::of(&Tuned { default: DEFAULT, advised, workload, drive }, &store)
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let trees = Trees::new(workload, drive);
    let (tuned, predicted) = (trees.advised(), trees.predicted());
    let parts = Parts {
        store: vec![settings::profile(tuned), settings::node(tuned)],
        tree: std::iter::once(settings::kind(&trees)).chain(settings::of_structure(tuned)).collect(),
        opening: vec![settings::cache(tuned), settings::durability(tuned)],
    };
    let mut notes = vec!["STORE and PROFILE are the places of the store and of the profile".to_owned()];
    if parts.makes_tree() {
        notes.push("TREE is the name of the tree, `default` unless given".into());
    }
    EngineAdvice {
        engine: EngineName::Flashgrain,
        version: env!("CARGO_PKG_VERSION"),
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        file: parts.file(tuned, &predicted),
        settings: parts.store.into_iter().chain(parts.tree).chain(parts.opening).collect(),
        notes,
        trees: predicted,
    }
}

/// Settings by where they are given.
struct Parts {
    /// It goes to the command that makes the store.
    store: Vec<Setting>,
    /// It goes to the command that makes the tree.
    tree: Vec<Setting>,
    /// It goes to the program that opens the store.
    opening: Vec<Setting>,
}

impl Parts {
    /// Whether a command makes the tree: one without settings is made by the first program that asks for it.
    fn makes_tree(&self) -> bool {
        self.tree.iter().any(|setting| setting.value.is_some())
    }

    /// A shell script that makes the store and the tree in it, with the call that opens it as a comment.
    fn file(&self, tuned: &Ours<'_>, predicted: &[PredictedTree]) -> String {
        let (workload, drive) = (tuned.workload, tuned.drive);
        let mut text = format!("#!/bin/sh\n{}", head("Flashgrain", "#", workload, drive));
        text += "# STORE=/data/store PROFILE=flashgrain-out/profile.json sh THIS_FILE\n\n";
        text += "# Predicted cost of the average operation on each tree:\n";
        for tree in predicted {
            text += &commented(&format!("- {}", tree.describe()), "#");
        }
        text.push('\n');
        let shown = |setting: &Setting, value: &str| commented(&format!("{} {value}", setting.name), "#");
        for part in [&self.store, &self.tree, &self.opening] {
            text += &explained(part, "#", shown);
        }
        text += &format!(
            "# In Rust: Db::builder().path(store).cache_bytes({:.0}).durability(Durability::{}).open()\n\nset -e\n",
            tuned.advised.cache_bytes,
            if tuned.advised.syncs { "Sync" } else { "Buffered" }
        );
        text += &command("create \"$STORE\"", &self.store);
        if self.makes_tree() {
            text += &command("create-tree \"$STORE\" \"${TREE:-default}\"", &self.tree);
        }
        text
    }
}

/// A line of the script.
fn command(words: &str, settings: &[Setting]) -> String {
    let given = settings.iter().filter_map(|setting| {
        let value = setting.value.as_ref()?;
        Some(format!(" {} {value}", setting.name))
    });
    format!("\"${{FLASHGRAIN:-flashgrain}}\" db {words}{}\n", given.collect::<String>())
}
