//! The terminal summary: what it says, and that it fits.

mod common;

use flashgrain_profile::diff::diff;
use flashgrain_report::{Style, terminal, terminal_comparison, terminal_diff};

/// After a wanted change: `cargo run -p flashgrain_report --example report -- /dev/null > crates/report/tests/golden/terminal.txt`.
#[test]
fn the_summary_reads_as_agreed() {
    assert_eq!(terminal(&common::full(), 100), include_str!("golden/terminal.txt"));
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
    after.decisions[1].value = "96".into();
    after.learned.stripe_bytes.estimate = common::determined(131_072.0, 131_072.0, 131_072.0);
    for point in &mut after.measurements.size {
        for rate in
            [&mut point.bytes_per_second, &mut point.bytes_per_second_min, &mut point.bytes_per_second_max]
        {
            *rate /= 2.0;
        }
    }
    let text = terminal_diff(&diff(&before, &after).expect("two profiles of this version"), 100);
    for word in
        ["firmware", "3B7QCXE7", "newer\u{fffd}", "96", "stripe_bytes", "64 KiB", "128 KiB", "size", "0.500"]
    {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn a_comparison_alone_has_every_model_and_the_noise_floor() {
    let comparison = common::full().comparison.expect("the made-up profile has one");
    let text = terminal_comparison(&comparison, 100);
    for word in ["DAM", "PDAM", "affine", "MQSSD", "noise floor", "reads", "writes", "mixed", "noise"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}
