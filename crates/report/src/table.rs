//! Tables as data: made once, shown in a terminal and on the page.

use textwrap::core::display_width;

use crate::text::printable;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Each with as many entries as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column and how it may be laid out.
#[derive(Clone, Debug)]
pub struct Column {
    /// At its head; empty for none.
    pub title: String,
    /// Kind of its entries.
    pub kind: Kind,
}

/// Kind of a column's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Short text, to the left.
    Label,
    /// A number, to the right.
    Number,
    /// Sentences: the first to be wrapped.
    Prose,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// How it is shown.
    pub tone: Tone,
}

/// How much an entry asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// For most entries.
    Plain,
    /// For the numbers that readers look for.
    Strong,
    /// For entries that readers may skip.
    Quiet,
    /// For entries that readers should not trust without knowing the reason.
    Warning,
}

impl Tone {
    /// Class of the page's style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Strong => "strong",
            Self::Quiet => "quiet",
            Self::Warning => "warning",
        }
    }
}

impl Cell {
    /// A plain one.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// One with a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl Kind {
    /// Class of the page's style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Number => "number",
            Self::Prose => "prose",
        }
    }
}

impl Table {
    /// An empty one with columns of these titles.
    pub fn new(columns: &[(&str, Kind)]) -> Self {
        let columns =
            columns.iter().map(|(title, kind)| Column { title: (*title).into(), kind: *kind }).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// As in Markdown, columns in line.
    pub fn markdown(&self) -> String {
        let text = |cell: &str| printable(cell).replace('|', "\\|");
        let titles: Vec<String> = self.columns.iter().map(|column| text(&column.title)).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| text(&cell.text)).collect()).collect();
        let width = |place: usize| {
            let cells = rows.iter().filter_map(|row| row.get(place)).chain(titles.get(place));
            cells.map(|cell| display_width(cell)).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let is_right =
            |place: usize| self.columns.get(place).is_some_and(|column| column.kind == Kind::Number);
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(place, (cell, width))| {
                let room = " ".repeat(width.saturating_sub(display_width(cell)));
                if is_right(place) { format!("{room}{cell}") } else { format!("{cell}{room}") }
            });
            format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
        };
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(place, width)| match is_right(place) {
                true => format!("{}:", "-".repeat(width - 1)),
                false => "-".repeat(*width),
            })
            .collect();
        let body: String = rows.iter().map(|row| line(row)).collect();
        format!("{}{}{body}", line(&titles), line(&rule))
    }

    /// The same rows with the columns at these places.
    pub(crate) fn with_columns(&self, places: &[usize]) -> Self {
        let columns = places.iter().filter_map(|place| self.columns.get(*place).cloned()).collect();
        let of_row = |row: &Vec<Cell>| places.iter().filter_map(|place| row.get(*place).cloned()).collect();
        Self { columns, rows: self.rows.iter().map(of_row).collect() }
    }

    /// Takes the last column out and returns its entries.
    pub(crate) fn remove_last_column(&mut self) -> Vec<Cell> {
        self.columns.pop();
        self.rows.iter_mut().filter_map(Vec::pop).collect()
    }

    pub(crate) fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.title.is_empty())
    }

    pub(crate) fn has_prose(&self) -> bool {
        self.columns.iter().any(|column| column.kind == Kind::Prose)
    }

    /// Whether a new group begins at a row: rows of a group repeat their first entry.
    pub(crate) fn starts_group(&self, row: &usize) -> bool {
        let label =
            |row: usize| self.rows.get(row).and_then(|cells| cells.first()).map(|cell| cell.text.as_str());
        let has_groups = (1..self.rows.len()).any(|row| label(row) == label(row - 1));
        has_groups && *row > 0 && label(*row) != label(*row - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_has_its_columns_in_line_and_no_stray_bars() {
        let mut table = Table::new(&[("name", Kind::Label), ("µs", Kind::Number)]);
        table.push(["a|b".into(), "1.50".into()]);
        table.push(["c".into(), "12".into()]);
        assert_eq!(table.markdown(), "| name |   µs |\n| ---- | ---: |\n| a\\|b | 1.50 |\n| c    |   12 |\n");
    }
}
