//! The study of a paper that a study of ours repeats.

/// A paper, and how its experiments are repeated.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The study's name.
    pub name: &'static str,
    /// Authors, title, and where it was published.
    pub paper: &'static str,
    /// Its sections, tables and figures that are repeated.
    pub parts: &'static str,
    /// The paper's experiment.
    pub did: &'static str,
    /// Sizes: their names, the paper's, and ours.
    pub scaled: &'static [(&'static str, &'static str, &'static str)],
}
