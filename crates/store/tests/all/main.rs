//! The store through its public face: one behaviour per module.

mod basics;
mod large_values;
