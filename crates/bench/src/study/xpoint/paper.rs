//! The paper's statements about its Figures 3 to 20; their curves are not in its text.

use super::{Point, Question, XpointResult};
use crate::study::about::About;
use crate::study::comparison::{Comparison, Measure};
use crate::study::subject::Times;

/// The study that is repeated.
pub const ABOUT: About = About {
    name: "xpoint",
    paper: "Jia, Chen: From Flash to 3D XPoint: Performance Bottlenecks and Potentials in RocksDB with Storage Evolution",
    parts: "sections IV and V: Figures 3 to 20",
    did: "RocksDB 5.17 on an Intel 530, an Intel 750 and an Optane 900P: throttling, level 0, parallelism and the log, and four changes of RocksDB.",
    scaled: &[
        ("records", "100 GB, values of 1 KB", "131,072 of 16 + 1,000 bytes"),
        ("memtables and tables", "64 MiB", "256 KiB"),
        ("time for each point", "300 s", "150 s / 256, after a quarter as much"),
        ("memory", "8 % of the data", "8 %"),
        (
            "drives",
            "Intel 530, Intel 750, Optane 900P",
            "sim:intel-530, sim:intel-750, sim:900p, three times the records",
        ),
    ],
};

/// The paper's numbers of a point, as far as they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    pub per_s: Option<f64>,
    pub read_p90_us: Option<f64>,
    pub write_p90_us: Option<f64>,
}

/// A number that is known.
#[derive(Clone, Copy)]
enum Number {
    /// Operations a second.
    PerS(f64),
    /// 90th percentile of look-ups, in microseconds.
    ReadP90(f64),
    /// The same of writes.
    WriteP90(f64),
}

const SATA: &str = "sim:intel-530";
const PCIE: &str = "sim:intel-750";
const XPOINT: &str = "sim:900p";

use Number::{PerS, ReadP90, WriteP90};

/// Figure, question, drive, setting, value of the variable, and the number.
type Row = (&'static str, Question, &'static str, &'static str, f64, Number);

const NUMBERS: [Row; 30] = [
    ("Figure 1", Question::Values, SATA, "", 4096.0, PerS(13e3)),
    ("Figure 1", Question::Values, XPOINT, "", 4096.0, PerS(23e3)),
    ("Figure 3", Question::Writes, PCIE, "", 0.0, PerS(32e3)),
    ("Figure 3", Question::Writes, PCIE, "", 1.0, PerS(41.3e3)),
    ("Figure 3", Question::Writes, XPOINT, "", 0.0, PerS(115e3)),
    ("Figure 3", Question::Writes, XPOINT, "", 1.0, PerS(45e3)),
    ("Figure 6", Question::Writes, SATA, "", 0.9, ReadP90(839.0)),
    ("Figure 7", Question::Writes, SATA, "", 0.9, WriteP90(28.0)),
    ("Figure 6", Question::Writes, XPOINT, "", 0.9, ReadP90(251.0)),
    ("Figure 7", Question::Writes, XPOINT, "", 0.9, WriteP90(26.0)),
    ("Figure 12", Question::LevelZero, SATA, "", 8.0, WriteP90(25.0)),
    ("Figure 12", Question::LevelZero, SATA, "", 2.0, WriteP90(31.0)),
    ("Figure 9", Question::LevelZero, PCIE, "", 2.0, PerS(41.5e3)),
    ("Figure 9", Question::LevelZero, PCIE, "", 8.0, PerS(36.4e3)),
    ("Figure 9", Question::LevelZero, XPOINT, "", 2.0, PerS(86.4e3)),
    ("Figure 10", Question::LevelZero, XPOINT, "", 2.0, ReadP90(101.0)),
    ("Figure 9", Question::LevelZero, XPOINT, "", 8.0, PerS(69.2e3)),
    ("Figure 10", Question::LevelZero, XPOINT, "", 8.0, ReadP90(134.0)),
    ("Figure 14", Question::Parallelism, SATA, "", 32.0, ReadP90(1400.0)),
    ("Figure 15", Question::Parallelism, SATA, "", 32.0, WriteP90(47.0)),
    ("Figure 13", Question::Parallelism, XPOINT, "", 1.0, PerS(35.4e3)),
    ("Figure 13", Question::Parallelism, XPOINT, "", 32.0, PerS(79.5e3)),
    ("Figure 14", Question::Parallelism, XPOINT, "", 32.0, ReadP90(335.0)),
    ("Figure 15", Question::Parallelism, XPOINT, "", 32.0, WriteP90(440.0)),
    ("Figure 17", Question::Log, XPOINT, "on the drive", 0.9, WriteP90(54.0)),
    ("Figure 17", Question::Log, XPOINT, "none", 0.9, WriteP90(22.0)),
    ("Figure 20", Question::Log, XPOINT, "on the drive", 0.5, WriteP90(16.0)),
    ("Figure 20", Question::Log, XPOINT, "in memory", 0.5, WriteP90(13.0)),
    ("Figure 19", Question::Reads, XPOINT, "small runs", 0.9, PerS(77e3)),
    ("Figure 19", Question::Reads, XPOINT, "by reads", 0.9, PerS(87e3)),
];

/// Whether a row is of this point.
fn is_of(row: &Row, question: Question, point: &Point) -> bool {
    let (_, of, target, setting, x, _) = *row;
    // The setting of a question with one only is not looked at.
    let is_setting = setting.is_empty() || setting == point.setting;
    of == question && target == point.target && is_setting && (x - point.x).abs() < 1e-9
}

/// The numbers of a point of this question.
pub(super) fn of(question: Question, point: &Point) -> Known {
    let mut known = Known::default();
    for row in NUMBERS.iter().filter(|row| is_of(row, question, point)) {
        match row.5 {
            PerS(value) => known.per_s = Some(value),
            ReadP90(value) => known.read_p90_us = Some(value),
            WriteP90(value) => known.write_p90_us = Some(value),
        }
    }
    known
}

/// Why writes cannot be compared.
const OF_WRITES: &str =
    "the paper's writes wait for the kernel only, these for the log's device or for nothing";

/// All numbers of the paper and ours.
pub(super) fn comparisons(result: Option<&XpointResult>) -> Vec<Comparison> {
    let compared = |row: Row| {
        let (source, question, target, setting, x, number) = row;
        let answers = result.into_iter().flat_map(|result| &result.answers);
        let points = answers.filter(|answer| answer.question == question).flat_map(|answer| &answer.points);
        let watched =
            points.into_iter().find(|point| is_of(&row, question, point)).map(|point| &point.watched);
        let x = if question.is_share() { format!("{:.0} %", 100.0 * x) } else { format!("{x}") };
        let of = format!(
            "{target}, {setting}{}{} {x}",
            if setting.is_empty() { "" } else { ", " },
            question.varied()
        );
        let count = |times: &Option<Times>| times.as_ref().map_or(0, |times| times.count);
        let compared = match number {
            PerS(papers) => {
                let ours = watched.map(|watched| watched.per_s);
                Comparison::new(source, format!("operations/s, {of}"), Measure::Count, papers, ours)
            }
            ReadP90(papers) => {
                let ours = watched.and_then(|watched| Some(watched.reads.as_ref()?.p90_us * 1e-6));
                Comparison::new(
                    source,
                    format!("p90 of look-ups, {of}"),
                    Measure::Seconds,
                    papers * 1e-6,
                    ours,
                )
            }
            WriteP90(papers) => {
                let ours = watched.and_then(|watched| Some(watched.writes.as_ref()?.p90_us * 1e-6));
                Comparison::new(source, format!("p90 of writes, {of}"), Measure::Seconds, papers * 1e-6, ours)
                    .apart(OF_WRITES)
            }
        };
        compared.of_operations(watched.map(|watched| match number {
            PerS(_) => count(&watched.reads) + count(&watched.writes),
            ReadP90(_) => count(&watched.reads),
            WriteP90(_) => count(&watched.writes),
        }))
    };
    NUMBERS.into_iter().map(compared).collect()
}
