//! How engines look in charts.

use flashgrain_report::page::{Key, Series};

use super::question::{Cell, Question, place_of};
use crate::colours::colour;

/// The look of an engine.
pub(super) fn series(engine: &str) -> Series {
    let colour = colour(place_of(engine));
    Series { key: engine.into(), label: engine.into(), colour: colour.into() }
}

/// Engines that a question was asked of, each with its look.
pub(super) fn legend(question: &Question<'_>) -> Vec<Key> {
    let keys = question.engines().into_iter().map(|engine| {
        let cell = question.closed.iter().chain(&question.open).find(|cell| cell.engine == engine);
        let note = cell.map_or("", Cell::memory_note);
        let mut series = series(engine);
        if !note.is_empty() {
            series.label = format!("{engine} ({note})");
        }
        Key::series(&series, "line")
    });
    keys.collect()
}
