//! `flashgrain sim show`.

use clap::Args;
use flashgrain_ssdsim::SimConfig;

use crate::output::{print, print_json};

/// Print the description of a simulated drive: every field with its value, and where the numbers come from.
///
/// `flashgrain sim show 960evo > mine.toml` is the way to a drive of your own, `flashgrain sim show
/// ssdconfig.xml > mine.toml` that from MQSim.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// A preset, a FILE.toml, or MQSim's ssdconfig.xml.
    #[arg(value_name = "DRIVE")]
    drive: String,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &ShowArguments) -> anyhow::Result<()> {
    let config = SimConfig::named(&arguments.drive)?;
    if arguments.json { print_json(&config) } else { Ok(print(&config.to_toml()?)?) }
}
