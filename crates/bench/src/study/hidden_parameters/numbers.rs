//! The paper's numbers and ours.

use super::hot::{self, Variant};
use super::paper::{self, Property};
use super::{HiddenResult, PAPER_OPERATIONS, figures, mariadb, stripes};
use crate::study::comparison::{Comparison, Measure, median, on_drive};

pub(super) fn comparisons(result: Option<&HiddenResult>) -> Vec<Comparison> {
    let target = |of: fn(&HiddenResult) -> Option<&String>, papers: &'static str| {
        result.and_then(of).map_or(papers, String::as_str)
    };
    let hot = target(|result| Some(&result.hot.as_ref()?.target), paper::HOT_DRIVE);
    let mariadb = target(|result| Some(&result.mariadb.as_ref()?.target), paper::HOT_DRIVE);
    let log = target(|result| Some(&result.stripes.as_ref()?.target), paper::LOG_DRIVE);
    let mut all = on_drive(of_hot_locations(result), hot, paper::HOT_DRIVE);
    all.extend(on_drive(of_mariadb(result), mariadb, paper::HOT_DRIVE));
    all.extend(on_drive(of_stripes(result), log, paper::LOG_DRIVE));
    let found = result.and_then(|result| result.records.as_ref());
    let share = found.map(|found| found.original_across as f64 / found.records as f64);
    all.push(Comparison::new(
        "§4.3",
        "records across flash pages",
        Measure::Share,
        paper::RECORDS_ACROSS,
        share,
    ));
    all
}

/// Gains are ratios of rates.
fn of_hot_locations(result: Option<&HiddenResult>) -> Vec<Comparison> {
    let found = result.and_then(|result| result.hot.as_ref());
    let [(_, selects), (_, inserts)] = figures::PHASES;
    let gain = |size: u64, of: fn(&hot::Iteration) -> f64| Some(1.0 + found?.gain(Variant::Paper, size, of)?);
    let of_selects = || {
        let sizes = found?.sizes();
        let mut gains: Vec<f64> = sizes.iter().filter_map(|size| gain(*size, selects)).collect();
        median(&mut gains)
    };
    let number = |name: String, papers: f64, ours| {
        Comparison::new("Figure 12", name, Measure::Gain, 1.0 + papers, ours)
    };
    let select = number("selects, median".into(), paper::SELECT_GAIN_MEDIAN, of_selects());
    let insert = [1, PAPER_OPERATIONS].into_iter().filter_map(|papers_size| {
        let size = match result {
            Some(result) if papers_size == PAPER_OPERATIONS => result.operations,
            _ => papers_size,
        };
        let name = format!("inserts, {papers_size} in a transaction");
        let compared = number(name, paper::insert_gain(papers_size)?, gain(size, inserts));
        // Fewer inserts share the costs of a commit, which the paper's do not show.
        let is_like = size == papers_size || size >= paper::SIZE_WITHOUT_LOSS;
        Some(if is_like { compared } else { compared.apart(&format!("{size} in a transaction here")) })
    });
    std::iter::once(select).chain(insert).collect()
}

/// The same of MariaDB, with InnoDB as the paper changed it.
fn of_mariadb(result: Option<&HiddenResult>) -> Vec<Comparison> {
    use mariadb::{PAPER_PAGE_BYTES, Variant, YCSB};
    let found = result.and_then(|result| result.mariadb.as_ref());
    let [(_, selects), (_, inserts)] = figures::PHASES;
    let gain = |of| Some(1.0 + found?.gain(Variant::Paper, PAPER_PAGE_BYTES, of)?);
    let number = |source, name: &str, papers: f64, ours| {
        Comparison::new(source, format!("MariaDB: {name}"), Measure::Gain, 1.0 + papers, ours)
    };
    let mut all = vec![
        number("Figure 13a", "selects", paper::MARIADB_SELECT_GAIN, gain(selects)),
        number("Figure 13a", "inserts", paper::MARIADB_INSERT_GAIN, gain(inserts)),
    ];
    all.extend(YCSB.into_iter().filter_map(|workload| {
        let ours = found.and_then(|found| found.ycsb_gain(Variant::Paper, workload)).map(|gain| 1.0 + gain);
        Some(number("Figure 13b", workload, paper::ycsb_gain(workload)?, ours))
    }));
    all
}

/// Counts are multiplied, so that they are comparable with the paper's.
fn of_stripes(result: Option<&HiddenResult>) -> Vec<Comparison> {
    let found = result.and_then(|result| Some((result.stripes.as_ref()?, result.divisor as f64)));
    let mut all = Vec::new();
    type Of<'a> = &'a dyn Fn(&stripes::Run, f64) -> f64;
    let rows: [(&str, Of<'_>, Property, Measure, Option<&str>); 6] = [
        (
            "pages at first",
            &|run, factor| run.first_pages as f64 * factor,
            paper::FIRST_PAGES,
            Measure::Count,
            None,
        ),
        (
            "pages at last",
            &|run, factor| run.last_pages as f64 * factor,
            paper::LAST_PAGES,
            Measure::Count,
            None,
        ),
        ("inserts a second", &|run, _| run.per_s(), paper::INSERTS_PER_S, Measure::Count, Some(COMMITS)),
        (
            "checkpoint",
            &|run, _| run.mean(|one| one.checkpoint_s),
            paper::CHECKPOINT_S,
            Measure::Seconds,
            Some("a checkpoint of an iteration is as much smaller as the iteration"),
        ),
        (
            "frames",
            &|run, factor| run.mean(|one| one.frames as f64) * factor,
            paper::FRAMES,
            Measure::Count,
            None,
        ),
        (
            "additional flash pages of 4 KiB",
            &|run, factor| run.mean(|one| one.extra_flash_pages[1] as f64) * factor,
            paper::EXTRA_FLASH_PAGES,
            Measure::Count,
            None,
        ),
    ];
    for (name, of, papers, measure, apart) in rows {
        let layouts = [("original", papers.original), ("aligned", papers.optimized)];
        for (number, (layout, papers)) in layouts.into_iter().enumerate() {
            let ours = found.map(|(found, factor)| of([&found.original, &found.aligned][number], factor));
            let one = Comparison::new("Table 2", format!("{name}, {layout}"), measure, papers, ours);
            all.push(match apart {
                Some(why) => one.apart(why),
                None => one,
            });
        }
    }
    for (number, bytes) in stripes::FLASH_PAGES.into_iter().enumerate() {
        let Some(papers) = paper::wear(bytes) else { continue };
        let ours = found.map(|(found, _)| found.wear(number));
        let name = format!("additional wear, flash pages of {} KiB", bytes >> 10);
        all.push(Comparison::new("Figure 14", name, Measure::Share, papers, ours));
    }
    all
}

/// Why rates of inserts are apart.
const COMMITS: &str = "commits wait for the drive here, and took 3.5 ms in either layout there";
