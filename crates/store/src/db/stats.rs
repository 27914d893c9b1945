//! What goes on inside a store, in numbers.

use crate::engine::Engine;

/// What goes on inside a store, in numbers. Counters begin at zero when the store is opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {}

impl Stats {
    pub(crate) fn of(_engine: &Engine) -> Self {
        Self {}
    }
}
