//! The I/O context of the calling thread, and requests on it that look blocking.

use std::cell::{Cell, RefCell};
use std::ptr;

use flashgrain_device::{Error as DeviceError, Nanos, Op, Request};

use super::context::IoContext;
use super::devices::{Devices, Owner, Role};
use super::failed::Failed;
use super::traffic::InFlight;
use crate::Error;
use crate::sync::point;
use crate::task::{current_task, in_task, park};

/// Requests in flight per device of an ordinary thread: it waits for each, so only one is in flight.
const OWN_DEPTH: u32 = 8;

thread_local! {
    /// The I/O context of the worker that steps on this thread; null outside of [`enter`].
    static ENTERED: Cell<*const RefCell<IoContext>> = const { Cell::new(ptr::null()) };
    /// I/O contexts that this ordinary thread has opened.
    static OWN: RefCell<Vec<(Owner, IoContext)>> = const { RefCell::new(Vec::new()) };
}

/// Sets back the I/O context that was there before.
struct Outer(*const RefCell<IoContext>);

impl Drop for Outer {
    fn drop(&mut self) {
        ENTERED.set(self.0);
    }
}

/// Calls `act`, within which the calling thread uses a worker's I/O context.
pub(crate) fn enter<T>(context: &RefCell<IoContext>, act: impl FnOnce() -> T) -> T {
    let _outer = Outer(ENTERED.replace(context));
    act()
}

/// The I/O context of the worker that steps on this thread, if one does.
#[inline]
fn entered<T>(act: impl FnOnce(&RefCell<IoContext>) -> T) -> Option<T> {
    let context = ENTERED.get();
    // SAFETY: not null only during `enter`, which borrows the I/O context, and the caller runs within that,
    // be it on a coroutine's stack.
    unsafe { context.as_ref() }.map(act)
}

/// The own I/O context of an ordinary thread.
fn own<T>(devices: &Devices, act: impl FnOnce(&mut IoContext) -> T) -> Result<T, DeviceError> {
    OWN.with_borrow_mut(|own| {
        let index = match own.iter().position(|(owner, _)| devices.are(owner)) {
            Some(index) => index,
            None => {
                // Removes I/O contexts of stores that were closed meanwhile.
                own.retain(|(owner, _)| owner.strong_count() > 0);
                own.push((devices.owner(), IoContext::open(devices, OWN_DEPTH)?));
                own.len() - 1
            }
        };
        Ok(act(&mut own[index].1))
    })
}

/// Reads `length_bytes` at `offset_bytes` into `memory`.
///
/// # Safety
/// `memory` is valid for that many bytes, aligned for the device, and not used otherwise until this returns.
pub(crate) unsafe fn read(
    devices: &Devices,
    role: Role,
    offset_bytes: u64,
    memory: *mut u8,
    length_bytes: u32,
) -> Result<(), Failed> {
    // SAFETY: passed on from the caller.
    unsafe { ask(devices, role, Request { op: Op::Read, offset_bytes, length_bytes, memory, tag: 0 }) }
}

/// Writes `length_bytes` from `memory`. `op` says how durable: [`Op::Write`], [`Op::WriteDsync`] or
/// [`Op::WriteThenFlush`].
///
/// # Safety
/// `memory` is valid for that many bytes, aligned for the device, and not changed until this returns.
pub(crate) unsafe fn write(
    devices: &Devices,
    role: Role,
    op: Op,
    offset_bytes: u64,
    memory: *const u8,
    length_bytes: u32,
) -> Result<(), Failed> {
    let memory = memory.cast_mut();
    // SAFETY: passed on from the caller.
    let write = || unsafe { ask(devices, role, Request { op, offset_bytes, length_bytes, memory, tag: 0 }) };
    match op {
        Op::WriteThenFlush => devices.flushes(role).alone(write),
        _ => write(),
    }
}

/// The number of blocks of `block_bytes` that a read may have so that all requests in flight get equal shares
/// of the `slots` that the drive serves in a step, and no more than the free ones: at least one (Bender et
/// al., "Small Refinements to the DAM Can Have Big Consequences for Data-Structure Design", §8).
pub(crate) fn share_of_slots(devices: &Devices, slots: u32, block_bytes: u32) -> u32 {
    let InFlight { requests, bytes } = devices.in_flight();
    let taken = bytes.div_ceil(u64::from(block_bytes.max(1)));
    let fair = u64::from(slots) / (requests + 1);
    fair.min(u64::from(slots).saturating_sub(taken)).max(1) as u32
}

/// Makes all completed writes durable. Callers that come at the same time share a flush; after one flush has
/// failed, all later ones fail too.
pub(crate) fn flush(devices: &Devices, role: Role) -> Result<(), Failed> {
    let request =
        Request { op: Op::Flush, offset_bytes: 0, length_bytes: 0, memory: ptr::null_mut(), tag: 0 };
    // SAFETY: a flush uses no memory.
    devices.flushes(role).join(|| unsafe { ask(devices, role, request) })
}

/// Tells the device that a range is no longer needed.
pub(crate) fn discard(
    devices: &Devices,
    role: Role,
    offset_bytes: u64,
    length_bytes: u32,
) -> Result<(), Failed> {
    let memory = std::ptr::null_mut();
    // SAFETY: a discard uses no memory.
    unsafe { ask(devices, role, Request { op: Op::Discard, offset_bytes, length_bytes, memory, tag: 0 }) }
}

/// The time on the store's first device.
pub(crate) fn now(devices: &Devices) -> Nanos {
    entered(|context| context.borrow().now())
        .or_else(|| own(devices, |context| context.now()).ok())
        .unwrap_or(Nanos(0))
}

/// Waits until `until`, on the clock of [`now`].
pub(crate) fn sleep_until(devices: &Devices, until: Nanos) -> Result<(), Error> {
    while now(devices) < until {
        match current_task() {
            Some(task) => {
                entered(|context| context.borrow_mut().wake_at(until, task));
                park();
            }
            None => drop(own(devices, |context| context.wait(Some(until), |_| ()))??),
        }
    }
    Ok(())
}

/// # Safety
/// As [`IoContext::submit`].
unsafe fn ask(devices: &Devices, role: Role, request: Request) -> Result<(), Failed> {
    let device = devices.index(role);
    // SAFETY: passed on from the caller.
    let in_task = entered(|context| unsafe { ask_in_task(context, devices, device, request) });
    match in_task {
        Some(result) => result,
        None => {
            point();
            // SAFETY: passed on from the caller.
            let result = own(devices, |context| unsafe { ask_and_wait(context, device, request) });
            point();
            result?
        }
    }
}

/// # Safety
/// As [`IoContext::submit`].
#[inline]
unsafe fn ask_in_task(
    context: &RefCell<IoContext>,
    devices: &Devices,
    device: usize,
    request: Request,
) -> Result<(), Failed> {
    debug_assert!(in_task(), "a worker's I/O context is used by its tasks only");
    let number = loop {
        // SAFETY: this function returns only when the request has been answered, which is as long as the
        // caller promised.
        match unsafe { context.borrow_mut().to(devices)?.submit(device, request) }? {
            Some(number) => break number,
            None => park(),
        }
    };
    loop {
        park();
        if let Some(result) = context.borrow_mut().opened(devices).and_then(|context| context.take(number)) {
            return result.map_err(Failed::Errno);
        }
    }
}

/// # Safety
/// As [`IoContext::submit`].
unsafe fn ask_and_wait(context: &mut IoContext, device: usize, request: Request) -> Result<(), Failed> {
    let number = loop {
        // SAFETY: this function returns only when the request has been answered, which is as long as the
        // caller promised.
        match unsafe { context.submit(device, request) }? {
            Some(number) => break number,
            None => context.wait_for_any(),
        }
    };
    context.wait_for(number).map_err(Failed::Errno)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::super::broken::{Broken, Part};
    use super::*;
    use crate::worker::Harness;

    fn devices() -> Devices {
        let config = SimConfig::named("905p").unwrap();
        Devices::new(Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap()), None)
    }

    fn write_then_read(devices: &Devices, place: u64) {
        let written = vec![place as u8 + 1; 4096];
        let mut found = vec![0; 4096];
        // SAFETY: both live until the calls return, and are not used otherwise.
        unsafe {
            write(devices, Role::Data, Op::Write, place * 4096, written.as_ptr(), 4096).unwrap();
            read(devices, Role::Data, place * 4096, found.as_mut_ptr(), 4096).unwrap();
        }
        assert_eq!(found, written);
    }

    #[test]
    fn a_thread_that_cannot_wait_is_told() {
        for part in [Part::Open, Part::Wait] {
            let broken = Broken::new(Arc::clone(devices().device(Role::Data)));
            let devices = Devices::new(Arc::clone(&broken) as _, None);
            broken.fail(part, 2);
            let refused = sleep_until(&devices, Nanos(1_000_000)).map_err(|error| error.kind());
            assert_eq!(refused, Err(crate::ErrorKind::Io), "{part:?}");
            broken.fail(part, 0);
            sleep_until(&devices, Nanos(1_000_000)).unwrap();
            assert_eq!(now(&devices), Nanos(1_000_000));
        }
    }

    #[test]
    fn an_ordinary_thread_waits() {
        let devices = devices();
        write_then_read(&devices, 3);
        flush(&devices, Role::Log).unwrap();
    }

    #[test]
    fn tasks_wait_side_by_side() {
        let devices = devices();
        let mut harness = Harness::new(&devices, 1);
        for place in 0..100 {
            let devices = devices.clone();
            drop(harness.spawn(0, move || write_then_read(&devices, place)));
        }
        harness.run_until_idle();
        let elapsed_us = now(&devices).0 / 1000;
        // One after another they would take more than 2000 us.
        assert!(elapsed_us > 0 && elapsed_us < 500, "{elapsed_us}");
    }
}
