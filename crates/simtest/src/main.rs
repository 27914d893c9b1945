//! `flashgrain-simtest`.

fn main() {}
