//! Charts as SVG text: axes with units, marks that say their numbers, colours that follow the page's theme.

mod bars;
pub(crate) mod colour;
mod heat;
mod plot;
mod scale;

pub use bars::{Bar, bars};
pub(crate) use heat::{Cell as HeatCell, Heat, heat};
pub use plot::{Mark, Plot, Series};
pub use scale::{Axis, Growth};

use std::fmt::Write as _;

/// Width of a panel in its own units; a unit is about a pixel on a wide page.
pub(crate) const WIDTH: f64 = 320.0;
/// Width of a character of the axis labels, in a wide font (DejaVu Sans): no font is asked.
const CHARACTER: f64 = 6.8;

/// Text that cannot end an element or attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A coordinate with one decimal at most.
fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Opens a panel: its size, and its label for screen readers.
fn open(width: f64, height: f64, label: &str) -> String {
    format!(r#"<svg viewBox="0 0 {} {}" role="img" aria-label="{}">"#, at(width), at(height), escape(label))
}

/// One line of text; `class` decides size, weight and colour, `anchor` is `start`, `middle` or `end`.
fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
    let anchor = if anchor == "start" { String::new() } else { format!(r#" text-anchor="{anchor}""#) };
    let _ =
        write!(out, r#"<text x="{}" y="{}" class="{class}"{anchor}>{}</text>"#, at(x), at(y), escape(words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<a href='x' \"&>"), "&lt;a href=&#39;x&#39; &quot;&amp;&gt;");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(at(12.04), "12");
        assert_eq!(at(12.06), "12.1");
    }
}
