//! What the paper says in words of its Figures 3 to 20; their curves are not in its text.

use super::{Point, Question};

/// The paper's numbers of a point, as far as they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    pub per_s: Option<f64>,
    pub read_p90_us: Option<f64>,
    pub write_p90_us: Option<f64>,
}

const SATA: &str = "sim:intel-530";
const PCIE: &str = "sim:intel-750";
const XPOINT: &str = "sim:900p";

/// The numbers of a point of this question.
pub(super) fn of(question: Question, point: &Point) -> Known {
    let rate = |thousands: f64| Known { per_s: Some(thousands * 1e3), ..Known::default() };
    let times = |read: Option<f64>, write: Option<f64>| Known {
        read_p90_us: read,
        write_p90_us: write,
        ..Known::default()
    };
    // Shares and counts are whole numbers of hundredths.
    let x = (point.x * 100.0).round() as u64;
    match (question, point.target.as_str(), point.setting, x) {
        (Question::Writes, PCIE, _, 0) => rate(32.0),
        (Question::Writes, PCIE, _, 100) => rate(41.3),
        (Question::Writes, XPOINT, _, 0) => rate(115.0),
        (Question::Writes, XPOINT, _, 100) => rate(45.0),
        (Question::Writes, SATA, _, 90) => times(Some(839.0), Some(28.0)),
        (Question::Writes, XPOINT, _, 90) => times(Some(251.0), Some(26.0)),
        (Question::LevelZero, PCIE, _, 200) => rate(41.5),
        (Question::LevelZero, PCIE, _, 800) => rate(36.4),
        (Question::LevelZero, XPOINT, _, 200) => Known { per_s: Some(86.4e3), ..times(Some(101.0), None) },
        (Question::LevelZero, XPOINT, _, 800) => Known { per_s: Some(69.2e3), ..times(Some(134.0), None) },
        (Question::Parallelism, SATA, _, 3200) => times(Some(1400.0), Some(47.0)),
        (Question::Parallelism, XPOINT, _, 100) => rate(35.4),
        (Question::Parallelism, XPOINT, _, 3200) => {
            Known { per_s: Some(79.5e3), ..times(Some(335.0), Some(440.0)) }
        }
        (Question::Log, XPOINT, "on the drive", 90) => times(None, Some(54.0)),
        (Question::Log, XPOINT, "not waited for", 90) => times(None, Some(22.0)),
        (Question::Log, XPOINT, "on the drive", 50) => times(None, Some(16.0)),
        (Question::Log, XPOINT, "in memory", 50) => times(None, Some(13.0)),
        (Question::Reads, XPOINT, "small runs", 90) => rate(77.0),
        (Question::Reads, XPOINT, "by reads", 90) => rate(87.0),
        _ => Known::default(),
    }
}
