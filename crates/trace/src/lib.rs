//! Recorded I/O requests, and whether they follow the grain of a drive.
//!
//! 1. [`Reader`] recognises the format of a trace from its first bytes and yields [`Request`]s one by one, in
//!    the order of the trace; no trace is ever in memory as a whole. [`TraceWriter`] writes Flashgrain's own.
//! 2. [`Grain`] has the parameters of a drive, and the verdicts of the five rules of the hidden-parameters
//!    paper (§3.2.1) on one request.
//! 3. [`check`] collects the verdicts on all requests by file, with their costs on a profiled drive.
//!
//! [`replay`] makes requests to one device of them.
//!
//! This crate opens no file. Nothing that it reads is trusted: a damaged trace is an [`Error`] with its
//! place, and every request before that place has been yielded.

pub mod check;
mod error;
mod format;
mod losses;
mod names;
mod reader;
pub mod replay;
mod request;
mod rules;

pub use error::Error;
pub use format::{Format, TraceWriter};
pub use losses::{Loss, Losses};
pub use names::{NameId, Names};
pub use reader::Reader;
pub use request::{Address, Layer, Operation, Request};
pub use rules::{Grain, Rule};
