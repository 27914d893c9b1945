//! Policies over a [model](model) of a tree whose tables are sets of versions.

mod amplification;
mod histories;
mod model;
mod planted;
mod shapes;
