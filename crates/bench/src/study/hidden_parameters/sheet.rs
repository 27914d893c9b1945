//! Tables, and the remarks on them.

use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::hot::{self, Variant};
use super::paper::{self, Property};
use super::{HiddenResult, PAPER_OPERATIONS, PAPER_PAIRS, figures, mariadb, numbers, records, stripes};
use crate::study::comparison::median;
use crate::study::sheet::{Part, Sheet};

pub(super) fn of(result: &HiddenResult) -> Sheet {
    let hot = result.hot.iter().map(|found| hot_part(result, found));
    let show = mariadb::Show { gain, beside };
    let mariadb = result.mariadb.iter().map(|found| mariadb::part(found, show));
    let stripes = result.stripes.iter().map(|found| stripes_part(result, found));
    Sheet {
        title: "SQLite and MariaDB with layouts by hidden parameters of SSDs".into(),
        conditions: conditions(result),
        parts: hot.chain(mariadb).chain(stripes).chain(result.records.iter().map(records_part)).collect(),
        comparisons: numbers::comparisons(Some(result)),
    }
}

fn conditions(result: &HiddenResult) -> Vec<String> {
    vec![
        format!(
            "SQLite {}, pages of 64 KiB, {} pairs of 32 + 100 bytes in a table with an index of the keys, and {} inserts and selects an iteration: 1/{} of the paper's {} and {}. {} iterations; seed {}.",
            result.sqlite_version,
            unit::count(result.pairs as f64),
            unit::count(result.operations as f64),
            result.divisor,
            unit::count(PAPER_PAIRS as f64),
            unit::count(PAPER_OPERATIONS as f64),
            result.iterations,
            result.seed,
        ),
        format!(
            "SQLite's cache has {} of the initial database. Requests go from it to the drive, without a file system and its cache; files grow by the volume's own records.",
            unit::share(result.cache_share)
        ),
        format!(
            "On simulated drives times are virtual: a select takes {} ns of a processor, an insert {} ns, and each page that is moved {} ns more (again: --cpu-costs {}).",
            result.costs.select_ns, result.costs.insert_ns, result.costs.page_ns, result.costs
        ),
    ]
}

/// A share with its sign.
fn gain(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn beside(ours: String, papers: Option<String>) -> String {
    papers.map_or_else(|| ours.clone(), |papers| format!("{ours} ({papers})"))
}

fn hot_part(result: &HiddenResult, found: &hot::Found) -> Part {
    Part {
        id: "hot",
        title: format!("use-hot-locations on {} (Figure 12)", found.target),
        text: vec![in_short(found), explained(found)],
        tables: vec![
            (
                "Operations a second, and their gain over the original (the paper's)".into(),
                rates(result, found),
            ),
            ("Requests to the drive for each insert and select".into(), requests(found)),
        ],
        figures: figures::over_iterations(found).into_iter().chain([figures::over_sizes(found)]).collect(),
    }
}

fn in_short(found: &hot::Found) -> String {
    let sizes = found.sizes();
    let mut gains: Vec<f64> = sizes
        .iter()
        .filter_map(|size| found.gain(Variant::Paper, *size, |iteration| iteration.selects.per_s))
        .collect();
    let insert = |size: u64| found.gain(Variant::Paper, size, |iteration| iteration.inserts.per_s);
    let one = sizes.first().and_then(|size| insert(*size)).unwrap_or(f64::NAN);
    let worst = sizes
        .iter()
        .filter(|size| **size >= paper::SIZE_WITHOUT_LOSS)
        .filter_map(|size| insert(*size))
        .min_by(f64::total_cmp);
    format!(
        "With pages at hot locations and split writes, selects are {}, the median over sizes of transactions ({} in the paper, and {} over the iterations of a run). Inserts are {} with {} in a transaction ({} in the paper){}.",
        gain(median(&mut gains).unwrap_or(f64::NAN)),
        gain(paper::SELECT_GAIN_MEDIAN),
        gain(paper::SELECT_GAIN),
        gain(one),
        sizes.first().copied().unwrap_or(0),
        gain(paper::insert_gain(1).unwrap_or(f64::NAN)),
        worst.map_or_else(String::new, |worst| {
            let (size, loss) = (paper::SIZE_WITHOUT_LOSS, unit::share(paper::LOSS_MAX));
            format!(", and from {size} on {} at worst (a loss of less than {loss})", gain(worst))
        }),
    )
}

fn explained(found: &hot::Found) -> String {
    let size = found.sizes().first().copied().unwrap_or(0);
    let whole = |rate: fn(&hot::Iteration) -> f64| found.gain(Variant::Whole, size, rate).unwrap_or(f64::NAN);
    let [(_, selects), (_, inserts)] = figures::PHASES;
    // Times are those of reads by this share, and the rest of a select stays.
    let of_drive = |gain: f64| unit::share((1.0 - 1.0 / (1.0 + gain)) / paper::LATENCY_DROP);
    format!(
        "The paper splits writes where stripes begin, with a flush between, so that the system's cache does not join them again. Where no such cache is between, pages can be written whole, and the drive splits them: inserts are then {}, and selects {}, as if they waited for the drive in {} of their time. The paper's {} are those of selects that wait for it in {}: their other work, in the kernel and its cache, is not in its text.",
        gain(whole(inserts)),
        gain(whole(selects)),
        of_drive(whole(selects)),
        gain(paper::SELECT_GAIN_MEDIAN),
        of_drive(paper::SELECT_GAIN_MEDIAN),
    )
}

fn rates(result: &HiddenResult, found: &hot::Found) -> Table {
    let mut table = Table::new(&[
        ("inserts in a transaction", Kind::Number),
        ("layout", Kind::Label),
        ("inserts/s", Kind::Number),
        ("gain", Kind::Number),
        ("selects/s", Kind::Number),
        ("gain", Kind::Number),
    ]);
    for size in found.sizes() {
        for variant in Variant::ALL {
            let Some(run) = found.run(variant, size) else { continue };
            // A scaled iteration with a single transaction is the paper's with 50,000 in one.
            let papers_size = if size == result.operations { PAPER_OPERATIONS } else { size };
            let is_paper = variant == Variant::Paper;
            let of = |rate: fn(&hot::Iteration) -> f64, papers: Option<f64>| {
                let ours = found.gain(variant, size, rate).map_or_else(|| "–".into(), gain);
                let ours = if variant == Variant::Original { "–".into() } else { ours };
                (unit::count(run.mean(rate)), beside(ours, papers.filter(|_| is_paper).map(gain)))
            };
            let [(_, selects), (_, inserts)] = figures::PHASES;
            let inserts = of(inserts, paper::insert_gain(papers_size));
            let selects = of(selects, Some(paper::SELECT_GAIN_MEDIAN));
            let row =
                [unit::count(size as f64), variant.name().into(), inserts.0, inserts.1, selects.0, selects.1];
            table.push(row.map(Cell::from));
        }
    }
    table
}

fn requests(found: &hot::Found) -> Table {
    let mut table = Table::new(&[
        ("inserts in a transaction", Kind::Number),
        ("layout", Kind::Label),
        ("insert: reads", Kind::Number),
        ("writes", Kind::Number),
        ("flushes", Kind::Number),
        ("select: reads", Kind::Number),
    ]);
    for run in &found.runs {
        let count = run.iterations.len() as f64;
        let mean = |of: fn(&hot::Iteration) -> f64| {
            format!("{:.2}", run.iterations.iter().map(of).sum::<f64>() / count)
        };
        let row = [
            unit::count(run.inserts_per_transaction as f64),
            run.variant.name().into(),
            mean(|iteration| iteration.inserts.reads_each),
            mean(|iteration| iteration.inserts.writes_each),
            mean(|iteration| iteration.inserts.flushes_each),
            mean(|iteration| iteration.selects.reads_each),
        ];
        table.push(row.map(Cell::from));
    }
    table
}

fn stripes_part(result: &HiddenResult, found: &stripes::Found) -> Part {
    Part {
        id: "stripes",
        title: format!("write-aligned-stripes on {} (Table 2, Figure 14)", found.target),
        text: vec![
            "A transaction with one insert writes a table's and an index's page. Flash pages are counted from the requests of SQLite: those that writes to the log have touched, without those that the pages of frames fill. The log's header, once in an iteration, is left out, as in the paper.".into(),
            "The simulated drive programs pieces that are shorter than its desirable write with less parallelism, and a flush waits for them: with aligned frames its commits take less time. Those of the paper took 3.5 ms in either layout. When SQLite's log is written again, the rest of its last block is read before; the system's cache would still have it.".into(),
            format!("Counts of an iteration are 1/{} of the paper's.", result.divisor),
        ],
        tables: vec![
            ("Both layouts (the paper's; counts of an iteration as for its 50,000 inserts)".into(), table_2(result, found)),
            ("Additional wear of each frame in SQLite's log over aligned ones (the paper's)".into(), wear(found)),
        ],
        figures: vec![figures::wear(found)],
    }
}

/// Rows of Table 2. Counts are multiplied, so that they are comparable with the paper's.
fn table_2(result: &HiddenResult, found: &stripes::Found) -> Table {
    let mut table = Table::new(&[
        ("property", Kind::Label),
        ("original", Kind::Number),
        ("aligned", Kind::Number),
        ("difference", Kind::Number),
    ]);
    let factor = result.divisor as f64;
    let four_kib = 1;
    type Of<'a> = &'a dyn Fn(&stripes::Run) -> f64;
    type Row<'a> = (&'static str, Of<'a>, Property, fn(f64) -> String);
    let rows: [Row<'_>; 6] = [
        ("pages at first", &|run| run.first_pages as f64 * factor, paper::FIRST_PAGES, unit::count),
        ("pages at last", &|run| run.last_pages as f64 * factor, paper::LAST_PAGES, unit::count),
        ("inserts a second", &stripes::Run::per_s, paper::INSERTS_PER_S, unit::count),
        ("checkpoint", &|run| run.mean(|one| one.checkpoint_s), paper::CHECKPOINT_S, unit::seconds),
        ("frames", &|run| run.mean(|one| one.frames as f64) * factor, paper::FRAMES, unit::count),
        (
            "additional flash pages of 4 KiB",
            &|run| run.mean(|one| one.extra_flash_pages[four_kib] as f64) * factor,
            paper::EXTRA_FLASH_PAGES,
            unit::count,
        ),
    ];
    for (name, of, papers, show) in rows {
        let (original, aligned) = (of(&found.original), of(&found.aligned));
        let row = [
            name.into(),
            beside(show(original), Some(show(papers.original))),
            beside(show(aligned), Some(show(papers.optimized))),
            beside(gain(aligned / original - 1.0), Some(gain(papers.optimized / papers.original - 1.0))),
        ];
        table.push(row.map(Cell::from));
    }
    table
}

fn wear(found: &stripes::Found) -> Table {
    let mut table = Table::new(&[("flash page", Kind::Number), ("additional wear", Kind::Number)]);
    for (number, bytes) in stripes::FLASH_PAGES.into_iter().enumerate() {
        let papers = paper::wear(bytes).map(unit::share);
        let row = [unit::bytes(bytes as f64), beside(unit::share(found.wear(number)), papers)];
        table.push(row.map(Cell::from));
    }
    table
}

fn records_part(found: &records::Found) -> Part {
    let share = |across: u64| across as f64 / found.records as f64;
    Part {
        id: "records",
        title: "contain-write-in-flash-page (§4.3)".into(),
        text: vec![format!(
            "Of {} records of 275 bytes on average, one after the other, {} lie across two flash pages of {} ({} in the paper). With the mapping {} do, and the file is {} longer.",
            unit::count(found.records as f64),
            unit::share(share(found.original_across)),
            unit::bytes(records::FLASH_PAGE_BYTES as f64),
            unit::share(paper::RECORDS_ACROSS),
            match found.contained_across {
                0 => "none".into(),
                across => unit::share(share(across)),
            },
            unit::share(found.contained_bytes as f64 / found.original_bytes as f64 - 1.0),
        )],
        tables: Vec::new(),
        figures: Vec::new(),
    }
}
