//! Tables, and the remarks on them.

use flashgrain_cost::lsm::SlowedWrites;
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::{Answer, Point, Question, SCALE, XpointResult, figures, paper};
use crate::study::sheet::{Part, Sheet};
use crate::study::subject::{Slice, Times};

pub(super) fn of(result: &XpointResult) -> Sheet {
    Sheet {
        title: "Flashgrain's LSM-tree on flash and on 3D XPoint".into(),
        conditions: conditions(result),
        parts: result.answers.iter().map(part).collect(),
        comparisons: paper::comparisons(Some(result)),
    }
}

fn conditions(result: &XpointResult) -> Vec<String> {
    let records = result.records;
    vec![
        format!(
            "Memtables and tables of {}, and times, are 1/{SCALE} of the paper's; {} records of {} + {} bytes, {} in all, 1/{} of the paper's 100 GB.",
            unit::bytes(result.memtable_bytes as f64),
            unit::count(records.count as f64),
            records.key_bytes,
            records.value_bytes,
            unit::bytes(records.bytes() as f64),
            unit::count((100e9 / records.bytes() as f64).round()),
        ),
        format!(
            "{} of memory for blocks, memtables and pages; no filters; RocksDB 5.17's defaults (F = 10, four runs of level 0 are merged, writers are slowed down from 20 on and stopped at 36, one job at a time); seed {}.",
            unit::bytes(result.cache_bytes as f64),
            result.seed
        ),
        format!("On simulated drives times are virtual: {}.", result.costs.describe()),
        "Writes do not wait for the log, as RocksDB's hand it to the kernel only; but in the questions by clients, of waiting writes and by the place of the log each waits until the log's device has it."
            .into(),
    ]
}

fn part(answer: &Answer) -> Part {
    let (id, title) = title(answer.question);
    let mut tables = vec![("The paper's figures in brackets, where its text has them".into(), table(answer))];
    if answer.question == Question::Bursts {
        tables.push(("Operations a second of slowed writers, by Eq. 2 and measured".into(), slowed(answer)));
    }
    Part {
        id,
        title: title.into(),
        text: in_short(answer).into_iter().collect(),
        tables,
        figures: figures::all(answer, id),
    }
}

fn title(question: Question) -> (&'static str, &'static str) {
    match question {
        Question::Writes => ("writes", "By the share of writes (Figures 3 to 7)"),
        Question::LevelZero => ("level-zero", "By the runs of level 0 (Figures 8 to 10 and 12)"),
        Question::FileSize => ("file-size", "Runs of level 0 by their size (Figure 8)"),
        Question::Values => ("values", "Values of 4 KiB, eight clients, half of writes (Figure 1)"),
        Question::Parallelism => ("parallelism", "By clients (Figures 13 to 15)"),
        Question::Waiting => ("waiting", "Writes of 32 clients that wait for the log (Figure 16)"),
        Question::Log => ("log", "By the place of the log (Figures 17 and 20)"),
        Question::Memtables => ("memtables", "Memtables merged by flushes (section VI)"),
        Question::Bursts => ("bursts", "Under bursts of writes (Figure 18)"),
        Question::Reads => ("reads", "Level 0 by the share of reads (Figure 19)"),
    }
}

fn table(answer: &Answer) -> Table {
    let question = answer.question;
    let mut columns = vec![
        ("drive", Kind::Label),
        (question.varied(), Kind::Number),
        ("operations/s", Kind::Number),
        ("slowest slice", Kind::Number),
        ("look-ups: p50", Kind::Number),
        ("p90", Kind::Number),
        ("updates: p50", Kind::Number),
        ("p90", Kind::Number),
        ("reads each", Kind::Number),
        ("runs of level 0", Kind::Number),
        ("flushed each", Kind::Number),
    ];
    if question.has_queue() {
        columns.extend(
            ["log bytes each", "writes together", "waiting", "at most", "checkpoints"]
                .map(|title| (title, Kind::Number)),
        );
    }
    let mut table = Table::new(&columns);
    for point in &answer.points {
        let known = paper::of(question, point);
        let watched = &point.watched;
        let time = |times: &Option<Times>, of: fn(&Times) -> f64, papers: Option<f64>| {
            let ours = times.as_ref().map(|times| unit::micros(of(times)));
            ours.map_or_else(|| "–".into(), |ours| beside(ours, papers.map(unit::micros)))
        };
        let mut cells = vec![
            point.name(),
            if question.is_share() { unit::share(point.x) } else { unit::count(point.x) },
            beside(unit::count(watched.per_s.round()), known.per_s.map(unit::count)),
            unit::count(slowest(&watched.slices).round()),
            time(&watched.reads, |times| times.p50_us, None),
            time(&watched.reads, |times| times.p90_us, known.read_p90_us),
            time(&watched.writes, |times| times.p50_us, None),
            time(&watched.writes, |times| times.p90_us, known.write_p90_us),
            watched.reads_each.map_or_else(|| "–".into(), |reads| format!("{reads:.2}")),
            format!("{:.1}", watched.level_zero_runs),
            unit::bytes(watched.flushed_bytes_each),
        ];
        if question.has_queue() {
            cells.push(unit::bytes(watched.log_bytes_each));
            cells.extend([watched.writes_together, watched.waiting].map(|number| format!("{number:.1}")));
            cells.extend([watched.waiting_max, watched.checkpoints].map(|number| unit::count(number as f64)));
        }
        table.push(cells.into_iter().map(Cell::from));
    }
    table
}

/// Eq. 2 of λs and t measured in the slices that are not slowed down, and the rate in those that are.
fn slowed(answer: &Answer) -> Table {
    let mut table = Table::new(&[
        ("throttling", Kind::Label),
        ("slices not slowed", Kind::Number),
        ("λs", Kind::Number),
        ("t", Kind::Number),
        ("Eq. 2", Kind::Number),
        ("slices slowed", Kind::Number),
        ("operations/s in them", Kind::Number),
        ("in the slowest", Kind::Number),
    ]);
    for point in &answer.points {
        let watched = &point.watched;
        let slowed: Vec<f64> = watched
            .slices
            .iter()
            .filter(|slice| slice.slowed > SLOWED_FROM)
            .map(|slice| slice.per_s)
            .collect();
        let rate = |per_s: Option<f64>| per_s.map_or_else(|| "–".into(), |rate| unit::count(rate.round()));
        let mean = slowed.iter().sum::<f64>() / slowed.len() as f64;
        let unslowed = watched.unslowed;
        table.push(
            [
                point.setting.to_owned(),
                unit::count(unslowed.map_or(0.0, |unslowed| f64::from(unslowed.slices))),
                rate(unslowed.map(|unslowed| unslowed.per_s)),
                unslowed.map_or_else(|| "–".into(), |unslowed| unit::micros(unslowed.write_p50_us)),
                rate(predicted(point)),
                unit::count(slowed.len() as f64),
                rate((!slowed.is_empty()).then_some(mean)),
                rate(slowed.iter().copied().reduce(f64::min)),
            ]
            .map(Cell::from),
        );
    }
    table
}

/// Operations a second of slowed writers by Eq. 2.
fn predicted(point: &Point) -> Option<f64> {
    let unslowed = point.watched.unslowed?;
    let writes = SlowedWrites {
        interval_seconds: SlowedWrites::INTERVAL_SECONDS,
        write_seconds: unslowed.write_p50_us * 1e-6,
        system_per_second: unslowed.per_s,
    };
    Some(writes.per_second())
}

fn beside(ours: String, papers: Option<String>) -> String {
    papers.map_or_else(|| ours.clone(), |papers| format!("{ours} ({papers})"))
}

fn slowest(slices: &[Slice]) -> f64 {
    slices.iter().map(|slice| slice.per_s).fold(f64::INFINITY, f64::min)
}

/// A slice counts as slowed down if more than this share of its writes is.
const SLOWED_FROM: f64 = 0.5;

/// Rates that differ by less than this share of them say nothing of how writers are slowed down.
const NO_DIFFERENCE: f64 = 0.02;

/// The point of the last drive, or of one of this name, with this setting.
fn find<'a>(answer: &'a Answer, target: Option<&str>, setting: &str, x: f64) -> Option<&'a Point> {
    let is_meant = |point: &&Point| {
        let is_there = target.is_none_or(|target| point.target == target);
        is_there && point.setting == setting && (point.x - x).abs() < 1e-9
    };
    answer.points.iter().rev().find(is_meant)
}

fn read_p90(point: &Point) -> Option<f64> {
    Some(point.watched.reads.as_ref()?.p90_us)
}

fn write_p90(point: &Point) -> Option<f64> {
    Some(point.watched.writes.as_ref()?.p90_us)
}

/// How much less the second is.
fn less(from: Option<f64>, to: Option<f64>) -> Option<String> {
    Some(unit::share(1.0 - to? / from?))
}

/// The paper's finding and ours.
fn in_short(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let at = |setting: &str, x: f64| find(answer, None, setting, x);
    Some(match answer.question {
        Question::Writes => {
            let rate = |x| at("", x).map(|point| unit::count(point.watched.per_s.round()));
            format!(
                "On {last} the rate goes from {} to {} as look-ups become writes; the paper's from 115 k to 45 k, as RocksDB slows writers down.",
                rate(0.0)?,
                rate(1.0)?
            )
        }
        Question::LevelZero => {
            let time = |x| Some(unit::micros(read_p90(at("", x)?)?));
            format!(
                "On {last} the p90 of look-ups is {} with eight runs of level 0 and {} with two of as many bytes; in the paper 134 and 101 µs, with 8.5 to 9.7 µs for the search of each run.",
                time(8.0)?,
                time(2.0)?
            )
        }
        Question::FileSize => by_size(answer)?,
        Question::Values => long_values(answer)?,
        Question::Parallelism => {
            let slow = answer.points.first()?;
            let ratio = write_p90(at("", 32.0)?)? / write_p90(find(answer, Some(&slow.target), "", 32.0)?)?;
            format!(
                "With 32 clients the p90 of writes on {last} is {ratio:.2} times that on {}; in the paper 9.4 times, 440 and 47 µs, as RocksDB's writers queue up.",
                slow.target
            )
        }
        Question::Waiting => {
            let slow = answer.points.first()?;
            let waiting = |target: Option<&str>| Some(find(answer, target, "", 0.9)?.watched.waiting);
            format!(
                "With 90 % of writes {:.1} of the 32 wait on average on {last} for another one that writes the log, and {:.1} on {}; in the paper evidently more on 3D XPoint than on flash.",
                waiting(None)?,
                waiting(Some(&slow.target))?,
                slow.target
            )
        }
        Question::Log => by_log(answer)?,
        Question::Memtables => by_memtables(answer)?,
        Question::Bursts => in_bursts(answer)?,
        Question::Reads => {
            let ratio = at("by reads", 0.9)?.watched.per_s / at("small runs", 0.9)?.watched.per_s;
            format!(
                "With 90 % of look-ups on {last} a level 0 that follows reads makes {} more operations; in the paper 13 %.",
                unit::share(ratio - 1.0)
            )
        }
    })
}

/// Ways to keep the log.
fn by_log(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let at = |setting: &str, x: f64| find(answer, None, setting, x);
    let p90 = |setting: &str, x: f64| write_p90(at(setting, x)?);
    let more = |setting: &str, than: &str| {
        let ratio = at(setting, 0.9)?.watched.per_s / at(than, 0.9)?.watched.per_s;
        Some(format!("{:+.1} %", 100.0 * (ratio - 1.0)))
    };
    let bytes = |setting: &str| Some(unit::bytes(at(setting, 0.9)?.watched.log_bytes_each));
    Some(format!(
        "On {last} with half of writes the log in memory takes their p90 down by {}; in the paper by 18.8 %. With 90 % of writes, no log takes it down by {}; in the paper by 59 %, where no write waits for a device. Against a log that is not waited for, no log makes {} operations with {} checkpoints, and {} with {}. Compression, of values that compress to a half and without processor time for it, writes {} instead of {} to the log for each, and makes {} operations.",
        less(p90("on the drive", 0.5), p90("in memory", 0.5))?,
        less(p90("on the drive", 0.9), p90("none", 0.9))?,
        more("none", "not waited for")?,
        at("none", 0.9)?.watched.checkpoints,
        more("none, more checkpoints", "not waited for")?,
        at("none, more checkpoints", 0.9)?.watched.checkpoints,
        bytes("compressed")?,
        bytes("on the drive")?,
        more("compressed", "on the drive")?,
    ))
}

/// Memtables that flushes merge.
fn by_memtables(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let at = |setting: &str, x: f64| Some(&find(answer, None, setting, x)?.watched);
    let skew = answer.points.last()?.x;
    let of = |x: f64| {
        let (one, small, merged) = (at("one large", x)?, at("small", x)?, at("small, merged", x)?);
        let percent = |of: f64, to: f64| format!("{:+.1} %", 100.0 * (of / to - 1.0));
        Some(format!(
            "against small ones, merged small ones make {} operations, and flush {} of bytes for each update; against one large one {} and {}",
            percent(merged.per_s, small.per_s),
            percent(merged.flushed_bytes_each, small.flushed_bytes_each),
            percent(merged.per_s, one.per_s),
            percent(merged.flushed_bytes_each, one.flushed_bytes_each),
        ))
    };
    Some(format!(
        "On {last}, where records are chosen alike, {}. Where some are chosen often, {}. The paper proposes it without numbers.",
        of(0.0)?,
        of(skew)?
    ))
}

/// Runs of level 0 by their size.
fn by_size(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let (first, last_point) =
        (answer.points.iter().find(|point| point.target == *last)?, answer.points.last()?);
    let runs = |point: &Point| format!("{:.1} of {:.0} MiB", point.watched.level_zero_runs, point.x);
    Some(format!(
        "Level 0 is merged at four runs, whatever their size: on {last} it has {} on average, and {}. In the paper fewer where files are larger.",
        runs(first),
        runs(last_point)
    ))
}

/// Values that are longer.
fn long_values(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let rate = |point: &Point| point.watched.per_s;
    let (slow, fast) = (answer.points.first()?, answer.points.last()?);
    Some(format!(
        "On {last} {:.2} times as many operations as on {}; RocksDB's 1.77 times (13 k and 23 k), where the drives themselves are 15.7 times apart. Blocks have 16 KiB here, so that they hold values.",
        rate(fast) / rate(slow),
        slow.target
    ))
}

/// The slowest slices under bursts of writes.
fn in_bursts(answer: &Answer) -> Option<String> {
    let last = &answer.points.last()?.target;
    let slow = |point: &Point| {
        let rate = unit::count(slowest(&point.watched.slices).round());
        format!("{rate} ({})", point.setting)
    };
    let rates: Vec<String> = answer.points.iter().map(slow).collect();
    let all = || answer.points.iter().map(|point| slowest(&point.watched.slices));
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if answer.points.len() > 1 && most - least < NO_DIFFERENCE * most {
        return Some(format!(
            "The slowest slices on {last} are alike, {}: these few records slowed no writer down, and the question needs more of them.",
            rates.join(", ")
        ));
    }
    Some(format!(
        "Operations a second in the slowest slice on {last}: {}. In the paper RocksDB's way makes 9 to 12 k for many seconds, and two stages hardly ever as few.",
        rates.join(", ")
    ))
}
