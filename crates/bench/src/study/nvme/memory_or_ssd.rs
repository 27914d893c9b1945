//! Memory or drives for the same money: section 1.

use flashgrain_cost::budget::{Budget, DriveRates, LARGE_BYTES, Prices};
use flashgrain_model::{Access, Workload};
use flashgrain_report::budget;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::raw::Drives;
use super::{PAGE_BYTES, Study, paper};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(flatten)]
    budget: Budget,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    study.note("reads of one drive");
    let drive = Drives::of(study, 1, StartState::Filled)?;
    let read = |bytes: f64| {
        let reads = Workload::random(Access::Read, bytes, f64::from(options.in_flight_each()));
        drive.measure(options, reads, options.requests / 4, study.interrupt)
    };
    let (reads_per_s, bytes_per_s) = (read(PAGE_BYTES)?.requests_per_s, read(LARGE_BYTES)?.bytes_per_s);
    Ok(Found { budget: Budget::new(options.prices, DriveRates { reads_per_s, bytes_per_s }) })
}

impl Found {
    /// The paper's numbers and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let bandwidth = found.map(|found| found.budget.with_drives.rates.bytes_per_s);
        let name = "bandwidth of the drives for 15,000 dollars";
        let papers = paper::WITH_DRIVES.rates.bytes_per_s;
        let number = Comparison::new("§1", name, Measure::Rate, papers, bandwidth);
        vec![match found {
            Some(found) if found.budget.prices != Prices::default() => number.apart("of other prices"),
            _ => number,
        }]
    }

    pub fn part(&self) -> Part {
        let mut text = budget::sentences(&self.budget);
        text.push(format!(
            "In the paper a byte of memory costs about {} times as much as one of flash, and memory has {:.0} GB/s in both servers; Gray's rule is not in it.",
            paper::PRICE_RATIO,
            paper::MEMORY_BYTES_PER_S * 1e-9
        ));
        let papers = [
            ("the paper's with memory", paper::WITH_MEMORY),
            ("the paper's with drives", paper::WITH_DRIVES),
        ];
        Part {
            id: "memory-or-ssd",
            title: "Memory or drives for the same money (section 1)".into(),
            text,
            tables: vec![("Servers".into(), budget::table(&self.budget, &papers))],
            figures: Vec::new(),
        }
    }
}
