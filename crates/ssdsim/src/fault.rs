//! Faults: what a drive can do wrong, and when.
