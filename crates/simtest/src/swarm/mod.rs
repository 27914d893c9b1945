//! One generator of everything that a user may set or do.
//!
//! *Swarm testing* (Groce, Zhang, Eide, Chen, Regehr: Swarm testing, ISSTA 2012): each run draws the features
//! that it has at all, and then each parameter from a wide range up to the documented limits, most of them
//! log-uniformly. A feature that is left out leaves room for the others, so runs differ more than runs that
//! always have everything.
//!
//! A run is a store with several lives in a row. In each life tasks work on the store at the same time; after
//! each life everything is read in several ways and compared with the [history](crate::world::History) of the
//! commits, the store is checked, pages are counted, and the store is opened again with other options.
//!
//! Who may change what: a `Slot`, the task that holds its definition; all other state of a run
//! belongs to the run.

mod draw;
mod feature;
mod full;
mod keys;
mod kinds;
mod medium;
mod opening;
mod rare;
mod reads;
mod run;
mod site;
mod slots;
mod verify;
mod work;

pub use feature::{Feature, Features};
pub use run::{filled, simulated};
