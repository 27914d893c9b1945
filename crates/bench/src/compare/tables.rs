//! The tables.

use std::collections::BTreeMap;

use flashgrain_report::page::{Cell as Entry, Kind, Table, Tone, Unit};
use flashgrain_report::unit;

use super::question::{Cell, Question, Rounds, is_own};
use crate::run::RunResult;

/// Flashgrain compared with the best peer, question by question.
pub(super) fn summary(questions: &[Question<'_>]) -> Table {
    let mut table = Table::new(&[
        ("question", Kind::Label),
        ("Flashgrain", Kind::Number),
        ("best peer", Kind::Number),
        ("", Kind::Label),
        ("rate ratio", Kind::Number),
        ("CPU ratio", Kind::Number),
        ("p99.9 ratio", Kind::Number),
    ]);
    for question in questions {
        let title = super::title(question);
        let best = question.best();
        table.rows.extend(compared(&title, &best));
        let mut loads: Vec<f64> = question.open.iter().filter_map(|cell| cell.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        for load in loads {
            let mut cells: Vec<_> = question.open.iter().filter(|cell| cell.load == Some(load)).collect();
            cells.sort_by(|one, other| other.rate().median.total_cmp(&one.rate().median));
            table.rows.extend(compared(&format!("{title}, at {} of its rate", unit::share(load)), &cells));
        }
    }
    table
}

/// `cells`: one of each engine, the fastest first. `None` without Flashgrain or without peers.
fn compared(title: &str, cells: &[&Cell<'_>]) -> Option<Vec<Entry>> {
    let own = cells.iter().find(|cell| is_own(cell.engine))?;
    let peers: Vec<_> = cells.iter().filter(|cell| !is_own(cell.engine)).collect();
    let peer = peers.first()?;
    let over_lowest = |what: &dyn Fn(&Cell<'_>) -> Option<f64>| {
        let lowest = peers.iter().filter_map(|cell| what(cell)).min_by(f64::total_cmp)?;
        Some(what(own)? / lowest)
    };
    let cpu = over_lowest(&|cell| Some(cell.of(|run| Some(run.cpu_us_per_operation))?.median));
    // In a closed loop, an engine with more clients has longer latencies.
    let tail = over_lowest(&|cell| cell.load.and(Some(cell.of(|run| Some(run.latency?.p99_9_us))?.median)));
    let ratio = |ratio: Option<f64>| Entry::toned(shown_ratio(ratio), Tone::Strong);
    Some(vec![
        title.into(),
        rate(own.rate().median).into(),
        rate(peer.rate().median).into(),
        peer.engine.into(),
        ratio(Some(own.rate().median / peer.rate().median)),
        ratio(cpu),
        ratio(tail),
    ])
}

/// Throughput and latency of a question.
pub(super) fn rates(question: &Question<'_>) -> Table {
    let mut table = Table::new(&[
        ("engine", Kind::Label),
        ("clients", Kind::Number),
        ("per second", Kind::Number),
        ("of best peer", Kind::Number),
        ("of the drive", Kind::Number),
        ("p50", Kind::Number),
        ("p99", Kind::Number),
        ("p99.9", Kind::Number),
        ("p99.99", Kind::Number),
        ("memory", Kind::Label),
        ("checked", Kind::Label),
    ]);
    let best = question.best();
    let peer = best.iter().find(|cell| !is_own(cell.engine)).map(|cell| cell.rate().median);
    for cell in best {
        let of_raw = cell.of_raw().filter(|_| question.only_reads()).map(|share| share.median);
        let mut row = vec![
            engine(cell),
            cell.clients.to_string().into(),
            Unit::Count.show_interval(cell.rate().median, cell.rate().low, cell.rate().high).into(),
            shown_ratio(peer.map(|peer| cell.rate().median / peer)).into(),
            shown_ratio(of_raw).into(),
        ];
        row.extend(percentiles(cell));
        row.push(cell.memory_note().into());
        row.push(checked(cell));
        table.push(row);
    }
    without_empty(table)
}

/// Processor, device, space and memory of a question.
pub(super) fn costs(question: &Question<'_>) -> Table {
    let mut table = Table::new(&[
        ("engine", Kind::Label),
        ("CPU each", Kind::Number),
        ("device reads", Kind::Number),
        ("device writes", Kind::Number),
        ("flushes", Kind::Number),
        ("read", Kind::Number),
        ("written", Kind::Number),
        ("read ×", Kind::Number),
        ("written ×", Kind::Number),
        ("space ×", Kind::Number),
        ("on disk", Kind::Number),
        ("memory", Kind::Number),
    ]);
    for cell in question.best() {
        let shown = |unit: Unit, what: &dyn Fn(&RunResult) -> Option<f64>| {
            Entry::new(cell.of(what).map_or_else(String::new, |rounds| unit.show(rounds.median)))
        };
        table.push([
            engine(cell),
            shown(Unit::Seconds, &|run| Some(run.cpu_us_per_operation * 1e-6)),
            shown(Unit::Count, &|run| Some(run.device?.reads)),
            shown(Unit::Count, &|run| Some(run.device?.writes)),
            shown(Unit::Count, &|run| Some(run.device?.flushes)),
            shown(Unit::Bytes, &|run| Some(run.device?.read_bytes)),
            shown(Unit::Bytes, &|run| Some(run.device?.written_bytes)),
            shown(Unit::Count, &|run| run.read_amplification),
            shown(Unit::Count, &|run| run.write_amplification),
            shown(Unit::Count, &|run| run.space_amplification),
            shown(Unit::Bytes, &|run| Some(run.space_bytes as f64)),
            shown(Unit::Bytes, &|run| Some(run.peak_memory_bytes as f64)),
        ]);
    }
    without_empty(table)
}

/// Kinds of operations where there are several.
pub(super) fn kinds(question: &Question<'_>) -> Table {
    let mut table = Table::new(&[
        ("engine", Kind::Label),
        ("operation", Kind::Label),
        ("per second", Kind::Number),
        ("conflicts each", Kind::Number),
        ("p50", Kind::Number),
        ("p99", Kind::Number),
        ("p99.9", Kind::Number),
        ("p99.99", Kind::Number),
    ]);
    for cell in question.best() {
        let mut names: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, kind) in cell.runs.iter().flat_map(|run| &run.kinds) {
            *names.entry(name).or_default() += kind.operations_per_s;
        }
        if names.len() < 2 {
            continue;
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by(|one, other| other.1.total_cmp(&one.1));
        for (name, _) in names {
            let of = |what: &dyn Fn(&crate::run::KindResult) -> f64| {
                cell.of(|run| run.kinds.get(name).map(what)).unwrap_or_default().median
            };
            table.push([
                engine(cell),
                name.into(),
                rate(of(&|kind| kind.operations_per_s)).into(),
                Unit::Count.show(of(&|kind| kind.conflicts)).into(),
                unit::micros(of(&|kind| kind.latency.p50_us)).into(),
                unit::micros(of(&|kind| kind.latency.p99_us)).into(),
                unit::micros(of(&|kind| kind.latency.p99_9_us)).into(),
                unit::micros(of(&|kind| kind.latency.p99_99_us)).into(),
            ]);
        }
    }
    table
}

/// Open loops.
pub(super) fn open(question: &Question<'_>) -> Table {
    let mut table = Table::new(&[
        ("engine", Kind::Label),
        ("load", Kind::Number),
        ("wanted", Kind::Number),
        ("done", Kind::Number),
        ("CPU each", Kind::Number),
        ("p50", Kind::Number),
        ("p99", Kind::Number),
        ("p99.9", Kind::Number),
        ("p99.99", Kind::Number),
        ("p99.9 of the drive alone", Kind::Number),
    ]);
    for cell in &question.open {
        let median = |what: &dyn Fn(&RunResult) -> Option<f64>| cell.of(what).unwrap_or_default().median;
        let mut row = vec![
            engine(cell),
            cell.load.map_or_else(String::new, unit::share).into(),
            rate(median(&|run| run.rate_per_s)).into(),
            rate(cell.rate().median).into(),
            unit::micros(median(&|run| Some(run.cpu_us_per_operation))).into(),
        ];
        row.extend(percentiles(cell));
        let alone = cell.of(|run| Some(run.raw_latency?.p99_9_us));
        row.push(alone.map_or_else(String::new, |rounds| unit::micros(rounds.median)).into());
        table.push(row);
    }
    without_empty(table)
}

/// Every engine's settings, as they were in its last run.
pub(super) fn engines(results: &[RunResult]) -> Table {
    let mut table = Table::new(&[("engine", Kind::Label), ("settings", Kind::Prose)]);
    let last: BTreeMap<_, _> =
        results.iter().map(|run| ((super::question::place_of(&run.engine), &run.engine), run)).collect();
    for ((_, name), run) in last {
        let settings: Vec<String> =
            run.settings.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        table.push([name.as_str().into(), settings.join("; ").into()]);
    }
    table
}

fn engine(cell: &Cell<'_>) -> Entry {
    Entry::toned(cell.engine, if is_own(cell.engine) { Tone::Strong } else { Tone::Plain })
}

fn percentiles(cell: &Cell<'_>) -> [Entry; 4] {
    super::figures::PERCENTILES.map(|(_, percentile)| {
        let rounds: Option<Rounds> = cell.of(|run| run.latency.map(|latency| percentile(&latency)));
        rounds.map_or_else(String::new, |rounds| unit::micros(rounds.median)).into()
    })
}

fn checked(cell: &Cell<'_>) -> Entry {
    match cell.violations() {
        None => "".into(),
        Some(0) => "consistent".into(),
        Some(count) => Entry::toned(format!("{count} violations"), Tone::Warning),
    }
}

fn rate(per_s: f64) -> String {
    unit::count(per_s.round())
}

fn shown_ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

/// The table without empty columns.
fn without_empty(table: Table) -> Table {
    let is_used = |place: usize| {
        table.rows.iter().any(|row| row.get(place).is_some_and(|entry| !entry.text.is_empty()))
    };
    let used: Vec<bool> = (0..table.columns.len()).map(is_used).collect();
    let keep = |place: &usize| used.get(*place).copied().unwrap_or(false);
    let columns = table.columns.iter().enumerate().filter(|(place, _)| keep(place));
    let rows = table.rows.iter().map(|row| {
        row.iter().enumerate().filter(|(place, _)| keep(place)).map(|(_, entry)| entry.clone()).collect()
    });
    Table { columns: columns.map(|(_, column)| column.clone()).collect(), rows: rows.collect() }
}
