//! Prints advice as JSON: `cargo run --example advise -- PROFILE WORKLOAD`, the workload a preset or a file.

use std::{env, fs};

use flashgrain_advisor::engine::EngineName;
use flashgrain_advisor::{Advice, workload};
use flashgrain_profile::file;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let profile = file::read(arguments.next().ok_or("which profile?")?.as_ref())?;
    let workload = arguments.next().ok_or("which workload?")?;
    let workload = match fs::read_to_string(&workload) {
        Ok(text) => workload::parse(&text)?,
        Err(_) => workload::preset(&workload)?,
    };
    let advice = Advice::new(&workload, &profile, &EngineName::ALL);
    println!("{}", serde_json::to_string_pretty(&advice)?);
    Ok(())
}
