//! Writing of units, each by one request in a task of its own.

use flashgrain_device::Op;

use super::UnitSequence;
use super::changes::Changes;
use super::moves::Moves;
use super::unit::{Buffers, Ready};
use crate::Error;
use crate::io_context::{self, Devices, Role};
use crate::poison::Poison;
use crate::sync::Arc;
use crate::task::Executor;

/// Writes units that are complete, and wakes the waiters for them.
pub(super) struct UnitWriter {
    devices: Devices,
    executor: Executor,
    poison: Poison,
    buffers: Arc<Buffers>,
    moves: Arc<Moves>,
    changes: Arc<Changes>,
}

impl UnitWriter {
    pub fn new(
        devices: Devices,
        executor: Executor,
        poison: Poison,
        (buffers, moves, changes): (&Arc<Buffers>, &Arc<Moves>, &Arc<Changes>),
    ) -> Self {
        let (buffers, moves, changes) = (Arc::clone(buffers), Arc::clone(moves), Arc::clone(changes));
        Self { devices, executor, poison, buffers, moves, changes }
    }

    /// Has a unit written in the background.
    pub fn send(self: &Arc<Self>, ready: Option<Ready>) {
        if let Some(ready) = ready {
            let own = Arc::clone(self);
            self.executor.spawn(move || own.write(ready));
        }
    }

    fn write(&self, ready: Ready) {
        let memory = self.buffers.memory(ready.unit);
        // SAFETY: the unit is sealed and no thread copies into it; its buffer is not used again before
        // `written`.
        let result = unsafe {
            io_context::write(
                &self.devices,
                Role::Data,
                Op::Write,
                ready.offset_bytes,
                memory,
                ready.length_bytes,
            )
        };
        match result {
            // The buffer is not given back: its images count as not written, so their pages stay in memory.
            Err(failure) if !planted!(FailedWriteForgotten) => drop(self.poison.by(failure.error(format!(
                "write {} bytes of pages at byte {}",
                ready.length_bytes, ready.offset_bytes
            )))),
            _ => {
                self.buffers.written(ready.unit);
                if self.moves.end(ready.unit) {
                    self.changes.segments_changed();
                }
                // A segment may be worth cleaning once its last unit is written.
                self.changes.unit_written();
            }
        }
        self.changes.wake_all();
    }

    /// Waits until these units are written. None of them is open.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if one cannot be written.
    pub fn wait_written(&self, mut units: Vec<UnitSequence>) -> Result<(), Error> {
        self.changes.wait_until(|| {
            units.retain(|unit| !self.buffers.is_written(*unit));
            match units.is_empty() {
                true => Ok(true),
                false => self.poison.check().map(|()| false),
            }
        })
    }

    /// Waits until a buffer may be free.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn wait_for_buffer(&self) -> Result<(), Error> {
        self.changes.wait_until(|| {
            self.poison.check()?;
            Ok(self.buffers.has_free())
        })
    }
}
