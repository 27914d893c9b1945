//! How a run shows that it goes on: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};

use flashgrain_device::calendar_seconds;
use flashgrain_profile::{Progress, Step};
use flashgrain_report::unit;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Verbosity;

/// Marks on the bar, and per mille of the budget.
const MARKS: u64 = 1000;

/// Lines without a terminal: one for each tenth of the time.
const LINES: u64 = 10;

/// Listens to a run and shows it on standard error.
pub enum Reporter {
    Bar { bar: ProgressBar, clock: Clock },
    Lines { next_mark: u64, clock: Clock },
    Silent,
}

/// Clock of the displayed seconds.
#[derive(Clone, Copy)]
pub enum Clock {
    Real,
    /// A simulated drive's; its real time is shown as well.
    Virtual {
        began_s: u64,
    },
}

impl Clock {
    fn passed(self, elapsed_s: f64) -> String {
        match self {
            Self::Real => format!("{elapsed_s:.0} s"),
            Self::Virtual { began_s } => {
                let real_s = calendar_seconds().saturating_sub(began_s);
                format!("{elapsed_s:.1} s of virtual time in {real_s} s")
            }
        }
    }

    fn remaining(self, elapsed_s: f64, remaining_s: f64) -> String {
        match self {
            Self::Real => format!("{remaining_s:>2.0} s left"),
            Self::Virtual { .. } => self.passed(elapsed_s),
        }
    }
}

impl Reporter {
    pub fn new(verbosity: Verbosity, simulated: bool) -> Self {
        let clock = if simulated { Clock::Virtual { began_s: calendar_seconds() } } else { Clock::Real };
        if verbosity == Verbosity::Quiet {
            return Self::Silent;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines { next_mark: 0, clock };
        }
        // The template is fixed; should it ever be wrong, indicatif's own bar does as well.
        let style = ProgressStyle::with_template("{bar:20} {percent:>3} %  {prefix}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self::Bar { bar: ProgressBar::new(MARKS).with_style(style), clock }
    }
}

impl Progress for Reporter {
    fn step(&mut self, step: &Step<'_>) {
        let mark = (step.fraction * MARKS as f64) as u64;
        let written = unit::bytes(step.written_bytes as f64);
        match self {
            Self::Bar { bar, clock } => {
                bar.set_prefix(clock.remaining(step.elapsed_s, step.remaining_s));
                bar.set_message(format!("{written} written  {}", step.what));
                bar.set_position(mark);
            }
            Self::Lines { next_mark, clock } => {
                if mark >= *next_mark {
                    *next_mark = mark - mark % (MARKS / LINES) + MARKS / LINES;
                    // A closed standard error does not end the work.
                    let _ = writeln!(
                        io::stderr(),
                        "{:>3.0} % after {}, {written} written: {}",
                        step.fraction * 100.0,
                        clock.passed(step.elapsed_s),
                        step.what
                    );
                }
            }
            Self::Silent => {}
        }
    }
}

/// Work whose finished share alone is known.
pub struct Percent {
    what: &'static str,
    bar: Option<ProgressBar>,
    /// The next tenth that is said, where there is no terminal; none if nothing is said.
    next_tenth: Option<u64>,
}

impl Percent {
    pub fn new(verbosity: Verbosity, what: &'static str) -> Self {
        let loud = verbosity > Verbosity::Quiet;
        let terminal = io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{bar:20} {percent:>3} %  {msg}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = (loud && terminal).then(|| ProgressBar::new(MARKS).with_style(style).with_message(what));
        Self { what, bar, next_tenth: (loud && !terminal).then_some(1) }
    }

    /// So much is done, 0 to 1.
    pub fn show(&mut self, share: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position((share * MARKS as f64) as u64);
        }
        let tenth = (share * LINES as f64) as u64;
        if self.next_tenth.is_some_and(|next| tenth >= next && tenth < LINES) {
            self.next_tenth = Some(tenth + 1);
            // A closed standard error does not end the work.
            let _ = writeln!(io::stderr(), "{}: {} %", self.what, tenth * 100 / LINES);
        }
    }
}

impl Drop for Percent {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}
