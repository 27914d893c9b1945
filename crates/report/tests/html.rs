//! The page: complete, self-contained, escaped, the same every time.

mod common;

use flashgrain_model::{Collection, SteadyWrites};
use flashgrain_profile::DeviceProfile;
use flashgrain_report::html;

const SECTIONS: [&str; 11] = [
    "decisions",
    "store",
    "what-if",
    "learned",
    "models",
    "costs",
    "working-points",
    "depth",
    "hidden",
    "path",
    "verification",
];

const FIGURES: [&str; 18] = [
    "fig-store",
    "fig-errors",
    "fig-order-reads",
    "fig-order-writes",
    "fig-parallel",
    "fig-affine",
    "fig-latency",
    "fig-depth",
    "fig-mix",
    "fig-request-size",
    "fig-location",
    "fig-interface",
    "fig-flush",
    "fig-sustain",
    "fig-setup",
    "fig-transfer",
    "fig-sequential",
    "fig-verification",
];

fn page(profile: &DeviceProfile) -> String {
    html(profile).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_section_and_every_chart_is_there() {
    let page = page(&common::full());
    for section in SECTIONS {
        assert!(page.contains(&format!(r#"<section id="{section}">"#)), "{section}");
        assert!(page.contains(&format!(r##"<a href="#{section}">"##)), "{section} in the table of contents");
    }
    for id in FIGURES {
        let start = page.find(&format!(r#"<figure id="{id}""#)).unwrap_or_else(|| panic!("{id}"));
        let end = start + page[start..].find("</figure>").expect("its end");
        let figure = &page[start..end];
        assert!(figure.contains(r#"role="img" aria-label=""#));
        assert!(id == "fig-errors" || figure.contains("<title>"), "{id}: marks say their numbers");
        assert!(!figure.contains("NaN") && !figure.contains("inf "), "{id}");
        let caption = figure.split("<figcaption>").nth(1).expect("a caption");
        assert!(caption.len() > 20, "{caption}");
    }
}

#[test]
fn nothing_is_fetched() {
    for profile in [common::full(), common::empty()] {
        let page = page(&profile);
        for fetching in ["http://", "https://", "src=", "@import", "url(", "<link rel=\"stylesheet", "fetch("]
        {
            assert!(!page.contains(fetching), "{fetching}");
        }
    }
}

#[test]
fn without_scripts_the_what_if_section_has_the_ranking_of_the_default_mix() {
    let page = page(&common::full());
    let section = page.split(r#"<section id="what-if">"#).nth(1).expect("the section");
    let section = section.split("</section>").next().expect("its end");
    let live = section.split(r#"<div id="what-if-live""#).nth(1).expect("the controls");
    assert!(
        live.split('>').next().is_some_and(|start| start.ends_with(" hidden")),
        "until a script shows them"
    );
    let body = section.split("<tbody>").nth(1).expect("a table");
    let body = body.split("</tbody>").next().expect("its end");
    assert_eq!(body.matches("<tr").count(), 9, "a row per design");
    for design in [
        "B-tree in place",
        "B-tree out of place",
        "PDAM B-tree",
        "LSM-tree, leveled",
        "LSM-tree, single level",
    ] {
        assert!(body.contains(design), "{design}");
    }
    assert!(html(&common::empty()).is_ok_and(|page| page.contains("there is nothing to vary")));
}

#[test]
fn elements_are_closed() {
    let page = page(&common::full());
    for element in ["section", "figure", "svg", "g", "table", "tr", "ul", "li", "div", "main"] {
        let opened =
            page.matches(&format!("<{element} ")).count() + page.matches(&format!("<{element}>")).count();
        let closed = page.matches(&format!("</{element}>")).count();
        assert_eq!(opened, closed, "{element}");
    }
}

#[test]
fn text_from_outside_is_escaped() {
    const EVIL: &str = "</title></svg><script>alert('x')</script>\"&\u{1b}";
    let mut profile = common::full();
    let identity = &mut profile.provenance.identity;
    identity.target = EVIL.into();
    identity.model = Some(EVIL.into());
    identity.backend = EVIL.into();
    identity.backend_reason = EVIL.into();
    identity.notes = vec![EVIL.into()];
    profile.provenance.flashgrain_version = EVIL.into();
    profile.budget.left_out = vec![EVIL.into()];
    profile.learned.stripe_bytes.evidence = EVIL.into();
    profile.decisions[0].because = EVIL.into();
    profile.measurements.interface[0].backend = EVIL.into();
    profile.measurements.flush[1].method = EVIL.into();
    if let Some(comparison) = &mut profile.comparison {
        comparison.ranking_reason = EVIL.into();
    }
    let page = page(&profile);
    assert!(!page.contains("alert('x')"));
    assert_eq!(page.matches("<script>").count(), 1, "the page's own script only");
    assert!(page.contains("&lt;script&gt;alert("), "svg");
    assert!(page.contains("&#60;script&#62;alert("), "html");
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn an_experiment_that_was_not_run_takes_one_line() {
    let page = page(&common::empty());
    for section in SECTIONS {
        assert!(page.contains(&format!(r#"<section id="{section}">"#)), "{section}");
    }
    assert!(!page.contains("<figure"));
    assert!(page.contains("Read/write mix: not run"));
    assert!(page.contains("the experiment was not run"), "undetermined with its reason");
}

#[test]
fn what_was_left_out_says_why_in_the_place_of_its_chart() {
    let mut profile = common::full();
    profile.measurements.sustain = None;
    assert!(
        page(&profile)
            .contains("Sustained writes: not run: sustain: opt-in, needs several minutes of writing.")
    );
}

#[test]
fn garbage_collection_by_valid_data_has_its_line_and_its_errors() {
    const PANEL: &str = "Steady rate by the volume of valid data";
    let mut profile = common::full();
    assert!(!page(&profile).contains(PANEL), "nothing was asked for");
    let sustain = profile.measurements.sustain.as_mut().unwrap();
    sustain.by_valid_data = [(0.3, 98e6), (0.5, 81e6), (0.7, 61e6), (0.85, 42e6), (1.0, 20e6)]
        .map(|(share, bytes_per_second)| SteadyWrites { valid_bytes: share * 1e9, bytes_per_second })
        .to_vec();
    sustain.collection = Some(Collection::fit(&sustain.by_valid_data));
    let page = page(&profile);
    assert!(page.contains(PANEL));
    assert!(page.contains("; garbage collection writes 1."), "with the least valid data");
    assert!(page.contains("error of left-out steady states"));
}

#[test]
fn without_a_comparison_the_grid_is_drawn_with_the_final_fits() {
    let profile = DeviceProfile { comparison: None, ..common::full() };
    let page = page(&profile);
    assert!(page.contains(r#"<figure id="fig-order-reads""#));
    assert!(page.contains("Nothing was held out"));
    assert!(!page.contains(r#"<figure id="fig-errors""#));
}

#[test]
fn the_same_profile_gives_the_same_bytes_and_few_of_them() {
    let first = page(&common::full());
    assert_eq!(first, page(&common::full()));
    assert!(first.len() < 1_500_000, "{} bytes", first.len());
}

#[test]
fn numbers_that_are_none_break_nothing() {
    let mut profile = common::full();
    for point in profile.measurements.order.iter_mut().chain(&mut profile.measurements.depth) {
        point.bytes_per_second = f64::NAN;
        point.bytes_per_second_max = f64::INFINITY;
    }
    profile.measurements.parallel[0].bytes_per_second = 0.0;
    profile.measurements.parallel[1].bytes_per_second = f64::NAN;
    profile.measurements.size[0].workload.request_bytes = 0.0;
    if let Some(comparison) = &mut profile.comparison {
        comparison.points[0].bytes_per_second = 0.0;
        comparison.points[2].bytes_per_second = f64::NAN;
        comparison.points[1].workload.random_share = 0.0;
        comparison.rows[0].median_relative_error = f64::NAN;
    }
    let page = page(&profile);
    for broken in ["NaN", "inf\"", "inf "] {
        assert!(!page.contains(broken), "{broken}");
    }
}
