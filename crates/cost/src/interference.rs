//! Device time of reads and writes that run together, one step past the MQSSD paper, which names it as future
//! work.
//!
//! Let R and W be the device time that the reads and the writes of a workload would take on their own at its
//! concurrency. The device serves reads for a share ρ = R / (R + W) of that time, so that a request in
//! service meets one of the other kind in proportion to ρ(1 - ρ). Each meeting lengthens the work (reads wait
//! for programs and erases) or shortens it (both directions of the link, separate limits for reads and writes
//! are used at once):
//!
//! time = (R + W) · (1 + γ · 4ρ(1 - ρ))
//!
//! γ is the relative change where reads and writes take equal time; -½ would be a perfect overlap there.

use crate::neighbours::neighbours;

/// 4ρ(1 - ρ), the share of requests that meet one of the other kind, relative to its largest; the times may
/// have any unit.
pub fn meetings(reads: f64, writes: f64) -> f64 {
    if reads + writes <= 0.0 {
        return 0.0;
    }
    let share = reads / (reads + writes);
    4.0 * share * (1.0 - share)
}

/// Time of reads and writes together, in the unit of their own times.
pub fn time_together(reads: f64, writes: f64, gamma: f64) -> f64 {
    (reads + writes) * (1.0 + gamma * meetings(reads, writes))
}

/// γ at a concurrency, of γ at rising concurrencies: linear over its logarithm between them, constant beyond
/// them; 0 if there are none.
pub fn gamma_at(by_concurrency: &[(f64, f64)], concurrency: f64) -> f64 {
    let between = |(low, high, place): (&f64, &f64, f64)| low + (high - low) * place;
    neighbours(by_concurrency, concurrency).map_or(0.0, between)
}
