//! Reads while no transaction is under way.

use anyhow::Context as _;

use crate::engine::Failure;

/// No other transaction is under way, so none can win against the check.
pub(super) fn told<T>(result: Result<T, Failure>) -> anyhow::Result<T> {
    match result {
        Err(Failure::Broken(error)) => Err(error),
        other => other.context("the check reads while others write"),
    }
}
