//! Summaries for the terminal at hand.

use std::io::{self, IsTerminal};

use flashgrain_advisor::Advice;
use flashgrain_advisor::engine::EngineAdvice;
use flashgrain_cost::budget::Budget;
use flashgrain_model::{Comparison, Models, OneThreadRow};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::diff::Diff;
use flashgrain_report::Style;
use flashgrain_report::trace::JudgedTrace;

/// Columns where there is no terminal, and the most that are used on one.
const COLUMNS: usize = 100;

pub fn profile(profile: &DeviceProfile) -> String {
    flashgrain_report::terminal(profile, style())
}

pub fn comparison(comparison: &Comparison, one_thread: &[OneThreadRow], models: Option<&Models>) -> String {
    flashgrain_report::terminal_comparison(comparison, one_thread, models, style())
}

pub fn diff(diff: &Diff) -> String {
    flashgrain_report::terminal_diff(diff, style())
}

pub fn advice(advice: &Advice) -> String {
    flashgrain_report::terminal_advice(advice, style())
}

pub fn brief_advice(advice: &Advice) -> String {
    flashgrain_report::terminal_brief_advice(advice, style())
}

pub fn budget(budget: &Budget) -> String {
    flashgrain_report::budget::terminal(budget, style())
}

pub fn engine(engine: &EngineAdvice) -> String {
    flashgrain_report::terminal_engine(engine, style())
}

pub fn trace(judged: &JudgedTrace<'_>) -> String {
    flashgrain_report::trace::terminal(judged, style())
}

fn style() -> Style {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let width = asked.filter(|width| *width > 0).or_else(of_terminal).unwrap_or(COLUMNS).min(COLUMNS);
    // https://no-color.org
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    Style { width, colour: io::stdout().is_terminal() && !unwanted && !dumb }
}
