//! The terminal summary: what it says, and that it fits.

mod common;

use flashgrain_advisor::Advice;
use flashgrain_advisor::engine::EngineName;
use flashgrain_model::{Access, Comparison, ComparisonRow, Estimate, ModelName, NoiseFloor, WithoutRow};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::diff::diff;
use flashgrain_profile::schema::{Cap, Credits, ProcessorUse};
use flashgrain_profile::settings::Count;
use flashgrain_profile::settings::drive::Setting;
use flashgrain_report::{Style, terminal, terminal_brief_advice, terminal_comparison, terminal_diff};

/// A comparison that does not change with the way models are fitted.
fn made_up_comparison() -> Comparison {
    let row = |model, access, r_squared, adjusted_r_squared, median_relative_error| ComparisonRow {
        model,
        access,
        r_squared: Some(r_squared),
        adjusted_r_squared,
        median_relative_error,
        worst_relative_error: 4.0 * median_relative_error,
        points: 12,
        constants: 2,
    };
    let (reads, writes) = (Some(Access::Read), Some(Access::Write));
    Comparison {
        rows: vec![
            row(ModelName::Dam, reads, -24.0, Some(-31.0), 0.81),
            row(ModelName::Mqssd, reads, 0.991, Some(0.984), 0.034),
            row(ModelName::Dam, writes, -0.25, Some(-0.4), 0.5),
            row(ModelName::Mqssd, writes, 0.95, None, 0.06),
        ],
        without_row: vec![WithoutRow {
            access: None,
            model: None,
            why: "there are no samples of this kind".into(),
        }],
        splits: 2,
        points: Vec::new(),
        noise_floor: vec![NoiseFloor { access: reads, median_relative_error: 0.026, points: 96 }],
        ranking: vec![ModelName::Mqssd, ModelName::Dam],
        ranking_reason: "MQSSD has the lowest mean error on 24 held-out points".into(),
    }
}

/// After a wanted change: `UPDATE_GOLDEN=1 cargo test -p flashgrain_report --test terminal`, and read the
/// difference.
#[test]
fn the_summary_reads_as_agreed() {
    let profile = DeviceProfile { comparison: Some(made_up_comparison()), ..common::unfitted() };
    let summary = terminal(&profile, 100);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/terminal.txt");
        std::fs::write(path, &summary).expect("the golden file");
    }
    assert_eq!(summary, include_str!("golden/terminal.txt"));
}

#[test]
fn contended_processors_are_named_and_idle_ones_are_not() {
    let with = |processor| {
        let mut profile = common::unfitted();
        profile.budget.processor = processor;
        terminal(&profile, 100).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let used = |ran_s, waited_s, stolen| Some(ProcessorUse { ran_s, waited_s, stolen_share: stolen });
    let contended = "The processors were contended";
    assert!(with(used(6.0, 4.0, None)).contains("waited 40 % for a processor"));
    assert!(with(used(10.0, 0.1, Some(0.2))).contains("gave 20 % of all processors' time to others"));
    for quiet in [None, used(9.0, 1.0, Some(0.001)), used(0.0, 0.0, None)] {
        assert!(!with(quiet).contains(contended));
    }
}

#[test]
fn a_cap_is_said_first_with_the_credits_that_were_used_up() {
    let credits = Credits { repeats: 76, requests_per_second_max: 562e3, bytes_per_second_max: 2.5e9 };
    let with = |credits: Option<Credits>| {
        let mut profile = common::unfitted();
        profile.learned.cap = Some(Cap {
            requests_per_second: Some(3000.0),
            bytes_per_second: Some(125e6),
            credits,
            evidence: "all sizes at one rate".into(),
        });
        let page = flashgrain_report::html(&profile).unwrap();
        assert!(page.contains("3000 requests/s and 125 MB/s"));
        terminal(&profile, 200).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = with(None);
    let first = text.split_once("In short ").unwrap().1.split_once("4 KiB").map_or("", |(first, _)| first);
    assert!(
        first.contains("capped before the drive") && first.contains("3000 requests/s and 125 MB/s"),
        "{first}"
    );
    assert!(text.contains("all sizes at one rate") && !text.contains("credits"), "{text}");
    assert!(with(Some(credits)).contains("left out: 76 repeats on credits, up to 562 k requests/s"));
}

#[test]
fn fitted_costs_have_a_row_for_each_concurrency() {
    let text = terminal(&common::full(), 100);
    let costs =
        text.split("MQSSD costs by concurrency").nth(1).and_then(|rest| rest.split("\nLearned").next());
    let rows: Vec<&str> = costs.expect("the section").lines().map(str::trim_start).collect();
    for k in ["1 ", "2 ", "4 ", "8 ", "16 ", "32 ", "64 ", "128 "] {
        assert!(rows.iter().any(|row| row.starts_with(k)), "k = {k}in {rows:#?}");
    }
}

#[test]
fn every_line_fits_the_width() {
    for width in [60, 72, 80, 100, 160] {
        for profile in [common::full(), common::empty()] {
            for line in terminal(&profile, width).lines() {
                assert!(line.chars().count() <= width, "wider than {width}: {line:?}");
            }
        }
    }
}

#[test]
fn an_empty_profile_says_what_is_missing() {
    let text = terminal(&common::empty(), 100);
    assert!(text.contains("/empty"));
    assert!(text.contains("Not compared"));
    assert!(text.contains("undetermined"));
    assert!(text.contains("the experiment was not run"));
}

#[test]
fn undetermined_comes_with_its_reason() {
    let text = terminal(&common::full(), 100).replace("\n      ", " ");
    assert!(text.contains("throughput still rises at the deepest queue measured (128)"), "{text}");
}

/// Such as of older files, where nothing took it.
#[test]
fn a_setting_that_is_not_known_is_shown_as_such() {
    let row = r#"{"setting": "table write size", "value": "1 MiB", "because": "x", "from_default": false}"#;
    let mut profile = common::full();
    profile.decisions.push(serde_json::from_str(row).expect("a decision"));
    let text = terminal(&profile, 100);
    let shown = text.lines().find(|line| line.contains("table write size")).expect("a row");
    assert!(shown.contains("1 MiB") && shown.contains("unknown"), "{shown}");
}

#[test]
fn colour_only_on_request() {
    let profile = common::full();
    assert!(!terminal(&profile, 100).contains('\u{1b}'));
    assert!(terminal(&profile, Style { width: 100, colour: true }).contains("\u{1b}[1m"));
}

#[test]
fn text_from_outside_cannot_steer_the_terminal() {
    let mut profile = common::full();
    profile.provenance.identity.model = Some("evil\u{1b}[2J\rdrive".into());
    profile.decisions[0].because = "be\u{7}cause".into();
    let text = terminal(&profile, 100);
    assert!(text.contains("evil\u{fffd}[2J\u{fffd}drive"));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn two_profiles_side_by_side() {
    let (before, mut after) = (common::full(), common::full());
    let same = terminal_diff(&diff(&before, &after).expect("two profiles of this version"), 100);
    assert!(same.contains("No difference.") && same.contains("0 of "), "{same}");
    after.provenance.identity.firmware = Some("newer\u{1b}".into());
    after.decisions[1].setting = Setting::RequestsInFlight(Count(96));
    let quiet = terminal_diff(&diff(&before, &after).expect("two profiles of this version"), 100);
    assert!(!quiet.contains("noise hides"), "{quiet}");
    after.decisions[1].hidden_by_noise = true;
    after.learned.stripe_bytes.estimate = common::determined(131_072.0, 131_072.0, 131_072.0);
    for point in &mut after.measurements.size {
        for rate in
            [&mut point.bytes_per_second, &mut point.bytes_per_second_min, &mut point.bytes_per_second_max]
        {
            *rate /= 2.0;
        }
    }
    let text = terminal_diff(&diff(&before, &after).expect("two profiles of this version"), 100);
    assert!(text.contains("because noise hides which alternative is better"), "{text}");
    for word in
        ["firmware", "3B7QCXE7", "newer\u{fffd}", "96", "stripe_bytes", "64 KiB", "128 KiB", "size", "0.500"]
    {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn a_comparison_alone_has_every_model_and_the_noise_floor() {
    let profile = common::full();
    let comparison = profile.comparison.expect("the made-up profile has one");
    let text = terminal_comparison(&comparison, &[], None, 100);
    for word in ["DAM", "PDAM", "affine", "MQSSD", "noise floor", "reads", "writes", "mixed"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    assert!(!text.contains("95 % interval"), "{text}");
    let with_constants = terminal_comparison(&comparison, &[], profile.models.as_ref(), 100);
    assert!(with_constants.starts_with(&text), "{with_constants}");
    for word in [
        "t(k)",
        "β(k)",
        "R² of the regression at each k",
        "k=128",
        "numerator",
        "page cost",
        "cycle cost",
        "parallelism P",
        "setup s",
        "γ",
    ] {
        assert!(with_constants.contains(word), "{word} is missing in:\n{with_constants}");
    }
}

#[test]
fn a_run_that_cannot_be_trusted_says_so_first_and_concludes_nothing() {
    let mut profile = common::full();
    let why = "this run cannot be trusted: the noise of its measurements is ± 1000 %";
    profile.distrust = Some(why.into());
    let comparison = profile.comparison.as_mut().expect("the made-up profile has one");
    comparison.conclude_nothing(why);
    let text = terminal(&profile, 100);
    assert!(text.trim_start().starts_with("This run cannot be trusted"), "{text}");
    assert!(!text.contains("In short") && !text.contains("best model"), "{text}");
    let page = flashgrain_report::html(&profile).expect("a page");
    let says = page.find("This run cannot be trusted").expect("the page says it");
    assert!(page.find("<section").is_none_or(|first| says < first));
    assert!(!page.contains("best model"));
}

#[test]
fn a_run_that_cannot_be_trusted_says_so_once() {
    let mut profile = common::full();
    let why = "this run cannot be trusted: the noise of its measurements is ± 1000 %";
    profile.distrust = Some(why.into());
    profile.comparison.as_mut().expect("the made-up profile has one").conclude_nothing(why);
    for decision in &mut profile.decisions {
        decision.because = why.into();
    }
    profile.learned.stripe_bytes.estimate = Estimate::Undetermined { why: why.into() };
    let store = profile.store.as_mut().expect("the made-up profile has one");
    store.layout.iter_mut().for_each(|decision| decision.because = format!("default: {why}"));
    let text = terminal(&profile, 1000);
    assert_eq!(text.matches("cannot be trusted").count(), 1, "{text}");
}

#[test]
fn a_share_of_the_raw_device_that_cannot_be_or_was_measured_once_is_none() {
    let text_with = |share: f64, repeats: &[f64]| {
        let mut profile = common::full();
        let store = profile.store.as_mut().expect("the made-up profile has one");
        store.operations.truncate(1);
        let operation = &mut store.operations[0];
        let raw = 1000.0;
        operation.raw_per_second = Some(raw);
        operation.raw_repeats_per_second = repeats.iter().map(|part| part * raw).collect();
        operation.measured_per_second = share * raw;
        terminal(&profile, 1000)
    };
    let undetermined = "of raw undetermined";
    assert!(text_with(0.62, &[0.9, 1.1]).contains("62 %"));
    assert!(!text_with(0.62, &[0.9, 1.1]).contains(undetermined));
    assert!(text_with(1.05, &[]).contains("105 %"), "older profiles have no repeats");
    for (share, repeats) in
        [(3.82, &[0.9, 1.1][..]), (3.82, &[][..]), (0.62, &[1.0][..]), (0.62, &[0.5, 1.5][..])]
    {
        let text = text_with(share, repeats);
        assert!(text.contains(undetermined) && text.contains("noise"), "{share} {repeats:?}: {text}");
        assert!(!text.contains(&format!("{:.0} %", share * 100.0)), "{share} {repeats:?}: {text}");
    }
}

#[test]
fn an_engine_above_the_first_design_has_a_reason() {
    let workload = flashgrain_advisor::workload::preset("ycsb-a").expect("a preset");
    let mut advice = Advice::new(&workload, &common::full(), &EngineName::ALL);
    let brief = |advice: &Advice| {
        let text = terminal_brief_advice(advice, 100);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let best = advice.engines.iter().map(|engine| engine.advised_rate_per_second.value).fold(0.0, f64::max);
    let rate = &mut advice.ranking.rows[0].rate_per_second;
    *rate = rate.scaled(1.1 * best / rate.value);
    assert!(!brief(&advice).contains("Predicted above the first design"), "{}", brief(&advice));
    let rate = &mut advice.ranking.rows[0].rate_per_second;
    *rate = rate.scaled(0.5);
    assert!(brief(&advice).contains("Predicted above the first design: "), "{}", brief(&advice));
}

#[test]
fn more_time_than_allowed_and_a_store_in_its_cache_are_said() {
    let mut profile = common::full();
    let text = terminal(&profile, 100);
    assert!(text.contains(" of 60 s and wrote"), "{text}");
    assert!(text.contains("out of memory") && !text.contains("times as large as its cache only"));
    profile.budget.used_s = 1.15 * profile.budget.limit_s;
    let store = profile.store.as_mut().expect("the made-up profile has one");
    store.cache_bytes = store.stored_bytes;
    let text = terminal(&profile, 1000);
    assert!(text.contains("more than the 60 s allowed"), "{text}");
    assert!(
        !text.contains("out of memory") && text.contains("1.0 times as large as its cache only"),
        "{text}"
    );
}
