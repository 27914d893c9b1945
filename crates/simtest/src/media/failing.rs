//! Drives of which the n-th request fails.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Request, Simulation,
};

/// `EIO`.
const ERROR: i32 = 5;

/// Counts the requests of all devices that have it, and says which fail.
#[derive(Debug)]
pub struct FailPlan {
    asked: AtomicU64,
    first: u64,
    behind_last: u64,
}

impl FailPlan {
    /// The `nth` request fails, counted from 1, and with `sticky` all later ones.
    pub fn new(nth: u64, sticky: bool) -> Arc<Self> {
        let behind_last = if sticky { u64::MAX } else { nth.saturating_add(1) };
        Arc::new(Self { asked: AtomicU64::new(0), first: nth, behind_last })
    }

    /// None fails.
    pub fn none() -> Arc<Self> {
        Self::new(u64::MAX, true)
    }

    /// Requests so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn next_fails(&self) -> bool {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        (self.first..self.behind_last).contains(&number)
    }
}

/// A device whose requests fail by a plan; those that do have no effect.
pub struct Failing {
    device: Arc<dyn Device>,
    plan: Arc<FailPlan>,
}

impl Failing {
    /// As `plan` says.
    pub fn new(device: Arc<dyn Device>, plan: &Arc<FailPlan>) -> Self {
        Self { device, plan: Arc::clone(plan) }
    }
}

impl Device for Failing {
    fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    fn identity(&self) -> &Identity {
        self.device.identity()
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        let channel = self.device.open_channel(options)?;
        Ok(Box::new(FailingChannel { channel, plan: Arc::clone(&self.plan), failed: VecDeque::new() }))
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        self.device.simulation()
    }
}

struct FailingChannel {
    channel: Box<dyn Channel>,
    plan: Arc<FailPlan>,
    /// Tags of what has failed and was not answered yet.
    failed: VecDeque<u64>,
}

impl FailingChannel {
    fn answer_failed(&mut self, completions: &mut Vec<Completion>) -> usize {
        let count = self.failed.len().min(completions.capacity() - completions.len());
        let now = self.channel.now();
        let failed = self.failed.drain(..count);
        completions.extend(failed.map(|tag| Completion {
            tag,
            result: Err(ERROR),
            submitted: now,
            completed: now,
        }));
        count
    }
}

impl Channel for FailingChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.in_flight() >= self.depth() {
            return Err(Error::QueueFull);
        }
        if self.plan.next_fails() {
            self.failed.push_back(request.tag);
            return Ok(());
        }
        // SAFETY: passed on from the caller.
        unsafe { self.channel.submit(request) }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let failed = self.answer_failed(completions);
        Ok(failed + self.channel.poll(completions)?)
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let failed = self.answer_failed(completions);
        if failed > 0 {
            return Ok(failed + self.channel.poll(completions)?);
        }
        self.channel.wait(at_least, until, completions)
    }

    fn now(&self) -> Nanos {
        self.channel.now()
    }

    fn in_flight(&self) -> usize {
        self.channel.in_flight() + self.failed.len()
    }

    fn depth(&self) -> usize {
        self.channel.depth()
    }
}
