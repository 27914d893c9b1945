//! Drives of the papers, as far as their numbers are published.
