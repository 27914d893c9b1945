//! The store of a question: a B+-tree whose parts are chosen.

use std::path::PathBuf;

use flashgrain::{Durability, LsmCompression, TreeOptions};
use serde::Serialize;

use super::interface::Interface;
use super::{Options, Study};
use crate::fill::Order;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::study::subject::{Measured, Subject, Task};
use crate::study::{LogPlace, Setup};
use crate::workload::Mix;

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 760;

/// Small segments, as drives are small.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Size of a simulated drive over its part of the records, and its smallest size.
const DRIVE_FACTOR: u64 = 3;
const DRIVE_BYTES_MIN: u64 = 256 << 20;

/// Operations before those that count, as a part of these.
const WARMUP_DIVISOR: u64 = 2;

/// The choices.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    /// Of a simulated set; none for all of them.
    pub drives: Option<u32>,
    pub interface: Interface,
    pub workers: u32,
    /// Operations under way.
    pub clients: u32,
    pub node_bytes: u32,
    /// Added to each wait.
    pub switch_ns: u64,
    pub cache_bytes: u64,
    /// Bytes of the records over those of the memory.
    pub data_factor: f64,
}

/// Look-ups alone, and half of them with updates.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Both {
    pub look_ups: Measured,
    pub mixed: Measured,
}

/// Work of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    LookUps,
    Mixed,
}

impl Work {
    fn mix(self) -> Mix {
        let update = if self == Self::Mixed { 0.5 } else { 0.0 };
        Mix { read: 1.0 - update, update, in_order: true, ..Mix::default() }
    }
}

impl Engine {
    /// Nodes of 4 KiB, tasks, kernel bypass and all drives; data of ten times the memory.
    pub fn usual(options: &Options) -> Self {
        Self {
            drives: None,
            interface: Interface::Bypass,
            workers: options.workers,
            clients: options.tasks,
            node_bytes: 4 << 10,
            switch_ns: 0,
            cache_bytes: options.cache_bytes,
            data_factor: 10.0,
        }
    }

    /// Processor time in this store.
    pub fn costs(&self, options: &Options) -> ProcessorCosts {
        ProcessorCosts {
            wait_ns: options.costs.wait_ns + self.switch_ns,
            request_ns: options.interfaces.of(self.interface),
            ..options.costs
        }
    }

    pub fn records(&self) -> Records {
        let bytes = self.cache_bytes as f64 * self.data_factor;
        let count = (bytes / (KEY_BYTES + VALUE_BYTES) as f64) as u64;
        Records { count: count.max(100), key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }
    }

    fn setup(&self, options: &Options, drives: u32) -> Setup {
        let records = self.records();
        let used = self.drives.unwrap_or(drives).max(1);
        Setup {
            target: PathBuf::clone(&options.target),
            drive_bytes: (DRIVE_FACTOR * records.bytes() / u64::from(used)).max(DRIVE_BYTES_MIN),
            drives: self.drives,
            backend: self.interface.backend(),
            polled: self.interface.polls(),
            records,
            tree: TreeOptions::new().node_bytes(self.node_bytes),
            segment_bytes: SEGMENT_BYTES,
            cache_bytes: self.cache_bytes,
            workers: self.workers,
            clients_max: self.clients.max(self.workers),
            durability: Durability::None,
            log: LogPlace::WithTree,
            log_compression: LsmCompression::None,
            costs: self.costs(options),
            seed: options.seed,
        }
    }

    /// Fills the store and has `work` done with it.
    pub fn with<T>(
        &self,
        study: &Study<'_>,
        work: impl FnOnce(&mut Subject) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let drives = study.options.simulated()?.map_or(1, |config| config.drives);
        Subject::with(&self.setup(study.options, drives), |subject| {
            subject.set_costs(ProcessorCosts::NONE);
            subject.fill(Order::Sequential, study.interrupt)?;
            subject.checkpoint()?;
            subject.set_costs(self.costs(study.options));
            work(subject)
        })
    }

    /// Operations that count, after some that do not.
    pub fn run(&self, study: &Study<'_>, subject: &mut Subject, work: Work) -> anyhow::Result<Measured> {
        let clients = if self.interface.blocks() { self.workers } else { self.clients };
        // Few clients take long.
        let operations = study.options.operations.min(u64::from(clients) * 1000);
        let task = |operations, stream| Task { mix: work.mix(), clients, operations, stream };
        subject.run(task((operations / WARMUP_DIVISOR).max(1), 1), study.interrupt)?;
        subject.run(task(operations, 2), study.interrupt)
    }

    /// Fills the store and measures both.
    pub fn both(&self, study: &Study<'_>) -> anyhow::Result<Both> {
        self.with(study, |subject| {
            let look_ups = self.run(study, subject, Work::LookUps)?;
            Ok(Both { look_ups, mixed: self.run(study, subject, Work::Mixed)? })
        })
    }
}
