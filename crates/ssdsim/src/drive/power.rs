//! Power cuts, images, and drives that do not answer.

use flashgrain_device::{Completion, Nanos, Op, Request};

use super::command::Command;
use super::image::{Image, OnLink};
use super::world::{Inflight, World};
use crate::content::Content;
use crate::engine::{Event, Slab};
use crate::fault::PowerCut;

/// How long the host takes to find that there is no drive.
const REFUSAL_NS: u64 = 1000;

impl World {
    /// The bytes of all drives, now.
    pub fn image(&self) -> Image {
        let mut writes: Vec<&Command> = self.commands.iter().filter(|command| command.is_on_link()).collect();
        // In the order in which they would have arrived.
        writes.sort_by_key(|command| command.started_ns);
        let on_link = writes
            .into_iter()
            .map(|command| OnLink {
                drive: command.drive,
                offset_bytes: command.offset_bytes,
                // SAFETY: the request is in flight, so its memory is valid and no code writes it.
                bytes: unsafe { command.bytes() }.to_vec(),
            })
            .collect();
        let drives = self.drives.iter().map(|drive| drive.content.clone()).collect();
        Image { stripes: self.stripes, drives, on_link }
    }

    /// The power is gone: requests in flight fail, and unsettled writes are lost as `cut` says.
    pub fn power_cut(&mut self, cut: &PowerCut) {
        let left = self.image().after(cut);
        self.abort();
        self.adopt(left.drives);
        self.answers = false;
    }

    /// The power is back. Without a power cut before, everything survives.
    pub fn power_on(&mut self) {
        self.abort();
        for drive in &mut self.drives {
            drive.content.cut_power(|_, _| true);
            drive.medium.power_cycle();
        }
        self.answers = true;
    }

    /// The bytes of `image`, all of them settled, after a power cycle. The image is one of an equal device.
    pub fn restore(&mut self, image: &Image) {
        self.adopt(image.drives.clone());
        self.power_on();
    }

    fn adopt(&mut self, contents: Vec<Content>) {
        for (drive, content) in self.drives.iter_mut().zip(contents) {
            drive.content = content;
        }
    }

    /// Everything that is in flight fails, in the order of submission.
    pub fn abort(&mut self) {
        self.events.clear();
        let now = self.events.now();
        let mut requests: Vec<Inflight> = self.requests.iter().copied().collect();
        requests.sort_by_key(|request| request.submitted_ns);
        self.requests = Slab::default();
        self.commands = Slab::default();
        for drive in &mut self.drives {
            drive.host.power_cycle();
        }
        for request in requests {
            let submitted = Nanos(request.submitted_ns);
            let completion =
                Completion { tag: request.tag, result: Err(libc::EIO), submitted, completed: Nanos(now) };
            self.tally.left(request.op, completion.latency().0, now);
            self.channels[request.channel as usize].push_back(completion);
            self.answered += 1;
        }
        for time in self.faults.strike_times() {
            self.events.at(time.max(now), Event::Strike);
        }
    }

    /// Answers a request with `ENODEV`, because the drive has no power or is gone.
    pub(super) fn refuse(&mut self, channel: u32, request: &Request) {
        let now = self.events.now();
        let index =
            self.requests.insert(Inflight { remaining_commands: 1, ..Inflight::new(channel, request, now) });
        self.tally.arrived(now);
        let length = if request.op == Op::Flush { 0 } else { request.length_bytes };
        let mut command =
            Command::new(index, 0, request.op, request.offset_bytes, length, request.memory, now);
        command.errno = libc::ENODEV;
        command.stages.controller = REFUSAL_NS;
        self.drives[0].host.inside += 1;
        let command = self.commands.insert(command);
        self.events.at(now + REFUSAL_NS, Event::Done { command });
    }
}
