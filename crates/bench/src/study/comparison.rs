//! Numbers of a paper compared with the study's.

use flashgrain_cost::Interval;
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;
use serde::{Deserialize, Serialize};

/// Both are near each other if neither is this much larger.
const NEAR: f64 = 0.15;

/// Operations from which on a rate or a time of ours is significant.
const OPERATIONS_MIN: u64 = 100;

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Things, or things a second.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes a second.
    Rate,
    /// A share of a whole.
    Share,
    /// A ratio of two times or rates.
    Ratio,
    /// The same as the gain over 1.
    Gain,
}

impl Measure {
    fn show(self, value: f64) -> String {
        match self {
            Self::Count => unit::count(if value < 1e3 { value } else { value.round() }),
            Self::Seconds => unit::seconds(value),
            Self::Rate => unit::rate(value),
            Self::Share => unit::share(value),
            Self::Ratio => format!("{value:.2} ×"),
            Self::Gain => format!("{:+.1} %", 100.0 * (value - 1.0)),
        }
    }
}

/// A number that the text or a table of a paper has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Its place in the paper, such as `Table 3`.
    pub source: String,
    /// Its name, with the point that it is of.
    pub name: String,
    /// How it is shown.
    pub measure: Measure,
    /// The paper's number; of a gain the ratio of both rates.
    pub papers: f64,
    /// The study's; `None` where the point was not run.
    pub ours: Option<Interval>,
    /// Why the two cannot be compared, if they cannot.
    pub apart: Option<String>,
}

impl Comparison {
    /// Two numbers that can be compared.
    pub(super) fn new(
        source: &str,
        name: impl Into<String>,
        measure: Measure,
        papers: f64,
        ours: Option<f64>,
    ) -> Self {
        let ours = ours.filter(|ours| ours.is_finite()).map(Interval::exact);
        Self { source: source.into(), name: name.into(), measure, papers, ours, apart: None }
    }

    /// The same, with the reason why they cannot be; the first reason stays.
    pub(super) fn apart(self, why: &str) -> Self {
        Self { apart: Some(self.apart.unwrap_or_else(|| why.into())), ..self }
    }

    /// The same for a rate or a time of `operations` operations: too few are not compared.
    pub(super) fn of_operations(self, operations: Option<u64>) -> Self {
        match operations {
            Some(few) if few < OPERATIONS_MIN => {
                self.apart(&format!("{few} operations were measured, too few to compare"))
            }
            _ => self,
        }
    }

    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.ours?.value / self.papers)
    }

    /// Whether both were measured and can be compared.
    pub fn is_compared(&self) -> bool {
        self.apart.is_none() && self.ours.is_some()
    }

    /// Whether ours is near the paper's.
    pub fn is_near(&self) -> bool {
        // Of none, only none is near.
        let is_none = self.papers == 0.0 && self.ours.is_some_and(|ours| ours.value == 0.0);
        is_none || self.ratio().is_some_and(|ratio| (1.0 / (1.0 + NEAR)..=1.0 + NEAR).contains(&ratio))
    }

    fn row(&self) -> [Cell; 6] {
        let ours = self.ours.map_or_else(|| "–".into(), |ours| shown(self.measure, ours));
        let remark = match (&self.apart, self.is_compared()) {
            (Some(why), _) => format!("not compared: {why}"),
            (None, false) => "not run".into(),
            (None, true) if self.is_near() => "near".into(),
            (None, true) => String::new(),
        };
        [
            self.source.clone(),
            self.name.clone(),
            self.measure.show(self.papers),
            ours,
            self.ratio()
                .filter(|ratio| self.is_compared() && ratio.is_finite())
                .map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
            remark,
        ]
        .map(Cell::from)
    }
}

/// A value, and its range over repeats if there were some.
fn shown(measure: Measure, of: Interval) -> String {
    let [low, value, high] = [of.low, of.value, of.high].map(|number| measure.show(number));
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

/// The median, the mean of both if two values are in the middle; the values are sorted then. `None` of none.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], upper) } else { upper })
}

/// The same numbers of several repeats: the median, and the range.
pub fn over_repeats(repeats: &[Vec<Comparison>]) -> Vec<Comparison> {
    let Some(first) = repeats.first() else { return Vec::new() };
    let merged = |one: &Comparison| {
        let same = |other: &&Comparison| (&other.source, &other.name) == (&one.source, &one.name);
        let found = repeats.iter().filter_map(|all| all.iter().find(same)?.ours);
        let mut found: Vec<f64> = found.map(|ours| ours.value).collect();
        let ours = median(&mut found).map(|value| Interval {
            low: found.first().copied().unwrap_or(value),
            value,
            high: found.last().copied().unwrap_or(value),
        });
        Comparison { ours, ..one.clone() }
    };
    first.iter().map(merged).collect()
}

/// The numbers of a run on `target`, which can be compared if that is the paper's drive.
pub(super) fn on_drive(numbers: Vec<Comparison>, target: &str, papers: &str) -> Vec<Comparison> {
    if target == papers {
        return numbers;
    }
    let why = format!("{target} instead of {papers}");
    numbers.into_iter().map(|number| number.apart(&why)).collect()
}

/// Numbers that can be compared, and those of them that are near the paper's.
pub fn counted(all: &[Comparison]) -> (usize, usize) {
    let compared = || all.iter().filter(|one| one.is_compared());
    (compared().count(), compared().filter(|one| one.is_near()).count())
}

/// How many are near, in a sentence.
pub fn in_short(all: &[Comparison]) -> String {
    let (compared, near) = counted(all);
    format!(
        "{near} of {compared} numbers that can be compared are within {:.0} % of the paper's; of {} in its text.",
        100.0 * NEAR,
        all.len()
    )
}

/// All numbers, with the ratio of ours to the paper's.
pub fn table(all: &[Comparison]) -> Table {
    let columns = ["paper", "ours", "ratio"].map(|column| (column, Kind::Number));
    let mut table = Table::new(
        &[&[("source", Kind::Label), ("number", Kind::Label)][..], &columns, &[("", Kind::Label)]].concat(),
    );
    all.iter().for_each(|one| table.push(one.row()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(papers: f64, ours: Option<f64>) -> Comparison {
        Comparison::new("Table 1", "a rate", Measure::Count, papers, ours)
    }

    #[test]
    fn near_is_within_a_factor() {
        assert!(number(100.0, Some(114.9)).is_near() && number(114.9, Some(100.0)).is_near());
        assert!(!number(100.0, Some(116.0)).is_near() && !number(100.0, Some(86.0)).is_near());
        assert!(!number(100.0, None).is_near());
        // A gain of 2 % for a loss of 1 %: rates that are 3 % apart.
        assert!(Comparison::new("", "", Measure::Gain, 0.99, Some(1.02)).is_near());
    }

    #[test]
    fn a_number_of_few_operations_is_not_compared() {
        let of = |operations| number(100.0, Some(100.0)).of_operations(operations).is_compared();
        assert!(of(None) && of(Some(100)) && !of(Some(99)));
    }

    #[test]
    fn only_what_was_run_and_can_be_compared_counts() {
        let all = [
            number(100.0, Some(100.0)),
            number(100.0, Some(200.0)),
            number(100.0, None),
            number(0.0, Some(0.0)),
            number(100.0, Some(100.0)).apart("another machine"),
        ];
        assert_eq!(counted(&all), (3, 2));
        assert!(in_short(&all).starts_with("2 of 3 numbers"), "{}", in_short(&all));
        let markdown = table(&all).markdown();
        assert!(
            markdown.contains("not compared: another machine") && markdown.contains("not run"),
            "{markdown}"
        );
    }

    #[test]
    fn repeats_have_a_median_and_a_range() {
        let repeats = [3.0, 1.0, 2.0].map(|ours| vec![number(2.0, Some(ours)), number(9.0, None)]);
        // Both have the same name, so the first is found for both.
        let merged = over_repeats(&repeats.map(|mut all| vec![all.remove(0)]));
        assert_eq!(merged[0].ours, Some(Interval { low: 1.0, value: 2.0, high: 3.0 }));
        let even = [4.0, 1.0].map(|ours| vec![number(2.0, Some(ours))]);
        assert_eq!(over_repeats(&even)[0].ours, Some(Interval { low: 1.0, value: 2.5, high: 4.0 }));
        assert!(over_repeats(&[]).is_empty());
    }
}
