//! A verification for a terminal.

use flashgrain_advisor::engine::factor;
use flashgrain_report::unit::{self, Unit};

use super::Verification;
use super::scatter::Scatter;

impl Verification {
    /// Predicted and measured values, for people.
    pub fn table(&self) -> String {
        let limit = match self.memory_limit_bytes {
            Some(bytes) => format!("{} of memory with the page cache", unit::bytes(bytes as f64)),
            None => "memory not limited".to_owned(),
        };
        let workload = &self.workload;
        let mut text = format!(
            "{}, default and advised settings: {} rounds of {} s after {} s of warm-up each, seed {}\n\
             {} records of {} bytes, {} clients, {limit}\n{}\n\n",
            self.engine.describe(),
            self.rounds,
            self.seconds,
            self.seconds,
            self.seed,
            unit::count(workload.records.count as f64),
            workload.records.record_bytes(),
            workload.clients,
            workload.durability.describe(),
        );
        for change in &self.changes {
            text += &format!("adapted: {change}\n");
        }
        text += &row(["", "predicted", "measured: median (range)", "limited by, as predicted"]);
        for (name, side) in [("defaults", &self.default), ("advised", &self.advised)] {
            let predicted = side.predicted_per_second;
            text += &row([
                name,
                &Unit::Count.show_interval(predicted.value, predicted.low, predicted.high),
                &scattered(&side.measured_per_second, unit::count),
                &side.predicted_bound,
            ]);
        }
        let times = |gain: f64| format!("{gain:.2}");
        text += &row([
            "gain",
            &factor(self.predicted_gain),
            &format!("{} x ({})", times(self.measured_gain.median), range(&self.measured_gain, times)),
            "",
        ]);
        text + "Rates are operations per second. The measured gain is that of the medians; its range is that of the rounds.\n"
    }
}

fn scattered(scatter: &Scatter, show: fn(f64) -> String) -> String {
    format!("{} ({})", show(scatter.median), range(scatter, show))
}

fn range(scatter: &Scatter, show: fn(f64) -> String) -> String {
    format!("{} to {}", show(scatter.min), show(scatter.max))
}

fn row(cells: [&str; 4]) -> String {
    let [name, predicted, measured, bound] = cells;
    format!("{name:<10}{predicted:<27}{measured:<30}{bound}").trim_end().to_owned() + "\n"
}
