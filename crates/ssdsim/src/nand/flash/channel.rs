//! A channel: the bus between the controller and some chips.

use std::collections::VecDeque;

/// Data that were sensed cross before the next command does, as in MQSim: a chip that is ready for a command
/// waits until no other has data to give. Numbers are servers of [`super::Flash`].
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// Servers whose data wait to be transferred.
    pub transfers: VecDeque<u32>,
    /// Servers that wait for a command.
    pub commands: VecDeque<u32>,
    /// When the transfer under way ends.
    pub free_ns: u64,
    /// For which such end an event has been scheduled.
    pub release_ns: u64,
}

impl Channel {
    /// Whether operations wait for it.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        !self.transfers.is_empty() || !self.commands.is_empty()
    }
}
