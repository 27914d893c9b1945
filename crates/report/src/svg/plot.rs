//! Lines and points between two axes.

use std::fmt::Write as _;

use super::scale::Axis;
use super::{WIDTH, at, escape, open, text, text_width};

const HEIGHT: f64 = 240.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 36.0;
const RIGHT: f64 = 12.0;
const TICK_GAP: f64 = 6.0;
const LABEL_HEIGHT: f64 = 11.0;

/// A colour and a name that the legend and all panels of a figure share.
#[derive(Clone, Debug)]
pub struct Series {
    /// Key within the figure, such as `k8`.
    pub key: String,
    /// Text in the legend.
    pub label: String,
    /// CSS colour.
    pub colour: String,
}

/// One measured or fitted number.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Value in the unit of the horizontal axis.
    pub x: f64,
    /// Value in the unit of the vertical axis.
    pub y: f64,
    /// Ends of the whisker.
    pub range: Option<(f64, f64)>,
    /// Filled marks are those that matter most, such as held-out points.
    pub filled: bool,
    /// Text of its tooltip.
    pub tip: String,
}

/// A panel being drawn. Later marks cover earlier ones.
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    left: f64,
    /// Inside the frame: clipped.
    clipped: String,
    /// May touch the frame.
    marks: String,
    /// Places of the marks, which labels keep clear of.
    mark_places: Vec<(f64, f64)>,
    /// Labels of vertical lines, and where these are.
    rule_labels: Vec<(f64, String)>,
}

impl Plot {
    /// A panel with its title and axes.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let widest = y.ticks(7).iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        let left = widest + TICK_GAP + 4.0;
        Self {
            title: title.into(),
            x,
            y,
            left,
            clipped: String::new(),
            marks: String::new(),
            mark_places: Vec::new(),
            rule_labels: Vec::new(),
        }
    }

    fn inner_width(&self) -> f64 {
        WIDTH - self.left - RIGHT
    }

    fn inner_height() -> f64 {
        HEIGHT - TOP - BOTTOM
    }

    fn x_at(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * self.inner_width()
    }

    fn y_at(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * Self::inner_height()
    }

    /// Joins points; the line is clipped at the frame. `class` is `fit`, `guide` or `trace`.
    pub fn line(&mut self, series: &Series, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in points {
            if !x.is_finite() || !y.is_finite() {
                pen_down = false;
                continue;
            }
            // Far outside is as good as just outside, and shorter.
            let (x, y) = (self.x_at(x), self.y_at(y).clamp(-HEIGHT, 2.0 * HEIGHT));
            let _ = write!(path, "{}{} {}", if pen_down { 'L' } else { 'M' }, at(x), at(y));
            pen_down = true;
        }
        let _ = write!(
            self.clipped,
            r#"<path class="{class}" data-s="{}" style="color:{}" d="{path}"/>"#,
            escape(&series.key),
            series.colour
        );
    }

    /// A curve, evaluated all along the axis.
    pub fn curve(&mut self, series: &Series, class: &str, y_of: impl Fn(f64) -> Option<f64>) {
        let points: Vec<(f64, f64)> =
            self.x.samples(64).into_iter().map(|x| (x, y_of(x).unwrap_or(f64::NAN))).collect();
        self.line(series, class, points);
    }

    /// Points with whiskers.
    pub fn marks(&mut self, series: &Series, marks: &[Mark]) {
        let _ = write!(
            self.marks,
            r#"<g class="marks" data-s="{}" style="color:{}">"#,
            escape(&series.key),
            series.colour
        );
        for mark in marks.iter().filter(|mark| mark.x.is_finite() && mark.y.is_finite()) {
            let (x, y) = (self.x_at(mark.x), self.y_at(mark.y));
            self.mark_places.push((x, y));
            let whisker = mark.range.map(|(low, high)| (self.y_at(low), self.y_at(high)));
            let _ = write!(self.marks, "<g><title>{}</title>", escape(&mark.tip));
            // A whisker that the point covers is not worth its bytes.
            if let Some((low, high)) = whisker.filter(|(low, high)| (low - high).abs() > 3.0) {
                let _ = write!(self.marks, r#"<path d="M{} {}V{}"/>"#, at(x), at(low), at(high));
            }
            let class = if mark.filled { r#" class="filled""# } else { "" };
            let _ = write!(self.marks, r#"<circle cx="{}" cy="{}" r="2.8"{class}/></g>"#, at(x), at(y));
        }
        self.marks.push_str("</g>");
    }

    /// A vertical line at a value of interest; its label, if it has one, stands at its upper end, or at the
    /// lower one if marks are in its way.
    pub fn rule(&mut self, value: f64, label: &str) {
        let x = self.x_at(value);
        let _ = write!(
            self.clipped,
            r#"<path class="rule" d="M{} {}V{}"/>"#,
            at(x),
            at(TOP),
            at(TOP + Self::inner_height())
        );
        if !label.is_empty() {
            self.rule_labels.push((x, label.to_owned()));
        }
    }

    fn place_rule_labels(&mut self) {
        for (x, label) in std::mem::take(&mut self.rule_labels) {
            let width = text_width(&label);
            let fits_right = x + 5.0 + width < WIDTH;
            let (x, from, anchor) =
                if fits_right { (x + 4.0, x, "start") } else { (x - 4.0, x - 8.0 - width, "end") };
            let is_free = |y: f64| {
                let is_clear = |(at_x, at_y): &(f64, f64)| {
                    !(from..from + width + 8.0).contains(at_x) || (at_y - (y - 4.0)).abs() > LABEL_HEIGHT
                };
                self.mark_places.iter().all(is_clear)
            };
            let ends = [TOP + LABEL_HEIGHT, TOP + Self::inner_height() - 6.0];
            let y = ends.into_iter().find(|y| is_free(*y)).unwrap_or(ends[0]);
            text(&mut self.marks, x, y, "note", anchor, &label);
        }
    }

    /// A shaded span of the horizontal axis.
    pub fn span(&mut self, from: f64, to: f64) {
        let (from, to) = (self.x_at(from), self.x_at(to));
        let _ = write!(
            self.clipped,
            r#"<rect class="span" x="{}" y="{}" width="{}" height="{}"/>"#,
            at(from),
            at(TOP),
            at((to - from).max(0.0)),
            at(Self::inner_height())
        );
    }

    /// The panel. `figure` names the figure for screen readers.
    pub fn finish(mut self, figure: &str) -> String {
        self.place_rule_labels();
        let (width, height) = (self.inner_width(), Self::inner_height());
        let (bottom, right) = (TOP + height, self.left + width);
        let mut out = open(WIDTH, HEIGHT, &format!("{figure}: {}", self.title));
        text(&mut out, 0.0, 13.0, "panel-title", "start", &self.title);
        text(&mut out, 0.0, 30.0, "axis-title", "start", &self.y.title);
        text(&mut out, right, HEIGHT - 5.0, "axis-title", "end", &self.x.title);
        for tick in self.y.ticks(7) {
            let y = self.y_at(tick.value);
            let _ = write!(out, r#"<path class="grid" d="M{} {}H{}"/>"#, at(self.left), at(y), at(right));
            text(&mut out, self.left - TICK_GAP, y + 3.5, "tick", "end", &tick.label);
        }
        for tick in self.x.ticks_with_room(9, 6.0, |value| self.x_at(value)) {
            let x = self.x_at(tick.value);
            let _ = write!(out, r#"<path class="grid" d="M{} {}V{}"/>"#, at(x), at(TOP), at(bottom));
            // The last label must not leave the panel.
            let half = text_width(&tick.label) / 2.0;
            let x = x.min(WIDTH - half).max(half);
            text(&mut out, x, bottom + 14.0, "tick", "middle", &tick.label);
        }
        let _ = write!(
            out,
            r#"<svg x="{x}" y="{y}" width="{w}" height="{h}" viewBox="{x} {y} {w} {h}">{}</svg>"#,
            self.clipped,
            x = at(self.left),
            y = at(TOP),
            w = at(width),
            h = at(height),
        );
        let _ = write!(
            out,
            r#"<path class="frame" d="M{} {}V{}H{}"/>"#,
            at(self.left),
            at(TOP),
            at(bottom),
            at(right)
        );
        out.push_str(&self.marks);
        out.push_str("</svg>");
        out
    }
}
