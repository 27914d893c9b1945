//! How a run shows that it goes on: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};

use flashgrain_profile::{Progress, Step};
use flashgrain_report::unit;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::Verbosity;

/// Marks on the bar, and per mille of the budget.
const MARKS: u64 = 1000;

/// Where there is no terminal: a line for each tenth of the time.
const LINES: u64 = 10;

/// Listens to a run and shows it on standard error.
pub enum Reporter {
    Bar(ProgressBar),
    Lines { next_mark: u64 },
    Silent,
}

impl Reporter {
    pub fn new(verbosity: Verbosity) -> Self {
        if verbosity == Verbosity::Quiet {
            return Self::Silent;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines { next_mark: 0 };
        }
        // The template is fixed; should it ever be wrong, indicatif's own bar does as well.
        let style = ProgressStyle::with_template("{bar:20} {percent:>3} %  {prefix}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self::Bar(ProgressBar::new(MARKS).with_style(style))
    }
}

impl Progress for Reporter {
    fn step(&mut self, step: &Step<'_>) {
        let mark = (step.fraction * MARKS as f64) as u64;
        let written = unit::bytes(step.written_bytes as f64);
        match self {
            Self::Bar(bar) => {
                bar.set_prefix(format!("{:>2.0} s left", step.remaining_s));
                bar.set_message(format!("{written} written  {}", step.what));
                bar.set_position(mark);
            }
            Self::Lines { next_mark } => {
                if mark >= *next_mark {
                    *next_mark = mark - mark % (MARKS / LINES) + MARKS / LINES;
                    // The work goes on when nobody listens.
                    let _ = writeln!(
                        io::stderr(),
                        "{:>3.0} % after {:.0} s, {written} written: {}",
                        step.fraction * 100.0,
                        step.elapsed_s,
                        step.what
                    );
                }
            }
            Self::Silent => {}
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
