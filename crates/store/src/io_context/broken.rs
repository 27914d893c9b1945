//! A device whose operations fail on a test's request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Request, Simulation,
};

/// Operations that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A channel cannot be opened.
    Open,
    /// A request is not taken.
    Submit,
    /// Polling for completions fails, for the queue as a whole.
    Poll,
    /// Waiting for completions fails, likewise.
    Wait,
}

const PARTS: usize = 4;

/// Another device with parts that can be made to fail.
pub(crate) struct Broken {
    device: Arc<dyn Device>,
    identity: Identity,
    times: Arc<[AtomicU32; PARTS]>,
}

struct BrokenChannel {
    channel: Box<dyn Channel>,
    times: Arc<[AtomicU32; PARTS]>,
}

fn check(times: &[AtomicU32; PARTS], part: Part) -> Result<(), Error> {
    let less = |remaining: u32| remaining.checked_sub(1);
    match times[part as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Err(_) => Ok(()),
        Ok(_) => Err(Error::Os {
            doing: format!("{part:?}"),
            source: std::io::Error::from_raw_os_error(libc::EIO),
        }),
    }
}

impl Broken {
    /// Nothing is broken at first.
    pub fn new(device: Arc<dyn Device>) -> Arc<Self> {
        let identity = device.identity().clone();
        Arc::new(Self { device, identity, times: Arc::default() })
    }

    /// The same, with another kind in its identity.
    pub fn of_kind(device: Arc<dyn Device>, kind: &str) -> Arc<Self> {
        let identity = Identity { kind: kind.into(), ..device.identity().clone() };
        Arc::new(Self { device, identity, times: Arc::default() })
    }

    /// Makes the next `times` uses of a part fail.
    pub fn fail(&self, part: Part, times: u32) {
        self.times[part as usize].store(times, Ordering::Relaxed);
    }
}

impl Device for Broken {
    fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        self.device.grow(capacity_bytes)
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        check(&self.times, Part::Open)?;
        let channel = self.device.open_channel(options)?;
        Ok(Box::new(BrokenChannel { channel, times: Arc::clone(&self.times) }))
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        self.device.simulation()
    }
}

impl Channel for BrokenChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        check(&self.times, Part::Submit)?;
        // SAFETY: passed on from the caller.
        unsafe { self.channel.submit(request) }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        check(&self.times, Part::Poll)?;
        self.channel.poll(completions)
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        check(&self.times, Part::Wait)?;
        self.channel.wait(at_least, until, completions)
    }

    fn now(&self) -> Nanos {
        self.channel.now()
    }

    fn in_flight(&self) -> usize {
        self.channel.in_flight()
    }

    fn depth(&self) -> usize {
        self.channel.depth()
    }
}
