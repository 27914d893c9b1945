//! Horizontal bars with their labels: few things, one number each.

use std::fmt::Write as _;

use super::scale::Axis;
use super::{WIDTH, at, escape, open, text, text_width};

const TOP: f64 = 24.0;
const ROW: f64 = 24.0;
const BAR: f64 = 13.0;
const BOTTOM: f64 = 24.0;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Text before it.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// A second number, marked on it.
    pub dot: Option<f64>,
    /// End of its whisker, if it has one.
    pub whisker: Option<f64>,
    /// Printed next to it.
    pub shown: String,
    /// CSS colour.
    pub colour: String,
    /// Text of its tooltip.
    pub tip: String,
}

/// A panel of bars that start at zero.
pub fn bars(figure: &str, title: &str, axis: &Axis, rows: &[Bar]) -> String {
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let left = rows.iter().map(|bar| text_width(&bar.label)).fold(0.0, f64::max) + 8.0;
    let shown = rows.iter().map(|bar| text_width(&bar.shown)).fold(0.0, f64::max) + 8.0;
    let width = (WIDTH - left - shown).max(60.0);
    let x_at = |value: f64| left + axis.place(value).clamp(0.0, 1.0) * width;
    let bottom = TOP + ROW * rows.len() as f64;

    let mut out = open(WIDTH, height, &format!("{figure}: {title}"));
    text(&mut out, 0.0, 13.0, "panel-title", "start", title);
    for tick in axis.ticks_with_room(4, 6.0, x_at) {
        let x = x_at(tick.value);
        let _ = write!(out, r#"<path class="grid" d="M{} {}V{}"/>"#, at(x), at(TOP), at(bottom));
        text(&mut out, x, bottom + 14.0, "tick", "middle", &tick.label);
    }
    for (index, bar) in rows.iter().enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        text(&mut out, left - 8.0, middle + 4.0, "tick", "end", &bar.label);
        let _ = write!(
            out,
            r#"<g class="bar" style="color:{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}"/>"#,
            bar.colour,
            escape(&bar.tip),
            at(left),
            at(middle - BAR / 2.0),
            at(x_at(bar.value) - left),
            at(BAR)
        );
        if let Some(end) = bar.whisker {
            let (from, to) = (x_at(bar.value), x_at(end));
            let _ = write!(
                out,
                r#"<path d="M{} {m}H{t}M{t} {}v8"/>"#,
                at(from),
                at(middle - 4.0),
                m = at(middle),
                t = at(to)
            );
        }
        if let Some(dot) = bar.dot {
            let _ = write!(out, r#"<circle cx="{}" cy="{}" r="3"/>"#, at(x_at(dot)), at(middle));
        }
        out.push_str("</g>");
        let end = x_at(bar.whisker.map_or(bar.value, |end| end.max(bar.value)));
        // Not over the dot.
        let room = text_width(&bar.shown) + 9.0;
        let dot = bar.dot.map(x_at).filter(|dot| (end..end + room).contains(dot));
        text(&mut out, dot.map_or(end + 6.0, |dot| dot + 10.0), middle + 4.0, "value", "start", &bar.shown);
    }
    let _ = write!(out, r#"<path class="frame" d="M{} {}V{}"/></svg>"#, at(left), at(TOP), at(bottom));
    out
}
