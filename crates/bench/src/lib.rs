//! The one harness of benchmarks: clients, counters, the raw drive, and locations of stores.
//!
//! [`drive`] and [`fill`](mod@fill) have clients work in a [`drive::Host`]; [`measure`] looks at the drive,
//! the machine and memory. Three things are made of that: [`run`] and [`suite`] put the same questions to
//! Flashgrain and to other key-value stores, [`experiment`] measures Flashgrain alone, and [`exploit`]
//! compares a store with the predictions of a drive's profile. Beside these, [`verify`] runs engines
//! with their defaults and as advised.

pub mod benchmark;
mod colours;
pub mod compare;
pub mod drive;
pub mod engine;
pub mod experiment;
pub mod exploit;
pub mod fill;
pub mod keys;
mod killed;
pub mod listener;
pub mod measure;
pub mod processor;
pub mod records;
pub mod run;
pub mod store;
pub mod study;
pub mod suite;
pub mod tpcc;
pub mod verify;
pub mod workload;
