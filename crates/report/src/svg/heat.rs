//! A table of numbers as coloured cells.

use std::fmt::Write as _;

use super::{WIDTH, at, escape, open, text, text_width};

const TOP: f64 = 40.0;
const ROW: f64 = 24.0;
const BOTTOM: f64 = 36.0;

/// A heat map. Missing cells stay empty.
pub(crate) struct Heat {
    pub title: String,
    pub x_title: String,
    pub y_title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<Cell>>>,
    pub row_labels: Vec<String>,
}

/// One cell.
pub(crate) struct Cell {
    /// Colours by its logarithm.
    pub value: f64,
    pub shown: String,
    /// Whether to frame it: the best.
    pub best: bool,
    pub tip: String,
}

/// The panel.
pub(crate) fn heat(figure: &str, map: &Heat) -> String {
    let logs = || map.rows.iter().flatten().flatten().map(|cell| cell.value.max(f64::MIN_POSITIVE).ln());
    let (low, high) =
        logs().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let left = map.row_labels.iter().map(|label| text_width(label)).fold(0.0, f64::max) + 8.0;
    let column = (WIDTH - left) / map.columns.len().max(1) as f64;
    let bottom = TOP + ROW * map.rows.len() as f64;

    let mut out = open(WIDTH, bottom + BOTTOM, &format!("{figure}: {}", map.title));
    text(&mut out, 0.0, 13.0, "panel-title", "start", &map.title);
    text(&mut out, 0.0, 30.0, "axis-title", "start", &map.y_title);
    text(&mut out, WIDTH, bottom + 31.0, "axis-title", "end", &map.x_title);
    let mut best = String::new();
    for (index, (row, label)) in map.rows.iter().zip(&map.row_labels).enumerate() {
        let y = TOP + ROW * index as f64;
        text(&mut out, left - 8.0, y + ROW / 2.0 + 4.0, "tick", "end", label);
        for (index, cell) in row.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let x = left + column * index as f64;
            let share =
                if high > low { (cell.value.max(f64::MIN_POSITIVE).ln() - low) / (high - low) } else { 0.5 };
            let _ = write!(
                out,
                r#"<g class="cell" style="--t:{:.0}%"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}"/>"#,
                share * 100.0,
                escape(&cell.tip),
                at(x + 0.5),
                at(y + 0.5),
                at(column - 1.0),
                at(ROW - 1.0)
            );
            text(&mut out, x + column / 2.0, y + ROW / 2.0 + 3.5, "in-cell", "middle", &cell.shown);
            out.push_str("</g>");
            if cell.best {
                let (w, h) = (at(column - 2.0), at(ROW - 2.0));
                let _ = write!(
                    best,
                    r#"<rect class="best" x="{}" y="{}" width="{w}" height="{h}"/>"#,
                    at(x + 1.0),
                    at(y + 1.0)
                );
            }
        }
    }
    out.push_str(&best);
    for (index, label) in map.columns.iter().enumerate() {
        text(&mut out, left + column * (index as f64 + 0.5), bottom + 14.0, "tick", "middle", label);
    }
    out.push_str("</svg>");
    out
}
