//! The profiler learns the configured parameters, which it is not told: on the drives of the papers.

use flashgrain_model::{Access, ModelName};
use flashgrain_profile::{Config, ExperimentName};
use flashgrain_ssdsim::config::MediumConfig;
use flashgrain_ssdsim::{SimConfig, preset};

use crate::common::{as_a_user, profile};
use crate::score::{Hidden, Row, Verdict};

fn flash() -> Vec<(&'static str, SimConfig)> {
    let named = |name| (name, preset::find(name).unwrap());
    let is_flash = |(_, config): &(&str, SimConfig)| matches!(config.medium, MediumConfig::Nand(_));
    preset::names().into_iter().map(named).filter(is_flash).collect()
}

/// Table 1 of the hidden-parameters paper, KiB: desirable write, stripe, chunk, hot offset, drop in percent,
/// flash page.
const HIDDEN: [(&str, [f64; 4], f64, Option<f64>); 3] = [
    ("960evo", [32.0, 64.0, 64.0, 32.0], 39.0, None),
    ("xg5", [64.0, 64.0, 4.0, 0.0], 38.0, Some(4.0)),
    ("m500", [64.0, 64.0, 4.0, 0.0], 20.0, Some(4.0)),
];

fn hidden_experiments() -> Config {
    Config {
        experiments: vec![ExperimentName::RequestSize, ExperimentName::Location],
        write_bytes: 2 << 30,
        ..Config::default()
    }
}

#[test]
fn the_papers_hidden_parameters_are_learned() {
    for (name, [desirable, stripe, chunk, hot], drop, page) in HIDDEN {
        let learned = profile(&preset::find(name).unwrap(), &hidden_experiments()).profile.learned;
        let kib = |value: &flashgrain_profile::schema::LearnedValue| {
            value.estimate.value().map(|bytes| bytes / 1024.0)
        };
        let found = [
            &learned.desirable_write_bytes,
            &learned.stripe_bytes,
            &learned.chunk_bytes,
            &learned.hot_offset_bytes,
        ]
        .map(kib);
        let drop_found = learned.hot_latency_drop.estimate.value().map(|share| share * 100.0);
        println!("{name}: {found:?}, {drop_found:?} % lower, page {:?}", kib(&learned.flash_page_bytes));
        assert_eq!(found, [desirable, stripe, chunk, hot].map(Some), "{name}: {learned:#?}");
        assert!(drop_found.is_some_and(|found| (found - drop).abs() < 2.0), "{name}: {drop_found:?} %");
        assert_eq!(kib(&learned.flash_page_bytes), page, "{name}: {:?}", learned.flash_page_bytes);
    }
}

#[test]
fn every_preset_is_learned_as_it_is_configured() {
    let mut wrong: Vec<(&str, Row)> = Vec::new();
    for (name, config) in flash() {
        let learned = profile(&config, &hidden_experiments()).profile.learned;
        let rows = Hidden::of(&config).rows(&learned);
        println!("{name}");
        rows.iter().for_each(|row| println!("{}", row.text()));
        wrong.extend(rows.into_iter().filter(|row| row.verdict == Verdict::Wrong).map(|row| (name, row)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Drives whose hidden parameters were once learned wrongly, and with confidence, by a default profile: small
/// pages on large chunks, and sizes that are no power of two.
const MISLEADING: [(&str, &str); 3] = [
    ("small pages in chunks", include_str!("../fixtures/drives/small-pages-in-chunks.toml")),
    ("all of 40 KiB", include_str!("../fixtures/drives/all-40k.toml")),
    ("a stripe of 96 KiB", include_str!("../fixtures/drives/stripe-96k.toml")),
];

#[test]
fn a_default_profile_says_nothing_wrong_of_misleading_drives() {
    let mut wrong: Vec<(&str, Row)> = Vec::new();
    let mut right = 0;
    for (name, text) in MISLEADING {
        let drive = SimConfig::from_toml(text, name).unwrap();
        let learned = profile(&drive, &as_a_user(&drive, 1)).profile.learned;
        println!("{name}");
        for row in Hidden::of(&drive).rows(&learned) {
            println!("{}\n    {:?}", row.text(), row.learned.estimate);
            right += u32::from(row.verdict == Verdict::Right);
            wrong.extend((row.verdict == Verdict::Wrong).then_some((name, row)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right >= 6, "{right} right");
}

/// Table 1 of the dictionaries paper: P and saturation in MB/s.
const PARALLEL: [(&str, f64, f64); 4] = [
    ("sandisk-ultra-ii", 5.5, 240.0),
    ("860evo", 4.5, 530.0),
    ("970evo", 5.4, 900.0),
    ("980pro", 5.6, 2300.0),
];

#[test]
fn the_pdam_table_is_learned() {
    for (name, parallelism, saturation) in PARALLEL {
        let config = Config {
            experiments: vec![ExperimentName::Parallel],
            budget_s: 6.0,
            // Nothing is written, and reads go to the whole drive, as in the paper.
            write_bytes: 0,
            ..Config::default()
        };
        let learned = profile(&preset::find(name).unwrap(), &config).profile.learned;
        let (p, rate) = (
            learned.parallelism.estimate.value().unwrap_or(0.0),
            learned.saturation_bytes_per_second.estimate.value().unwrap_or(0.0) / 1e6,
        );
        println!("{name:<18} P {p:.2} ({parallelism}), saturation {rate:.0} MB/s ({saturation})");
        assert!((p / parallelism - 1.0).abs() <= 0.10, "{name}: {:?}", learned.parallelism);
        assert!((rate / saturation - 1.0).abs() <= 0.05, "{name}: {:?}", learned.saturation_bytes_per_second);
    }
}

/// Drives that the models are compared on in an ordinary run of the tests; with `FLASHGRAIN_ALL_PRESETS=1` it
/// is all of them, which moves some hundred gigabytes through memory.
const COMPARED: [&str; 4] = ["960evo", "m500", "970evo", "intel-750"];

/// Of reads: sustained writes go by how a size divides the drive's stripes, which none of the models knows.
#[test]
fn mqssd_predicts_reads_of_every_flash_drive_best() {
    let all = std::env::var_os("FLASHGRAIN_ALL_PRESETS").is_some();
    println!("{:<18} {:>8} {:>8} {:>8} {:>8}", "drive", "dam", "affine", "pdam", "mqssd");
    let mut failed = Vec::new();
    for (name, config) in flash().into_iter().filter(|(name, _)| all || COMPARED.contains(name)) {
        let options = Config {
            // The benchmark of the MQSSD paper.
            experiments: vec![ExperimentName::Order],
            budget_s: (3e10 / config.host.link_bytes_per_s as f64).clamp(4.0, 30.0),
            write_bytes: 1 << 30,
            verify: false,
            resamples: 20,
            ..Config::default()
        };
        let comparison = profile(&config, &options).profile.comparison.unwrap();
        let error = |model: ModelName| {
            let mut errors: Vec<f64> = comparison
                .points
                .iter()
                .filter(|point| point.held_out && point.workload.access() == Some(Access::Read))
                .filter_map(|point| point.relative_error(model))
                .collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied().unwrap_or(f64::INFINITY)
        };
        let [dam, affine, pdam, mqssd] =
            [ModelName::Dam, ModelName::Affine, ModelName::Pdam, ModelName::Mqssd].map(error);
        println!(
            "{name:<18} {:>7.1}% {:>7.1}% {:>7.1}% {:>7.1}%",
            dam * 100.0,
            affine * 100.0,
            pdam * 100.0,
            mqssd * 100.0
        );
        if mqssd > 0.10 || mqssd >= dam.min(affine).min(pdam) {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
