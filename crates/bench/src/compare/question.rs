//! Results, sorted: by question, then by engine and clients, then rounds.

use std::collections::BTreeMap;

use crate::benchmark::Contents;
use crate::engine::{Caching, Durability, EngineName};
use crate::run::RunResult;

/// Runs that engines are compared by: they differ in engine, clients, load and round only.
pub(super) struct Question<'a> {
    pub workload: &'a str,
    pub contents: Contents,
    pub data_bytes: u64,
    pub cache_bytes: u64,
    pub durability: Durability,
    pub cores: usize,
    /// In closed loops, by engine and then by clients.
    pub closed: Vec<Cell<'a>>,
    /// In open loops, by engine and then by load.
    pub open: Vec<Cell<'a>>,
}

/// Runs that differ in their round only.
pub(super) struct Cell<'a> {
    pub engine: &'a str,
    pub clients: usize,
    pub load: Option<f64>,
    pub runs: Vec<&'a RunResult>,
}

/// A number of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounds {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// All questions of the results, in the order of their first appearance.
pub(super) fn questions(results: &[RunResult]) -> Vec<Question<'_>> {
    let mut questions: Vec<Question<'_>> = Vec::new();
    for run in results {
        let place = questions.iter().position(|question| question.has(run)).unwrap_or_else(|| {
            questions.push(Question::of(run));
            questions.len() - 1
        });
        let question = &mut questions[place];
        let cells = if run.rate_per_s.is_some() { &mut question.open } else { &mut question.closed };
        let same = |cell: &&mut Cell<'_>| {
            cell.engine == run.engine && cell.clients == run.clients && cell.load == run.load
        };
        match cells.iter_mut().find(same) {
            Some(cell) => cell.runs.push(run),
            None => {
                let RunResult { engine, clients, load, .. } = run;
                cells.push(Cell { engine, clients: *clients, load: *load, runs: vec![run] });
            }
        }
    }
    for question in &mut questions {
        question.closed.sort_by_key(|cell| (place_of(cell.engine), cell.clients));
        question.open.sort_by(|one, other| {
            let engine = place_of(one.engine).cmp(&place_of(other.engine));
            engine.then(one.load.partial_cmp(&other.load).unwrap_or(std::cmp::Ordering::Equal))
        });
    }
    questions
}

/// Position of an engine among all engines.
pub(super) fn place_of(engine: &str) -> usize {
    let mut names = EngineName::all().iter().map(ToString::to_string);
    names.position(|name| name == engine).unwrap_or(usize::MAX)
}

/// Whether it is this project's own.
pub(super) fn is_own(engine: &str) -> bool {
    EngineName::all().iter().filter(|engine| engine.is_own()).any(|own| own.to_string() == engine)
}

impl<'a> Question<'a> {
    fn of(run: &'a RunResult) -> Self {
        let RunResult { workload, contents, data_bytes, cache_bytes, durability, cores, .. } = run;
        Self {
            workload,
            contents: *contents,
            data_bytes: *data_bytes,
            cache_bytes: *cache_bytes,
            durability: *durability,
            cores: *cores,
            closed: Vec::new(),
            open: Vec::new(),
        }
    }

    fn has(&self, run: &RunResult) -> bool {
        self.workload == run.workload
            && self.contents == run.contents
            && self.data_bytes == run.data_bytes
            && self.cache_bytes == run.cache_bytes
            && self.durability == run.durability
            && self.cores == run.cores
    }

    /// Each engine's cell with the highest rate in a closed loop, the fastest first.
    pub fn best(&self) -> Vec<&Cell<'a>> {
        let mut best: BTreeMap<&str, &Cell<'a>> = BTreeMap::new();
        for cell in &self.closed {
            let known = best.entry(cell.engine).or_insert(cell);
            if cell.rate().median > known.rate().median {
                *known = cell;
            }
        }
        let mut best: Vec<_> = best.into_values().collect();
        best.sort_by(|one, other| other.rate().median.total_cmp(&one.rate().median));
        best
    }

    /// Engines, in the order of tables.
    pub fn engines(&self) -> Vec<&'a str> {
        let mut engines: Vec<&str> = self.closed.iter().chain(&self.open).map(|cell| cell.engine).collect();
        engines.dedup();
        engines.sort_by_key(|engine| place_of(engine));
        engines.dedup();
        engines
    }

    /// Share of the data that the cache has room for.
    pub fn cache_share(&self) -> f64 {
        self.cache_bytes as f64 / self.data_bytes.max(1) as f64
    }

    /// Whether clients only look up, so that the drive's own reads are a limit.
    pub fn only_reads(&self) -> bool {
        let only_reads = |run: &&RunResult| run.kinds.keys().all(|kind| kind == "read");
        self.closed.iter().flat_map(|cell| &cell.runs).all(only_reads)
    }

    /// Reads per second by the drive alone with as many requests in flight as there were clients, by their
    /// number.
    pub fn raw_reads(&self) -> Vec<(f64, f64)> {
        let mut raw: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for run in self.closed.iter().flat_map(|cell| &cell.runs) {
            raw.entry(run.clients).or_default().extend(run.raw.map(|raw| raw.reads_per_s));
        }
        raw.into_iter()
            .filter_map(|(clients, rates)| Some((clients as f64, Rounds::of(rates)?.median)))
            .collect()
    }
}

impl Cell<'_> {
    /// Operations per second.
    pub fn rate(&self) -> Rounds {
        self.of(|run| Some(run.operations_per_s)).unwrap_or_default()
    }

    /// Median and range over the runs that have the value.
    pub fn of(&self, what: impl Fn(&RunResult) -> Option<f64>) -> Option<Rounds> {
        Rounds::of(self.runs.iter().filter_map(|run| what(run)))
    }

    /// Rate over the drive's own reads per second, measured in the same minute.
    pub fn of_raw(&self) -> Option<Rounds> {
        self.of(|run| Some(run.operations_per_s / run.raw?.reads_per_s))
    }

    /// A remark on its memory that a reader must know; empty if there is none.
    pub fn memory_note(&self) -> &'static str {
        let is_limited = self.runs.iter().all(|run| run.is_memory_limited);
        match self.runs.first().map(|run| run.caching) {
            Some(Caching::PageCache) if is_limited => "page cache, limited",
            Some(Caching::PageCache) => "page cache, unlimited",
            _ => "",
        }
    }

    /// Conditions that were violated; `None` if none was checked.
    pub fn violations(&self) -> Option<usize> {
        let checks: Vec<_> = self.runs.iter().filter_map(|run| run.check.as_ref()).collect();
        (!checks.is_empty()).then(|| checks.iter().map(|check| check.violations.len()).sum())
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self { median: 0.0, low: 0.0, high: 0.0 }
    }
}

impl Rounds {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        // Of an even number the mean of the two in the middle.
        let middle = |offset: usize| values.get((values.len() - offset) / 2).copied().unwrap_or(low);
        Some(Self { median: (middle(0) + middle(1)) / 2.0, low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_a_median_and_a_range() {
        let of = |values: &[f64]| Rounds::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 10.0]), Some(Rounds { median: 3.0, low: 1.0, high: 10.0 }));
        assert_eq!(of(&[4.0, 1.0]), Some(Rounds { median: 2.5, low: 1.0, high: 4.0 }));
        assert_eq!(of(&[7.0]), Some(Rounds { median: 7.0, low: 7.0, high: 7.0 }));
        assert_eq!(of(&[f64::NAN]), None);
    }
}
