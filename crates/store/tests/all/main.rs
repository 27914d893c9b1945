//! The store through its public face: one behaviour per module.

mod bad_input;
mod basics;
mod large_values;
mod model;
mod places;
