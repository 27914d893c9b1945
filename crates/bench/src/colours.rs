//! Colours of series in charts.

/// Told apart by colour-blind readers too.
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

/// The colour of the series of this number; from some number on, all are grey.
pub fn colour(number: usize) -> &'static str {
    COLOURS.get(number).copied().unwrap_or("var(--quiet)")
}
