//! The summary for a terminal.

use crate::unit;
use flashgrain_trace::Layer;
use flashgrain_trace::check::FileReport;

use super::{JudgedTrace, sentences, tables};
use crate::terminal::{Printer, Style};

/// The most files in a table.
const FILES_MAX: usize = 12;

/// The most rows of examples.
const EXAMPLES_MAX: usize = 12;

/// The summary of a judged trace.
pub fn terminal(judged: &JudgedTrace<'_>, style: impl Into<Style>) -> String {
    let report = judged.report;
    let mut out = Printer::new(style.into());
    out.title("Trace");
    sentences::requests(judged).iter().for_each(|sentence| out.prose(sentence));
    out.title("Rules");
    out.prose(&sentences::drive(report));
    sentences::skipped(report).iter().for_each(|sentence| out.prose(sentence));
    for group in &report.layers {
        out.title(if group.layer == Layer::Drive { "Block requests" } else { "Requests to files" });
        out.table(&tables::rules(report, group));
    }
    out.title("Shares of the bytes that break each rule");
    out.table(&tables::kinds(&report.kinds));
    let at_hot = tables::at_hot(&report.kinds);
    if !at_hot.rows.is_empty() {
        out.title("Requests that begin at hot locations");
        out.table(&at_hot);
    }
    let files: Vec<&FileReport> = tables::told(report).take(FILES_MAX).collect();
    if !files.is_empty() {
        out.title("By file");
        out.table(&tables::files(&files));
    }
    let further = tables::further(report, files.len());
    if further > 0 {
        out.prose(&format!("{}, mostly only read: see --json.", unit::things(further, "further file")));
    }
    let examples = tables::examples(&files, EXAMPLES_MAX);
    if !examples.rows.is_empty() {
        out.title("Examples");
        out.table(&examples);
    }
    let mending = tables::mending(&report.kinds);
    if !mending.rows.is_empty() {
        out.title("Remedies");
        out.table(&mending);
        for kind in report.kinds.iter().filter(|kind| tables::commands(kind).next().is_some()) {
            out.title(&kind.label);
            tables::commands(kind).for_each(|command| out.verbatim(command));
        }
    }
    out.title("Wear");
    sentences::wear(judged).iter().for_each(|sentence| out.prose(sentence));
    if let Some(group) = report.lowest_layer().filter(|group| group.wear.run_bytes > 0) {
        out.table(&tables::wear(group));
    }
    let losses = sentences::losses(report);
    if !losses.is_empty() {
        out.title("Limits of the trace, and notes");
        losses.iter().for_each(|sentence| out.prose(sentence));
    }
    out.into_text()
}
