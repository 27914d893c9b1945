//! Numbers with the paper's in brackets.

use flashgrain_report::unit;

/// A rate of requests or operations a second.
pub(super) fn rate(per_s: f64) -> String {
    unit::count(if per_s < 1e3 { per_s } else { per_s.round() })
}

/// Our number, in brackets the paper's, if it is known, and ours over the paper's.
pub(super) fn beside(ours: f64, papers: Option<f64>, show: fn(f64) -> String) -> String {
    match papers {
        Some(papers) => format!("{} ({}, × {:.2})", show(ours), show(papers), ours / papers),
        None => show(ours),
    }
}
