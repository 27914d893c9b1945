//! The section in which a reader varies workload and drive, and the ranking of designs follows.
//!
//! The table of the default mix is there without scripts. The scripts rank anew, offline: `what_if_model.js`
//! says what `flashgrain_cost::ranking` says, `what_if.js` has the controls.

use std::collections::BTreeMap;

use askama::Template;
use flashgrain_advisor::{Drive, workload};
use flashgrain_cost::ranking::{Factors, Family, Question, Row};
use flashgrain_profile::DeviceProfile;

use super::{Block, Captioned, Section};
use crate::figure::Key;
use crate::svg::colour;
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::Unit;

/// The mix that the sliders begin with.
const DEFAULT_MIX: &str = "ycsb-a";

/// Controls, chart, table, and the scripts that connect them.
#[derive(Template)]
#[template(path = "what_if.html")]
pub struct WhatIf {
    names: String,
    legend: Vec<Key>,
    table: Captioned,
    question: String,
    model: &'static str,
    script: &'static str,
}

pub(super) fn section(profile: &DeviceProfile) -> Section {
    let blocks = if profile.models.is_none() {
        vec![Block::Absent("No costs were fitted, so that there is nothing to vary.".into())]
    } else {
        blocks(profile).unwrap_or_else(|why| vec![Block::Absent(format!("Not ranked: {why}."))])
    };
    Section::new("what-if", "What if: designs for a workload", blocks)
}

fn blocks(profile: &DeviceProfile) -> Result<Vec<Block>, Box<dyn std::error::Error>> {
    let workload = workload::preset(DEFAULT_MIX)?;
    let drive = Drive::of(profile).costs().clone();
    let question = Question { workload, drive, factors: Factors::ONE };
    let rows = question.answer().rows;
    let families: BTreeMap<String, &str> = Family::ALL
        .iter()
        .map(|family| Ok((key(*family)?, family.describe())))
        .collect::<Result<_, Error>>()?;
    let legend = Family::ALL.iter().enumerate().map(|(place, family)| {
        let colour = colour::ramp_of(place, Family::ALL.len());
        Ok(Key { series: key(*family)?, label: family.describe().into(), colour, shape: "line" })
    });
    let caption = "Predicted; intervals from the ends of the profile's. Begins with YCSB's mix A: 100 million \
                   records with keys of 24 bytes, half look-ups, half updates";
    let page = WhatIf {
        names: serde_json::to_string(&families)?,
        legend: legend.collect::<Result<_, Error>>()?,
        table: Captioned { caption: caption.into(), table: table(&rows) },
        // Nothing in a script element may look like its end.
        question: serde_json::to_string(&question)?.replace('<', "\\u003c"),
        model: include_str!("../../templates/what_if_model.js"),
        script: include_str!("../../templates/what_if.js"),
    };
    Ok(vec![Block::Text(COMPARED.into()), Block::WhatIf(Box::new(page))])
}

type Error = serde_json::Error;

const COMPARED: &str = "Compared are B-trees in place and out of place, PDAM B-trees, Bε-trees whose nodes are read \
                        whole or by child, and leveled, tiered, lazy leveled and single-level LSM-trees, each with \
                        the best of the parameters that flashgrain advise tries. Factors are on the costs of this \
                        drive; a slider at × 1 is the drive as profiled.";

/// The family as the script names it.
fn key(family: Family) -> Result<String, Error> {
    Ok(serde_json::to_value(family)?.as_str().unwrap_or_default().to_owned())
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("design", Kind::Label),
        ("operations/s", Kind::Number),
        ("latency", Kind::Number),
        ("limited by", Kind::Label),
        ("written per byte", Kind::Number),
        ("space per byte", Kind::Number),
        ("best with", Kind::Prose),
    ]);
    for (place, row) in rows.iter().enumerate() {
        let tone = if place == 0 { Tone::Strong } else { Tone::Plain };
        let (rate, latency) = (row.rate_per_second, row.latency_us.scaled(1e-6));
        let written = row.write_amplification.map_or_else(|| "–".to_owned(), |own| Unit::Plain.show(own));
        table.push([
            Cell::toned(row.family.describe(), tone),
            Cell::toned(Unit::Count.show_interval(rate.value, rate.low, rate.high), tone),
            Unit::Seconds.show_interval(latency.value, latency.low, latency.high).into(),
            row.bound.describe().into(),
            written.into(),
            Unit::Plain.show(row.space_amplification).into(),
            row.design.as_str().into(),
        ]);
    }
    table
}
