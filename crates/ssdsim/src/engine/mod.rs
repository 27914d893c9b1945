//! Virtual time: the queue of events.

mod events;
mod slab;
mod vary;

pub(crate) use events::{Event, Events, nanos_of_us, transfer_ns};
pub(crate) use slab::Slab;
pub(crate) use vary::vary;
