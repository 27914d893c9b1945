//! One request at a time, every latency kept by place.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{ChannelOptions, Device, Nanos, Op, Request};

use super::memory::Scratch;
use crate::Error;

/// One timed request at depth 1.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// First byte.
    pub offset_bytes: u64,
    /// Latency.
    pub latency: Nanos,
}

/// Runs one request of `length_bytes` at each offset in order, one at a time, and keeps every latency: for
/// the request-size and location profiles, which look at distributions by place.
///
/// # Errors
/// As [`super::run`], and [`Error::Interrupted`].
pub fn time_each(
    device: &dyn Device,
    op: Op,
    length_bytes: u32,
    offsets: &[u64],
    interrupt: &AtomicBool,
) -> Result<Vec<Timed>, Error> {
    let scratch = Scratch::new(u64::from(length_bytes).max(1), 1, op.modifies(), 0)?;
    let options = ChannelOptions { depth: 1, arena: Some(scratch.arena()), polled: false };
    let mut channel = device.open_channel(&options)?;
    let mut completions = Vec::with_capacity(1);
    let mut timed = Vec::with_capacity(offsets.len());
    for &offset_bytes in offsets {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let request = Request { op, offset_bytes, length_bytes, memory: scratch.of(0), tag: 0 };
        // SAFETY: scratch memory is as long as the request, outlives the channel, and no code reads or writes
        // it.
        unsafe { channel.submit(request) }?;
        while completions.is_empty() {
            channel.wait(1, None, &mut completions)?;
        }
        for completion in completions.drain(..) {
            completion.result.map_err(|errno| Error::request(op, offset_bytes, errno))?;
            timed.push(Timed { offset_bytes, latency: completion.latency() });
        }
    }
    Ok(timed)
}
