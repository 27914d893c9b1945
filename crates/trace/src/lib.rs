//! Recorded I/O requests, and whether they follow the grain of a drive.
//!
//! 1. [`Reader`] recognises the format of a trace from its first bytes and yields [`Request`]s one by one, in
//!    the order of the trace; no trace is ever in memory as a whole.
//! 2. [`Rules`] judges each request by the five rules of the hidden-parameters paper (§3.2.1), with the
//!    parameters of a drive, its [`Grain`].
//! 3. [`wear`] turns partly written flash pages into wear-out (§4.2.3).
//!
//! This crate opens no file and knows no drive and no profile. Nothing that it reads is trusted: a damaged
//! trace is an [`Error`] with its place, and every request before that place has been yielded.

mod error;
mod format;
mod losses;
mod names;
mod reader;
mod request;
mod rules;
pub mod wear;

pub use error::Error;
pub use format::{Format, TraceWriter};
pub use losses::{Loss, Losses};
pub use names::{NameId, Names};
pub use reader::Reader;
pub use request::{Address, Operation, Request};
pub use rules::{Grain, Rule, Rules, Tally};
