//! The questions about each tree.

use super::{OnDrive, Operations, Point, Tree};

/// A name, and the operations that have it.
pub(super) type Asked = (&'static str, fn(&Point) -> Option<&Operations>);

pub(super) const ASKED: [Asked; 3] = [
    ("look-ups, loaded", |point| point.loaded.as_ref()),
    ("look-ups, grown", |point| Some(&point.grown)),
    ("inserts", |point| Some(&point.inserts)),
];

/// The measurements of a tree.
pub(super) fn of_tree(drive: &OnDrive, tree: Tree) -> impl Iterator<Item = &Point> {
    drive.points.iter().filter(move |point| point.tree == tree)
}
