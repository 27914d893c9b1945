//! Advice for a terminal: ranked designs, the changes that would alter the ranking, and an engine's settings.

use flashgrain_advisor::engine::{EngineAdvice, PredictedTree, Setting, factor};
use flashgrain_advisor::rank::{Change, Lever, Ranking, Row, WARRANTY_YEARS};
use flashgrain_advisor::{Advice, Interval, Workload};

use crate::table::{Cell, Kind, Table, Tone};
use crate::terminal::{Printer, Style};
use crate::unit::{self, Unit};

/// Workload, ranking, and the settings of every engine that was asked for.
pub fn advice(advice: &Advice, style: impl Into<Style>) -> String {
    let style = style.into();
    let mut out = Printer::new(style);
    out.title("Workload");
    out.table(&workload(&advice.workload));
    for assumption in &advice.workload.assumptions {
        out.prose(&format!("Assumed: {assumption}"));
    }
    out.title("Designs, best first");
    out.prose(&format!("On {}. Intervals: from the ends of the profile's.", advice.drive));
    out.table(&ranking(&advice.ranking));
    out.table(&amplification(&advice.ranking));
    out.table(&parameters(&advice.ranking));
    if let Some(sentence) = lead(&advice.ranking) {
        out.prose(&sentence);
    }
    for family in &advice.ranking.left_out {
        out.prose(&format!("Left out: {}; memory has no room for it.", family.describe()));
    }
    for note in &advice.notes {
        out.prose(&format!("Note: {note}"));
    }
    out.title("Changes that alter the ranking");
    match advice.ranking.changes.as_slice() {
        [] => out.prose("Nothing within the range that was tried: any share of writes, memory and clients from a 64th to 64 times."),
        changes => out.table(&levers(changes)),
    }
    let mut text = out.into_text();
    for one in &advice.engines {
        text.push('\n');
        text += &engine(one, style);
    }
    text
}

/// The settings of an engine.
pub fn engine(advice: &EngineAdvice, style: impl Into<Style>) -> String {
    let mut out = Printer::new(style.into());
    out.title(&format!("{} {}", advice.engine.describe(), advice.version));
    out.prose(&format!(
        "Predicted: {} operations/s with the defaults, {} as advised: {}.",
        rate(advice.default_rate_per_second),
        rate(advice.advised_rate_per_second),
        factor(advice.gain)
    ));
    let mut table = Table::new(&[
        ("setting", Kind::Label),
        ("advised", Kind::Number),
        ("default", Kind::Number),
        ("gain", Kind::Number),
        ("because", Kind::Prose),
    ]);
    for setting in &advice.settings {
        table.push(setting_row(setting));
    }
    out.table(&table);
    if !advice.trees.is_empty() {
        out.table(&trees(&advice.trees));
    }
    for note in &advice.notes {
        out.prose(&format!("Note: {note}."));
    }
    out.into_text()
}

/// The trees that the store may have, with the cost of the average operation.
fn trees(trees: &[PredictedTree]) -> Table {
    let mut table = Table::new(&[
        ("tree", Kind::Label),
        ("operations/s", Kind::Number),
        ("latency", Kind::Number),
        ("limited by", Kind::Label),
        ("reads", Kind::Number),
        ("bytes read", Kind::Number),
        ("bytes written", Kind::Number),
        ("space", Kind::Number),
    ]);
    for tree in trees {
        let tone = if tree.is_advised { Tone::Strong } else { Tone::Plain };
        table.push([
            Cell::toned(tree.name.clone(), tone),
            rate(tree.rate_per_second).into(),
            unit::seconds(tree.latency_us * 1e-6).into(),
            tree.bound.describe().into(),
            format!("{:.3}", tree.reads).into(),
            unit::bytes(tree.read_bytes).into(),
            unit::bytes(tree.written_bytes).into(),
            format!("{:.2}", tree.space_amplification).into(),
        ]);
    }
    table
}

/// The first designs and the engines with their gains, in short: the end of `tune`.
pub fn brief(advice: &Advice, style: impl Into<Style>) -> String {
    let mut out = Printer::new(style.into());
    out.title(&format!("Advice for a default mix ({})", advice.workload.name));
    out.table(&workload(&advice.workload));
    let mut designs = advice.ranking.clone();
    designs.rows.truncate(BRIEF_DESIGNS);
    out.table(&ranking(&designs));
    let mut table = Table::new(&[
        ("engine", Kind::Label),
        ("with its defaults", Kind::Number),
        ("as advised", Kind::Number),
        ("gain", Kind::Number),
        ("mostly by", Kind::Label),
    ]);
    for engine in &advice.engines {
        table.push([
            engine.engine.describe().into(),
            rate(engine.default_rate_per_second).into(),
            rate(engine.advised_rate_per_second).into(),
            Cell::toned(factor(engine.gain), Tone::Strong),
            foremost(engine).into(),
        ]);
    }
    out.table(&table);
    if let Some(sentence) = above_first_design(advice) {
        out.prose(&sentence);
    }
    out.prose("Predicted operations/s, with the intervals of the profile; for your own workload, and for the settings: flashgrain advise --help.");
    out.into_text()
}

/// Says why engines may be predicted above the first design, if some are.
fn above_first_design(advice: &Advice) -> Option<String> {
    let first = advice.ranking.rows.first()?.rate_per_second.value;
    let best = |engine: &EngineAdvice| {
        engine.default_rate_per_second.value.max(engine.advised_rate_per_second.value)
    };
    let above = advice.engines.iter().filter(|engine| best(engine) > first * LEAD_MIN);
    let names: Vec<&str> = above.map(|engine| engine.engine.describe()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Predicted above the first design: {}. Designs are priced with fdatasync for each commit, a log of a quarter of the memory \
             and a few parameters; an engine is priced with its own way to sync, its log, cache and parameters.",
            names.join(", ")
        )
    })
}

/// Designs in the short table.
const BRIEF_DESIGNS: usize = 3;

/// The setting with the largest predicted gain.
fn foremost(engine: &EngineAdvice) -> String {
    let gains = engine.settings.iter().filter(|setting| setting.value.is_some()).filter_map(|setting| {
        let gain = setting.gain.filter(|gain| gain.value >= NOTABLE_GAIN)?;
        Some((setting.name, gain.value))
    });
    gains.max_by(|a, b| a.1.total_cmp(&b.1)).map_or_else(|| "–".into(), |(name, _)| name.to_owned())
}

/// A gain from here on is worth its setting's name.
const NOTABLE_GAIN: f64 = 1.02;

fn setting_row(setting: &Setting) -> [Cell; 5] {
    let tone = if setting.value.is_some() { Tone::Strong } else { Tone::Quiet };
    let cost = if setting.cost.is_empty() { String::new() } else { format!("; costs {}", setting.cost) };
    let gain = match (&setting.value, setting.gain) {
        (Some(_), Some(gain)) => factor(gain),
        (Some(_), None) => "not predicted".into(),
        (None, _) => "–".into(),
    };
    [
        setting.name.into(),
        Cell::toned(setting.value.clone().unwrap_or_else(|| "default".into()), tone),
        Cell::toned(setting.default, Tone::Quiet),
        gain.into(),
        format!("{} ({}){cost}", setting.reason, setting.number).into(),
    ]
}

fn workload(workload: &Workload) -> Table {
    let mut table = Table::new(&[("", Kind::Label), ("", Kind::Prose)]);
    let operations = workload.operations;
    let shares = [
        ("point hits", operations.point_hits),
        ("point misses", operations.point_misses),
        ("inserts", operations.inserts),
        ("updates", operations.updates),
        ("deletes", operations.deletes),
        ("ranges", operations.ranges),
    ];
    let mix: Vec<String> = shares
        .into_iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{} {name}", unit::share(share)))
        .collect();
    let records = workload.records;
    let skew = match workload.skew {
        0.0 => "uniform".to_owned(),
        exponent => format!("Zipf {exponent}"),
    };
    let rows = [
        ("operations", format!("{}: {}", workload.name, mix.join(", "))),
        (
            "records",
            format!(
                "{} of {} + {} bytes: {}; {skew}",
                unit::count(records.count as f64),
                records.key_bytes,
                records.value_bytes,
                unit::bytes(records.data_bytes())
            ),
        ),
        ("memory", unit::bytes(workload.memory_bytes as f64)),
        ("clients", workload.clients.to_string()),
        ("durability", workload.durability.describe()),
    ];
    for (name, text) in rows {
        table.push([Cell::toned(name, Tone::Quiet), text.into()]);
    }
    if let Some(lifetime) = workload.lifetime {
        let budget = format!(
            "{} drive writes a day of {}",
            lifetime.drive_writes_per_day,
            unit::bytes(lifetime.drive_bytes as f64)
        );
        table.push([Cell::toned("lifetime", Tone::Quiet), budget.into()]);
    }
    table
}

fn ranking(ranking: &Ranking) -> Table {
    let mut table = Table::new(&[
        ("design", Kind::Label),
        ("operations/s", Kind::Number),
        ("latency", Kind::Number),
        ("limited by", Kind::Label),
    ]);
    for (place, row) in ranking.rows.iter().enumerate() {
        let tone = if place == 0 { Tone::Strong } else { Tone::Plain };
        table.push([
            Cell::toned(row.family.describe(), tone),
            Cell::toned(rate(row.rate_per_second), tone),
            seconds(row.latency_us.scaled(1e-6)).into(),
            row.bound.describe().into(),
        ]);
    }
    table
}

fn amplification(ranking: &Ranking) -> Table {
    let has_budget = ranking.rows.iter().any(|row| row.lifetime_years.is_some());
    let mut columns = vec![
        ("bytes per byte", Kind::Label),
        ("written", Kind::Number),
        ("read", Kind::Number),
        ("space", Kind::Number),
        ("written a day", Kind::Number),
    ];
    let lasts = format!("lasts, of {WARRANTY_YEARS} years");
    if has_budget {
        columns.push((lasts.as_str(), Kind::Number));
    }
    let mut table = Table::new(&columns);
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| Unit::Plain.show(value));
    for row in &ranking.rows {
        let mut cells: Vec<Cell> = vec![
            row.family.describe().into(),
            number(row.write_amplification).into(),
            number(row.read_amplification).into(),
            number(Some(row.space_amplification)).into(),
            unit::bytes(row.written_bytes_per_day.value).into(),
        ];
        if has_budget {
            cells.push(years(row).into());
        }
        table.push(cells);
    }
    table
}

/// The parameters with which each family is best.
fn parameters(ranking: &Ranking) -> Table {
    let mut table = Table::new(&[("best with", Kind::Label), ("", Kind::Prose)]);
    for row in &ranking.rows {
        table.push([row.family.describe().into(), Cell::toned(row.design.as_str(), Tone::Quiet)]);
    }
    table
}

fn years(row: &Row) -> String {
    match row.lifetime_years {
        None => "–".into(),
        Some(years) if years.value > 1000.0 => "over 1000 years".into(),
        Some(years) => format!("{} years", Unit::Plain.show(years.value)),
    }
}

/// A smaller lead is none.
const LEAD_MIN: f64 = 1.02;

/// How far the second best is.
fn lead(ranking: &Ranking) -> Option<String> {
    let (second, lead) = (ranking.rows.get(1)?, ranking.lead?);
    let sure = match lead {
        Interval { value, .. } if value < LEAD_MIN => "that is a tie",
        Interval { low, .. } if low > 1.0 => "it stays first at all ends of the intervals",
        _ => "within the intervals that is a tie: either may be first",
    };
    Some(format!(
        "The first has {} the rate of the second ({}); {sure}.",
        factor(lead),
        second.family.describe()
    ))
}

fn levers(changes: &[Change]) -> Table {
    let mut table = Table::new(&[
        ("if", Kind::Label),
        ("instead of", Kind::Number),
        ("were", Kind::Number),
        ("then first", Kind::Prose),
    ]);
    for change in changes {
        let show = |value: f64| match change.lever {
            Lever::WriteShare => unit::share(value),
            Lever::Memory => unit::bytes(value),
            Lever::Clients => format!("{value:.0}"),
        };
        let name = match change.lever {
            Lever::WriteShare => "share of writes",
            Lever::Memory => "memory",
            Lever::Clients => "clients",
        };
        table.push([
            name.into(),
            show(change.now).into(),
            show(change.at).into(),
            change.first.describe().into(),
        ]);
    }
    table
}

fn rate(interval: Interval) -> String {
    Unit::Count.show_interval(interval.value, interval.low, interval.high)
}

fn seconds(interval: Interval) -> String {
    Unit::Seconds.show_interval(interval.value, interval.low, interval.high)
}
