//! Channels to all devices, and the requests on them.

use std::sync::Arc;

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Error as DeviceError, Nanos, Request};

use crate::task::{Waker, waker};

/// The most requests of a lane in flight per device. Tasks beyond it wait for room.
const DEPTH: u32 = 4096;

/// Completions that are taken at a time.
const BATCH: usize = 64;

/// See the module.
pub(crate) struct Lane {
    channels: Vec<Box<dyn Channel>>,
    completions: Vec<Completion>,
    requests: Vec<Asked>,
    free: Vec<u32>,
    in_flight: usize,
}

/// A request and who waits for it.
struct Asked {
    waker: Option<Waker>,
    result: Option<Result<(), i32>>,
}

impl Lane {
    /// Channels to `devices`, for the calling thread.
    pub fn open(devices: &[Arc<dyn Device>]) -> Result<Self, DeviceError> {
        let options = ChannelOptions { depth: DEPTH, arena: None, polled: false };
        let channels =
            devices.iter().map(|device| device.open_channel(&options)).collect::<Result<_, _>>()?;
        Ok(Self {
            channels,
            completions: Vec::with_capacity(BATCH),
            requests: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
        })
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The time of the first device.
    pub fn now(&self) -> Nanos {
        self.channels.first().map_or(Nanos(0), |channel| channel.now())
    }

    /// Submits a request whose tag is ignored; the caller is woken when it is answered. Its number, or `None` if the queue is full.
    ///
    /// # Safety
    /// As [`Channel::submit`]: the memory stays valid until [`Lane::take`] has given the result.
    pub unsafe fn submit(&mut self, device: usize, request: Request) -> Result<Option<u32>, DeviceError> {
        let channel = &mut self.channels[device];
        if channel.in_flight() == channel.depth() {
            return Ok(None);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.requests.push(Asked { waker: None, result: None });
            (self.requests.len() - 1) as u32
        });
        // SAFETY: passed on from the caller.
        if let Err(error) = unsafe { channel.submit(Request { tag: u64::from(number), ..request }) } {
            self.free.push(number);
            return Err(error);
        }
        self.requests[number as usize] = Asked { waker: Some(waker()), result: None };
        self.in_flight += 1;
        Ok(Some(number))
    }

    /// The answer to a request, once.
    pub fn take(&mut self, number: u32) -> Option<Result<(), i32>> {
        let result = self.requests[number as usize].result.take()?;
        self.free.push(number);
        Some(result)
    }

    /// Hands over what was submitted and wakes those whose requests are done. With `until`, waits for the first completion on a lane
    /// with one device; with several it only looks, as it cannot wait on two queues at a time.
    pub fn turn(&mut self, wait: bool, until: Option<Nanos>) -> Result<usize, DeviceError> {
        let mut answered = 0;
        let busy = self.channels.iter().filter(|channel| channel.in_flight() > 0).count();
        for index in 0..self.channels.len() {
            let channel = &mut self.channels[index];
            if channel.in_flight() == 0 {
                continue;
            }
            if wait && busy == 1 {
                channel.wait(1, until, &mut self.completions)?;
            } else {
                channel.poll(&mut self.completions)?;
            }
            answered += self.completions.len();
            for completion in self.completions.drain(..) {
                let asked = &mut self.requests[completion.tag as usize];
                asked.result = Some(completion.result);
                if let Some(waker) = asked.waker.take() {
                    waker.wake();
                }
            }
        }
        self.in_flight -= answered;
        Ok(answered)
    }
}
