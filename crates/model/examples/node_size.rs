//! From measurements to a node-size curve: what look-ups in a B-tree cost over its node size on a drive.
//!
//! ```text
//! cargo run -p flashgrain_model --example node_size -- samples.csv
//! cargo run -p flashgrain_model --example node_size -- profile.json
//! ```
//!
//! The CSV has the columns of docs/samples-csv.md, from fio or any other tool; a profile is what `flashgrain
//! tune` and `flashgrain profile` write. Without an argument the example takes `node_size.csv` beside it.

use flashgrain_model::dictionary::{
    BTree, Operation, Records, Situation, best_node_size, node_size_curve, powers_of_two,
};
use flashgrain_model::{FitOptions, Models, fit, read_csv};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let models = models(std::env::args().nth(1))?;
    let records = Records { count: 1e8, key_bytes: 16.0, value_bytes: 100.0 };
    let situation = Situation::new(records, 1e9, 1.0);
    for model in models.iter() {
        let sizes = powers_of_two(4096.0, 4_194_304.0);
        let curve = node_size_curve(&sizes, BTree::new, &[(1.0, Operation::PointHit)], &situation, model);
        for point in &curve {
            println!(
                "{} {:>8} bytes {:>9.3} ms",
                model.name(),
                point.node_bytes,
                point.cost.latency_seconds * 1e3
            );
        }
        if let Some(best) = best_node_size(&curve) {
            println!("{}: best with nodes of {} bytes", model.name(), best.node_bytes);
        }
    }
    Ok(())
}

/// The models in a profile, or fitted to samples.
fn models(path: Option<String>) -> Result<Models, Box<dyn std::error::Error>> {
    let Some(path) = path else {
        return Ok(fit(&read_csv(include_bytes!("node_size.csv").as_slice())?, &FitOptions::default())?);
    };
    let file = std::fs::read(&path)?;
    if path.ends_with(".json") {
        let mut profile: serde_json::Value = serde_json::from_slice(&file)?;
        return Ok(serde_json::from_value(profile["models"].take())?);
    }
    Ok(fit(&read_csv(file.as_slice())?, &FitOptions::default())?)
}
