//! Learning a drive: the experiments, the hidden parameters, the device profile.
//!
//! [`run`] brings a [`Target`] through the experiments of a [`Config`] within a budget, fits the cost models,
//! learns the hidden parameters, derives settings, and verifies its predictions. [`load`] is the one load
//! generator. [`mod@file`] keeps profiles, [`diff`] compares them, [`export`] says them in the words of other
//! software.
//!
//! The experiments are those of the MQSSD paper §3.3, the dictionaries paper §4, the hidden-parameters paper
//! §3.1 and the NVMe paper §2.
//!
//! This crate knows no store, no report and no command line; it asks the device for the time and never the
//! system.

mod config;
mod date;
mod decide;
pub mod diff;
mod error;
mod experiment;
pub mod export;
pub mod file;
mod learn;
pub mod load;
mod plan;
mod progress;
mod ranges;
mod run;
mod samples;
pub mod schema;
mod series;
mod stats;
mod target;
mod trial;
mod trust;
mod verify;

pub use config::{Config, ExperimentName, Precondition, SustainLimits};
pub use error::Error;
pub use flashgrain_settings as settings;
pub use plan::{Plan, PlannedExperiment, Stage};
pub use progress::{Progress, Silent, Step};
pub use run::{Profiled, run};
pub use samples::Samples;
pub use schema::DeviceProfile;
pub use series::{Repeat, Series, SweepRead};
pub use target::{Backend, Site, Target};
pub use trial::{Group, LoadWork, Sweep, Trial, Work, bytes_text, describe_workload};
