//! `flashgrain sim list`.

use clap::Args;
use flashgrain_report::unit;
use flashgrain_ssdsim::config::MediumConfig;
use flashgrain_ssdsim::{SimConfig, preset};
use serde::Serialize;

use crate::output::{print, print_json};

/// List the presets.
///
/// A number before a name makes a stripe set, such as 8xpm1733.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    model: String,
    medium: &'static str,
    drives: u32,
    capacity_bytes: u64,
    summary: String,
}

impl Row {
    fn new(name: &'static str, config: SimConfig) -> Self {
        Self {
            name,
            medium: medium_name(&config),
            drives: config.drives,
            capacity_bytes: config.capacity_bytes * u64::from(config.drives),
            model: config.name,
            summary: config.about.summary,
        }
    }
}

/// The medium's name in a description.
pub fn medium_name(config: &SimConfig) -> &'static str {
    match config.medium {
        MediumConfig::Nand(_) => "nand",
        MediumConfig::Xpoint(_) => "3d-xpoint",
        MediumConfig::Disk(_) => "disk",
    }
}

pub fn run(arguments: &ListArguments) -> anyhow::Result<()> {
    let row = |name| Ok(Row::new(name, preset::find(name)?));
    let rows = preset::names().into_iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    if arguments.json {
        return print_json(&rows);
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("preset".len());
    let mut text = format!("{:<width$}  {:<9}  {:>9}\n", "preset", "medium", "capacity");
    for Row { name, medium, capacity_bytes, summary, .. } in rows {
        let capacity = unit::bytes(capacity_bytes as f64);
        text += &format!("{name:<width$}  {medium:<9}  {capacity:>9}  {summary}\n");
    }
    Ok(print(&text)?)
}
