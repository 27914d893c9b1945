//! The surroundings of a medium, for tests of its parts.

use flashgrain_device::Op;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::command::Command;
use super::host::Host;
use super::world::Context;
use crate::config::HostConfig;
use crate::content::Content;
use crate::engine::{Event, Events, Slab};
use crate::statistics::Tally;

/// A host that costs nothing but the link's time: a byte takes a nanosecond.
pub(crate) fn host() -> HostConfig {
    HostConfig {
        queue_depth: 1024,
        command_ns: 0,
        write_command_ns: None,
        partial_command_ns: 0,
        fetch_ns: 0,
        completion_ns: 0,
        link_bytes_per_s: 1_000_000_000,
        link_full_duplex: true,
        link_in_parts: true,
        command_bytes_per_s: None,
        cap: None,
    }
}

/// See the module.
pub(crate) struct Surroundings {
    pub events: Events,
    pub commands: Slab<Command>,
    host: Host,
    pub content: Content,
    random: Pcg64,
    pub tally: Tally,
}

impl Surroundings {
    pub fn new(volatile: bool) -> Self {
        Self {
            events: Events::default(),
            commands: Slab::default(),
            host: Host::new(host()),
            content: Content::new(1 << 30, volatile),
            random: Pcg64::seed_from_u64(1),
            tally: Tally::default(),
        }
    }

    pub fn context(&mut self) -> Context<'_> {
        Context {
            drive: 0,
            events: &mut self.events,
            commands: &mut self.commands,
            host: &mut self.host,
            content: &mut self.content,
            random: &mut self.random,
            tally: &mut self.tally,
        }
    }

    /// A command that has arrived in the drive just now.
    pub fn command(&mut self, op: Op, offset_bytes: u64, length_bytes: u32) -> u32 {
        let now = self.events.now();
        self.commands.insert(Command::new(0, 0, op, offset_bytes, length_bytes, std::ptr::null_mut(), now))
    }

    /// The next event of the medium.
    pub fn next_medium_event(&mut self) -> Option<(u8, u32)> {
        while let Some(event) = self.events.next(u64::MAX) {
            if let Event::Medium { kind, index, .. } = event {
                return Some((kind, index));
            }
        }
        None
    }
}
