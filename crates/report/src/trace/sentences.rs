//! A judged trace, in sentences.

use flashgrain_trace::Layer;
use flashgrain_trace::check::{Endurance, Group, JudgedBy, Report};

use super::JudgedTrace;
use crate::unit::{self, Unit};

/// The requests that were read.
pub(super) fn requests(judged: &JudgedTrace<'_>) -> Vec<String> {
    let report = judged.report;
    let mut sentences = vec![format!(
        "{} of {} over {}.",
        judged.format,
        unit::things(report.requests, "request"),
        without_zeros(&unit::seconds(report.seconds))
    )];
    sentences.extend(report.layers.iter().map(layer));
    if report.unplaced > 0 {
        sentences.push(format!("Without an address: {}.", unit::things(report.unplaced, "request")));
    }
    sentences.extend(judged.damage.as_ref().map(|damage| format!("Not read to its end: {damage}.")));
    sentences
}

/// `1.5 s` for `1.50 s`.
fn without_zeros(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

fn layer(group: &Group) -> String {
    let (one, to) = match group.layer {
        Layer::Drive => ("Block requests", "file or drive"),
        Layer::File => ("System calls", "file"),
    };
    let moved = |count: u64, name, bytes: u64| {
        format!("{} ({})", unit::things(count, name), unit::bytes(bytes as f64))
    };
    format!(
        "{one} to {}: {}, {}, {}.",
        unit::things(group.files, to),
        moved(group.reads.requests, "read", group.reads.bytes),
        moved(group.writes.requests, "write", group.writes.bytes),
        unit::things(group.flushes, "flush")
    )
}

/// The drive and the parameters that the trace was judged by.
pub(super) fn drive(report: &Report) -> String {
    let parameters = report.parameters.iter().map(|parameter| {
        let name = parameter.name.trim_end_matches("_bytes").replace('_', " ");
        let value = parameter.bytes.map_or("undetermined".to_owned(), |bytes| unit::bytes(bytes as f64));
        format!("{name} {value}")
    });
    let parameters: Vec<_> = parameters.collect();
    let model = match &report.model {
        Some(model) => format!("Times as {model} predicts them, one request at a time"),
        None => "No times: the profile has no model of reads and writes".to_owned(),
    };
    let addresses = match report.judged_by {
        JudgedBy::Drive => {
            "judged by addresses on the drive where the trace has them, else by offsets in files"
        }
        JudgedBy::File => "judged by offsets in files where the trace has them",
    };
    let begin = match report.files_begin_bytes {
        0 => String::new(),
        bytes => format!(", as if files began {} after a stripe does", unit::bytes(bytes as f64)),
    };
    format!("{}: {}. {model}; {addresses}{begin}.", report.drive, parameters.join(", "))
}

/// Rules that were not judged, with the reasons.
pub(super) fn skipped(report: &Report) -> Vec<String> {
    let skipped = report.rules.iter().filter_map(|rule| {
        Some(format!("Rule {} skipped: {}.", rule.number, rule.skipped.as_deref()?.trim_end_matches('.')))
    });
    skipped.collect()
}

/// Write amplification and wear.
pub(super) fn wear(judged: &JudgedTrace<'_>) -> Vec<String> {
    let Some(group) = judged.report.lowest_layer().filter(|group| group.wear.run_bytes > 0) else {
        return vec!["Nothing was written.".to_owned()];
    };
    let wear = &group.wear;
    let mut sentences = vec![format!(
        "{} were written in {}: writes without a gap and without a flush between them count as one, as they reach the drive \
         through a page cache.",
        unit::bytes(wear.run_bytes as f64),
        unit::things(wear.runs, "run")
    )];
    match (wear.flash_pages, wear.write_amplification) {
        (Some(pages), Some(amplification)) => sentences.push(format!(
            "They modify {}, {} of them in part; {} would do if each run began at a page. Write amplification {}.",
            unit::things(pages.modified, "flash page"),
            unit::count(pages.partial as f64),
            unit::count(pages.least as f64),
            Unit::Plain.show(amplification)
        )),
        _ => sentences.push(
            "The drive's flash page is undetermined: the table has the sizes that drives have.".to_owned(),
        ),
    }
    sentences.extend(judged.endurance.as_ref().map(endurance));
    sentences
}

fn endurance(endurance: &Endurance) -> String {
    let used = format!(
        "Of an endurance of {} the trace has used {} with flash pages of {}",
        unit::bytes(endurance.rated_bytes as f64),
        unit::share(endurance.used_fraction),
        unit::bytes(endurance.flash_page_bytes as f64)
    );
    match (endurance.years, endurance.years_without_amplification) {
        (Some(years), Some(without)) => format!(
            "{used}; at this rate it lasts {} years, {} years without amplification.",
            Unit::Plain.show(years),
            Unit::Plain.show(without)
        ),
        _ => format!("{used}."),
    }
}

/// Losses of the trace, and its notes for people.
pub(super) fn losses(report: &Report) -> Vec<String> {
    let losses =
        report.losses.iter().map(|(_, count, meaning)| format!("{}: {meaning}.", unit::count(*count as f64)));
    losses.chain(report.notes.iter().cloned()).collect()
}
