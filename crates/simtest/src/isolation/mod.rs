//! Isolation of concurrent transactions: histories are recorded, and judged by nothing but their content.
//!
//! Every write appends a number, which occurs once in the whole history, to the list under a key (Kingsbury
//! and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020). Therefore a
//! read of a list shows the order of all writes to that key, and thus which transaction must have come before
//! which: [`Judgement`] derives the dependencies (Adya, "Weak Consistency", 1999) and looks for cycles among
//! them.
//!
//! **The store promises** snapshot isolation in real time: a transaction sees exactly the commits from before
//! it began, and if it wrote, no other transaction wrote the same keys meanwhile. A transaction that begins
//! after another one's commit has returned sees it. Write skew may happen, and is reported as a kind of its
//! own.

mod graph;
mod history;
mod judge;
mod record;
mod run;
#[cfg(test)]
mod tests;

pub use history::{History, Key, Operation, Outcome, Transaction};
pub use judge::{Anomaly, Judgement, Kind};
pub use record::{Recorder, Shape, Trees};
pub use run::{crashing, simulated, threads};
