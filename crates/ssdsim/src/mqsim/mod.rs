//! Files of the simulator MQSim (Tavakkol et al., FAST 2018; CMU-SAFARI/MQSim): its drives and workloads
//! read, its drives written.
//!
//! MQSim describes a drive in `ssdconfig.xml` and its workload in `workload.xml`. [`import_drive`] turns the
//! former into a [`SimConfig`](crate::SimConfig), [`import_workload`] turns the latter into [`Scenario`]s,
//! which [`run`] runs, and [`export_drive`] writes an `ssdconfig.xml`. Names are MQSim's own, its spelling
//! mistakes included, those of its older versions too. An unknown field is an error that names it: MQSim
//! itself ignores it, so that a misspelt field silently keeps its default there. Fields without a counterpart
//! here are listed.

mod drive;
mod export;
mod fields;
mod flow;
mod flows;
mod source;
mod trace;
mod workload;

pub use drive::{Imported, import_drive};
pub use export::export_drive;
pub use flow::{Addresses, Arrivals, Flow, FlowKind, Scenario, Sizes, Synthetic, Trace};
pub use flows::{FlowResult, ScenarioResult, run};
pub use trace::{Recorded, read as read_trace};
pub use workload::import_workload;

/// The unit of sizes in workloads.
const SECTOR_BYTES: u64 = 512;
