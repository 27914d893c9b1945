//! Tables as data: made once, shown in a terminal and on the page.

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// A column and how it may be laid out.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub title: String,
    pub kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Short text, to the left.
    Label,
    /// A number, to the right.
    Number,
    /// Sentences: the first to be wrapped.
    Prose,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Tone,
}

/// How much an entry asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// What the reader looks for.
    Strong,
    /// What may be skipped.
    Quiet,
    /// What the reader should know before trusting it.
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
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
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
    pub(crate) fn new(columns: &[(&str, Kind)]) -> Self {
        let columns =
            columns.iter().map(|(title, kind)| Column { title: (*title).into(), kind: *kind }).collect();
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
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
