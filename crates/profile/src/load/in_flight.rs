//! Requests whose content does not matter, several in flight, for programs that make up the I/O of others.

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request};

use super::memory::Scratch;
use crate::Error;

/// A channel to a device. Read data are not kept, and written data are random.
pub struct InFlight {
    // Dropped before the memory that its requests use.
    channel: Box<dyn Channel>,
    scratch: Scratch,
    request_bytes_max: u32,
    completions: Vec<Completion>,
    /// Operation and place of each request in flight, by its slot.
    slots: Vec<Option<(Op, u64, u64)>>,
}

impl InFlight {
    /// At most `depth` requests in flight, each of at most `request_bytes_max`.
    ///
    /// # Errors
    /// If there is no memory, or no channel to the device.
    pub fn open(device: &dyn Device, depth: u32, request_bytes_max: u32, seed: u64) -> Result<Self, Error> {
        let scratch = Scratch::new(u64::from(request_bytes_max).max(1), 1, true, seed)?;
        let options = ChannelOptions { depth, arena: Some(scratch.arena()), polled: false };
        let channel = device.open_channel(&options)?;
        let completions = Vec::with_capacity(depth as usize);
        Ok(Self { channel, scratch, request_bytes_max, completions, slots: vec![None; depth as usize] })
    }

    /// The device's time.
    pub fn now(&self) -> Nanos {
        self.channel.now()
    }

    /// Whether another request can be submitted now.
    pub fn has_room(&self) -> bool {
        self.channel.in_flight() < self.channel.depth()
    }

    /// Submits a request; `tag` comes back from [`InFlight::wait`].
    ///
    /// # Errors
    /// [`Error::Argument`] if it is longer than was said, or too many are in flight; those of the channel.
    pub fn submit(&mut self, op: Op, offset_bytes: u64, length_bytes: u32, tag: u64) -> Result<(), Error> {
        let slot = self.slots.iter().position(Option::is_none);
        let Some(slot) = slot.filter(|_| length_bytes <= self.request_bytes_max) else {
            let problem = format!("a request of {length_bytes} bytes has no room");
            return Err(Error::Argument(problem));
        };
        let memory = if op.moves_data() { self.scratch.of(0) } else { std::ptr::null_mut() };
        let request = Request { op, offset_bytes, length_bytes, memory, tag: slot as u64 };
        // SAFETY: the scratch memory is at least as long as the request and outlives the channel, and no code
        // reads or writes it while requests are in flight.
        unsafe { self.channel.submit(request) }?;
        self.slots[slot] = Some((op, offset_bytes, tag));
        Ok(())
    }

    /// Waits for a completion, or until `until`; the tags of all requests that are complete then, in the
    /// order of their completions.
    ///
    /// # Errors
    /// If a request has failed.
    pub fn wait(&mut self, until: Option<Nanos>) -> Result<Vec<u64>, Error> {
        self.channel.wait(1, until, &mut self.completions)?;
        let slots = &mut self.slots;
        let completed = self.completions.drain(..).filter_map(|completion| {
            let (op, offset_bytes, tag) = slots.get_mut(completion.tag as usize)?.take()?;
            let done = completion.result.map(|()| tag);
            Some(done.map_err(|errno| Error::request(op, offset_bytes, errno)))
        });
        completed.collect()
    }
}
