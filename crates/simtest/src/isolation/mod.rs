//! What concurrent transactions saw of each other: histories are recorded, and judged by nothing but what is
//! in them.
//!
//! Every write appends a number, which occurs once in the whole history, to the list under a key (Kingsbury
//! and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020). So whoever
//! reads a list has read the order of all writes to that key, and it follows who must have come before whom:
//! [`Judgement`] has the dependencies (Adya, "Weak Consistency", 1999) and looks for cycles among them.
//!
//! **What the store promises** is snapshot isolation in real time: a transaction sees exactly what had been
//! committed before it began, and if it wrote, nobody else wrote the same keys meanwhile. A transaction that
//! begins after another one's commit has returned sees it. Write skew may happen, and is told apart.

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
