//! How engines look in charts.

use flashgrain_report::page::{Key, Series};

use super::question::{Cell, Question, place_of};

/// Colours of the engines in the order of their names' list, told apart by colour-blind readers too; the rest
/// is grey.
const COLOURS: [&str; 8] = [
    "light-dark(#c04a00,#ff9a57)",
    "light-dark(#0068a8,#5ab4f0)",
    "light-dark(#00805c,#3fd0a4)",
    "light-dark(#8a2a8a,#ea8cea)",
    "light-dark(#8a6a00,#e8c84a)",
    "light-dark(#5b6670,#a4b0bc)",
    "light-dark(#b3285f,#ff86b4)",
    "light-dark(#4540b8,#a3a0ff)",
];

/// The look of an engine.
pub(super) fn series(engine: &str) -> Series {
    let colour = COLOURS.get(place_of(engine)).copied().unwrap_or("var(--quiet)");
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
