//! The store of this project: the commands that make it and its tree, and the options that programs open it
//! with.
//!
//! 1. The node size with the best predicted rate is chosen for each kind of tree ([`model`]).
//! 2. The tree is an LSM-tree if that gains at the values and loses at no end of the drive's intervals.
//! 3. The store itself decides the design of an LSM-tree from the declared workload; the prediction is for
//!    that design.

mod model;
mod settings;

use flashgrain_settings::LsmWorkload;

use super::tuned::{Tuned, is_safe_gain};
use super::{EngineAdvice, EngineName, Setting, commented, explained};
use crate::drive::Drive;
use crate::interval::Interval;
use crate::workload::Workload;
use model::{DEFAULT, KIBI, Store, declared};

const NODE_BYTES: [f64; 5] = [4.0 * KIBI, 8.0 * KIBI, 16.0 * KIBI, 32.0 * KIBI, 64.0 * KIBI];
/// Longer records are kept beside the tree.
const RECORDS_PER_NODE_MIN: f64 = 4.0;

type Ours<'a> = Tuned<'a, Store>;

/// Predicted operations per second of a store with B+-trees of nodes of `node_bytes` and the layout that the
/// drive's profile decides, whose cache takes all the memory of the workload.
pub fn predicted_store_rate(workload: &Workload, drive: &Drive, node_bytes: f64) -> Interval {
    let advised = Store::advised(workload, drive);
    let store = Store { cache_bytes: workload.memory_bytes as f64, node_bytes, ..advised.clone() };
    Tuned { default: DEFAULT, advised, workload, drive }.rate(&store)
}

/// Both kinds of trees, each with its best node size.
struct Trees<'a> {
    b_tree: Ours<'a>,
    lsm_tree: Ours<'a>,
    /// The prediction for the LSM-tree.
    declared: LsmWorkload,
}

impl<'a> Trees<'a> {
    fn new(workload: &'a Workload, drive: &'a Drive) -> Self {
        let declared = declared(workload);
        let record = workload.records.record_bytes() as f64;
        let nodes: Vec<f64> =
            NODE_BYTES.into_iter().filter(|bytes| *bytes >= RECORDS_PER_NODE_MIN * record).collect();
        let tuned = |declared| {
            let advised = Store { declared, ..Store::advised(workload, drive) };
            let mut tuned = Tuned { default: DEFAULT, advised, workload, drive };
            tuned.advised.node_bytes =
                tuned.best(&nodes, DEFAULT.node_bytes, |store, bytes| store.node_bytes = bytes);
            tuned
        };
        Self { b_tree: tuned(None), lsm_tree: tuned(Some(declared)), declared }
    }

    /// Rate of the LSM-tree over that of the B+-tree.
    fn gain(&self) -> Interval {
        self.lsm_tree.ratio(&self.lsm_tree.advised, &self.b_tree.advised)
    }

    fn lsm_tree_gains(&self) -> bool {
        is_safe_gain(self.gain())
    }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let trees = Trees::new(workload, drive);
    let kind = settings::kind(&trees);
    let (tuned, of_lsm_tree) = match trees.lsm_tree_gains() {
        true => (&trees.lsm_tree, settings::lsm_tree(&trees.lsm_tree, &trees.declared)),
        false => (&trees.b_tree, Vec::new()),
    };
    let parts = Parts {
        store: vec![settings::profile(tuned), settings::node(tuned)],
        tree: std::iter::once(kind).chain(of_lsm_tree).collect(),
        opening: vec![settings::cache(tuned), settings::durability(tuned)],
    };
    let mut notes = vec!["STORE and PROFILE are the places of the store and of the profile".to_owned()];
    if trees.lsm_tree_gains() {
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
        file: parts.file(tuned),
        settings: parts.store.into_iter().chain(parts.tree).chain(parts.opening).collect(),
        notes,
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
    /// A shell script that makes the store and an LSM-tree in it, with the call that opens it as a comment. A
    /// B+-tree is made by the first program that asks for it.
    fn file(&self, tuned: &Ours<'_>) -> String {
        let (workload, drive) = (tuned.workload, tuned.drive);
        let mut text = format!(
            "#!/bin/sh\n# Flashgrain: a store for {}.\n# {}\n# STORE=/data/store PROFILE=flashgrain-out/profile.json sh THIS_FILE\n\n",
            workload.name,
            drive.describe()
        );
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
        if tuned.advised.declared.is_some() {
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
