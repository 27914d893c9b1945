//! The lane of the calling thread, and requests on it that look blocking.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{Device, Error as DeviceError, Nanos, Op, Request};

use super::lane::Lane;
use crate::Error;
use crate::task::{in_task, park, yield_now};

/// What a device is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Pages in segments, and the superblocks.
    Data,
    /// The log.
    Log,
}

/// The devices of a store. Both roles may be on the same device.
#[derive(Clone)]
pub(crate) struct Devices {
    /// Tells stores of a process apart.
    id: u64,
    all: Vec<Arc<dyn Device>>,
    log_index: usize,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// The device answered with this errno.
    #[error("the device answered {}", std::io::Error::from_raw_os_error(*.0))]
    Errno(i32),
    /// The request did not reach the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Failed {
    /// As the store's error; `doing` says what was tried.
    pub fn error(self, doing: impl Into<String>) -> Error {
        match self {
            Self::Errno(errno) => Error::Io { doing: doing.into(), errno },
            Self::Device(error) => error.into(),
        }
    }
}

impl Devices {
    /// A store on `data`, with its log on `log` if that is another device.
    pub fn new(data: Arc<dyn Device>, log: Option<Arc<dyn Device>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let all: Vec<_> = std::iter::once(data).chain(log).collect();
        let log_index = all.len() - 1;
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), all, log_index }
    }

    /// A lane for the calling thread.
    pub fn open_lane(&self) -> Result<Lane, DeviceError> {
        Lane::open(&self.all)
    }

    /// The device for `role`.
    pub fn device(&self, role: Role) -> &Arc<dyn Device> {
        &self.all[self.index(role)]
    }

    /// Whether the log has a device of its own.
    pub fn has_own_log(&self) -> bool {
        self.log_index > 0
    }

    fn index(&self, role: Role) -> usize {
        match role {
            Role::Data => 0,
            Role::Log => self.log_index,
        }
    }
}

thread_local! {
    /// The lane of the worker that steps on this thread.
    static ENTERED: RefCell<Option<Lane>> = const { RefCell::new(None) };
    /// Lanes that this ordinary thread has opened, by store.
    static OWN: RefCell<Vec<(u64, Lane)>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, the calling thread uses a worker's lane.
pub(crate) struct Entered<'a> {
    lane: &'a mut Option<Lane>,
    outer: Option<Lane>,
}

/// Lends `lane` to the calling thread.
pub(crate) fn enter(lane: &mut Option<Lane>) -> Entered<'_> {
    let outer = ENTERED.replace(lane.take());
    Entered { lane, outer }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        *self.lane = ENTERED.replace(self.outer.take());
    }
}

fn with<T>(devices: &Devices, act: impl FnOnce(&mut Lane) -> T) -> Result<T, DeviceError> {
    ENTERED.with_borrow_mut(|entered| match entered {
        Some(lane) => Ok(act(lane)),
        None => OWN.with_borrow_mut(|own| {
            let index = match own.iter().position(|(id, _)| *id == devices.id) {
                Some(index) => index,
                None => {
                    own.push((devices.id, devices.open_lane()?));
                    own.len() - 1
                }
            };
            Ok(act(&mut own[index].1))
        }),
    })
}

/// Reads `length_bytes` at `offset_bytes` into `memory`.
///
/// # Safety
/// `memory` is valid for that many bytes, aligned for the device, and used by nobody else until this returns.
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

/// Writes `length_bytes` from `memory`. `op` says how durable: [`Op::Write`], [`Op::WriteDsync`] or [`Op::WriteThenFlush`].
///
/// # Safety
/// `memory` is valid for that many bytes, aligned for the device, and changed by nobody until this returns.
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
    unsafe { ask(devices, role, Request { op, offset_bytes, length_bytes, memory, tag: 0 }) }
}

/// Makes all completed writes durable.
pub(crate) fn flush(devices: &Devices, role: Role) -> Result<(), Failed> {
    let memory = std::ptr::null_mut();
    // SAFETY: a flush uses no memory.
    unsafe { ask(devices, role, Request { op: Op::Flush, offset_bytes: 0, length_bytes: 0, memory, tag: 0 }) }
}

/// The time on the store's first device.
pub(crate) fn now(devices: &Devices) -> Nanos {
    with(devices, |lane| lane.now()).unwrap_or(Nanos(0))
}

/// # Safety
/// As [`Lane::submit`].
unsafe fn ask(devices: &Devices, role: Role, request: Request) -> Result<(), Failed> {
    let device = devices.index(role);
    let number = loop {
        // SAFETY: this function returns only when the request has been answered, which is as long as the caller promised.
        match with(devices, |lane| unsafe { lane.submit(device, request) })?? {
            Some(number) => break number,
            None if in_task() => yield_now(),
            None => drop(with(devices, |lane| lane.turn(true, None))??),
        }
    };
    loop {
        match with(devices, |lane| lane.take(number))? {
            Some(result) => return result.map_err(Failed::Errno),
            None if in_task() => park(),
            None => drop(with(devices, |lane| lane.turn(true, None))??),
        }
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::*;
    use crate::task::{Bell, Home, Scheduler};

    struct Silent;
    impl Bell for Silent {
        fn ring(&self) {}
    }

    fn devices() -> Devices {
        let config = SimConfig::named("905p").unwrap();
        Devices::new(Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap()), None)
    }

    fn write_then_read(devices: &Devices, place: u64) {
        let written = vec![place as u8 + 1; 4096];
        let mut found = vec![0; 4096];
        // SAFETY: both live until the calls return, and nobody else uses them.
        unsafe {
            write(devices, Role::Data, Op::Write, place * 4096, written.as_ptr(), 4096).unwrap();
            read(devices, Role::Data, place * 4096, found.as_mut_ptr(), 4096).unwrap();
        }
        assert_eq!(found, written);
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
        let home = Arc::new(Home::new(Box::new(Silent)));
        let mut scheduler = Scheduler::new(Arc::clone(&home));
        for place in 0..100 {
            let devices = devices.clone();
            home.spawn(move || write_then_read(&devices, place));
        }
        let mut lane = Some(devices.open_lane().unwrap());
        let mut most_in_flight = 0;
        loop {
            let _entered = enter(&mut lane);
            scheduler.run(usize::MAX).unwrap();
            let in_flight = with(&devices, |lane| lane.in_flight()).unwrap();
            most_in_flight = most_in_flight.max(in_flight);
            if in_flight == 0 {
                break;
            }
            with(&devices, |lane| lane.turn(true, None)).unwrap().unwrap();
        }
        assert_eq!((scheduler.alive(), most_in_flight), (0, 100));
        let elapsed_us = now(&devices).0 / 1000;
        // One after another they would take more than 2000 us.
        assert!(elapsed_us < 500, "{elapsed_us}");
    }
}
