//! The section where a reader varies workload and drive, and the ranking of designs follows.
//!
//! The table of the default mix is there without scripts. `what_if.js` has the controls and ranks anew,
//! offline: it asks `flashgrain_cost::ranking`, which the page holds as a WebAssembly module
//! (`what_if.wasm`).

use std::collections::BTreeMap;

use askama::Template;
use flashgrain_advisor::{Drive, workload};
use flashgrain_cost::ranking::{Bound, Factors, Family, Question, Row};
use flashgrain_profile::DeviceProfile;
use serde_json::{Value, to_value};

use super::{Block, Captioned, Section};
use crate::figure::Key;
use crate::svg::colour;
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::Unit;

/// Built by `scripts/build-what-if.sh`.
const MODULE: &[u8] = include_bytes!("../../templates/what_if.wasm");

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
    /// In base64.
    module: String,
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
    let families = Family::ALL.into_iter().map(|family| Ok((key(to_value(family))?, family.describe())));
    let bounds = Bound::ALL.into_iter().map(|bound| Ok((key(to_value(bound))?, bound.describe())));
    let names: BTreeMap<String, &str> = families.chain(bounds).collect::<Result<_, Error>>()?;
    let legend = Family::ALL.iter().enumerate().map(|(place, family)| {
        let colour = colour::ramp_of(place, Family::ALL.len());
        Ok(Key { series: key(to_value(family))?, label: family.describe().into(), colour, shape: "line" })
    });
    let caption = "Predicted; intervals from the ends of the profile's. Begins with YCSB's mix A: 100 million \
                   records with keys of 24 bytes, half look-ups, half updates";
    let page = WhatIf {
        names: serde_json::to_string(&names)?,
        legend: legend.collect::<Result<_, Error>>()?,
        table: Captioned { caption: caption.into(), table: table(&rows) },
        // Nothing in a script element may look like its end.
        question: serde_json::to_string(&question)?.replace('<', "\\u003c"),
        module: base64(MODULE),
        script: include_str!("../../templates/what_if.js"),
    };
    Ok(vec![Block::Text(COMPARED.into()), Block::WhatIf(Box::new(page))])
}

type Error = serde_json::Error;

const COMPARED: &str = "Compared are B-trees in place and out of place, PDAM B-trees, Bε-trees whose nodes are read \
                        whole or by child, and leveled, tiered, lazy leveled and single-level LSM-trees, each with \
                        the best of the parameters that flashgrain advise tries. Factors are on the costs of this \
                        drive; a slider at × 1 is the drive as profiled.";

/// A family or a bound as answers name it.
fn key(word: Result<Value, Error>) -> Result<String, Error> {
    Ok(word?.as_str().unwrap_or_default().to_owned())
}

/// The text that a script's `atob` decodes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize % 64];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_ends_as_the_standard_says() {
        // RFC 4648, section 10.
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff, 0x00]), "+/8A");
    }
}
