//! The host of clients: it runs them, passes their time, and counts requests and other events meanwhile.

use std::path::Path;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use flashgrain_device::{Nanos, clock, process_cpu};

use crate::engine::{Engine, Job};
use crate::measure::{BlockCounters, BlockDevice, space_bytes};

/// See the module. The driver starts clients, lets time pass, reads the counters, and joins the clients.
pub trait Host {
    /// Counts other than operations, since the host exists.
    type Counters;

    /// Starts `clients` clients, each with its number and a session of its own.
    ///
    /// # Errors
    /// If they cannot be started.
    fn start(&mut self, clients: usize, job: Job) -> anyhow::Result<()>;

    /// Whether all clients that were started have ended.
    fn have_ended(&self) -> bool;

    /// Lets time pass until this moment, while the clients work.
    fn pass(&mut self, until: Nanos);

    /// Waits until all clients have ended.
    ///
    /// # Errors
    /// The first that a client has returned, and if clients do not end.
    fn join(&mut self) -> anyhow::Result<()>;

    /// The clients' time.
    fn now(&self) -> Nanos;

    /// Time between two looks at whether a run is to end early.
    fn tick(&self) -> Duration;

    /// Time that processors have worked.
    fn cpu(&self) -> Duration;

    /// The counts so far.
    fn counters(&self) -> Self::Counters;

    /// Bytes that the device was given to write, as far as that is counted.
    fn written_bytes(counters: &Self::Counters) -> u64;

    /// Bytes on the disk, where they are to be watched.
    fn space_bytes(&self) -> Option<u64> {
        None
    }
}

/// Lets time pass until `until`, or as long as clients work and `go_on` says so.
pub(crate) fn pass_while<H: Host>(
    host: &mut H,
    until: Nanos,
    tick: Duration,
    mut go_on: impl FnMut(&H) -> bool,
) {
    while host.now() < until && !host.have_ended() && go_on(host) {
        let next = host.now() + Nanos::from(tick);
        host.pass(next.min(until));
    }
}

/// An engine that is open. Clients run in its threads or tasks, in the system's time.
pub struct EngineHost<'scope, 'env> {
    engine: &'env dyn Engine,
    directory: Option<&'env Path>,
    device: Option<BlockDevice>,
    scope: &'scope Scope<'scope, 'env>,
    running: Option<ScopedJoinHandle<'scope, anyhow::Result<()>>>,
}

impl<'scope, 'env> EngineHost<'scope, 'env> {
    /// Clients are started by a thread of `scope`. The directory, if it is given, and the device below it are
    /// watched.
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        engine: &'env dyn Engine,
        directory: Option<&'env Path>,
    ) -> Self {
        let device = directory.and_then(BlockDevice::below);
        Self { engine, directory, device, scope, running: None }
    }
}

impl Host for EngineHost<'_, '_> {
    type Counters = Option<BlockCounters>;

    fn start(&mut self, clients: usize, job: Job) -> anyhow::Result<()> {
        let engine = self.engine;
        self.running = Some(self.scope.spawn(move || engine.run(clients, job)));
        Ok(())
    }

    fn have_ended(&self) -> bool {
        self.running.as_ref().is_none_or(ScopedJoinHandle::is_finished)
    }

    fn pass(&mut self, until: Nanos) {
        clock::sleep_until(until);
    }

    fn join(&mut self) -> anyhow::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn tick(&self) -> Duration {
        const TICK: Duration = Duration::from_millis(100);
        TICK
    }

    fn cpu(&self) -> Duration {
        process_cpu().into()
    }

    fn counters(&self) -> Option<BlockCounters> {
        self.device.as_ref().and_then(BlockDevice::read)
    }

    fn written_bytes(counters: &Option<BlockCounters>) -> u64 {
        counters.as_ref().map_or(0, |counters| counters.written_bytes)
    }

    fn space_bytes(&self) -> Option<u64> {
        Some(space_bytes(self.directory?).unwrap_or(0))
    }
}
