//! The requests that an operation makes.

use serde::{Deserialize, Serialize};

use super::{Operation, Records};
use crate::{Access, Workload};

/// Requests of one kind that an operation makes, on average over many operations: work that is done once for
/// many operations counts with its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Reads or writes.
    pub access: Access,
    /// Requests per operation.
    pub requests: f64,
    /// Bytes of each request.
    pub bytes_each: f64,
    /// Share of the requests that start at a random place; the others continue where one ended.
    pub random_share: f64,
    /// Requests of this kind that the design has outstanding while it makes them, all clients together: its
    /// *effective* concurrency. A client that goes down a tree has one, since each node names the next, so k
    /// clients have k; one background writer has the requests that it submits at once, whatever k is.
    pub concurrency: f64,
    /// Whether the operation waits for these requests; the others run in the background.
    pub awaited: bool,
}

impl Transfer {
    /// Random reads that operations wait for: `requests` per operation, of `bytes_each`.
    pub(crate) fn reads(requests: f64, bytes_each: f64, concurrency: f64) -> Self {
        let access = Access::Read;
        Self { access, requests, bytes_each, random_share: 1.0, concurrency, awaited: true }
    }

    /// Bytes per operation.
    pub fn bytes(&self) -> f64 {
        self.requests * self.bytes_each
    }

    /// The workload that these requests are while nothing else runs.
    pub fn workload(&self) -> Workload {
        self.workload_at(self.concurrency)
    }

    /// The workload with another number of requests outstanding.
    pub(super) fn workload_at(&self, concurrency: f64) -> Workload {
        Workload {
            random_share: self.random_share,
            ..Workload::random(self.access, self.bytes_each, concurrency)
        }
    }
}

/// The demand of an operation, or of a mix of operations, on the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Requests, those that the operation waits for in the order in which it makes them. A transfer without
    /// requests may be left out.
    pub transfers: Vec<Transfer>,
    /// Bytes of the dictionary that the operation changes.
    pub changed_bytes: f64,
    /// Bytes that the operation returns.
    pub returned_bytes: f64,
}

impl Demand {
    /// A demand without transfers yet.
    pub fn of(operation: Operation, records: &Records) -> Self {
        Self {
            transfers: Vec::new(),
            changed_bytes: operation.changed_bytes(records),
            returned_bytes: operation.returned_bytes(records),
        }
    }

    /// Adds requests, unless there are none.
    pub fn add(&mut self, transfer: impl Into<Option<Transfer>>) {
        self.transfers.extend(transfer.into().filter(|transfer| transfer.requests > 0.0));
    }

    /// The average operation of a mix: demands with their shares, which should sum to 1.
    pub fn mix(parts: impl IntoIterator<Item = (f64, Self)>) -> Self {
        let mut mix = Self::default();
        for (share, demand) in parts {
            mix.changed_bytes += share * demand.changed_bytes;
            mix.returned_bytes += share * demand.returned_bytes;
            for transfer in demand.transfers {
                mix.add(Transfer { requests: share * transfer.requests, ..transfer });
            }
        }
        mix
    }

    /// Requests per operation.
    pub fn requests(&self, access: Access) -> f64 {
        self.of_kind(access).map(|transfer| transfer.requests).sum::<f64>() + 0.0
    }

    /// Bytes moved per operation.
    pub fn bytes(&self, access: Access) -> f64 {
        self.of_kind(access).map(Transfer::bytes).sum::<f64>() + 0.0
    }

    /// Bytes written over bytes changed (dictionaries paper, Definition 3); `None` if nothing is changed.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.changed_bytes > 0.0).then(|| self.bytes(Access::Write) / self.changed_bytes)
    }

    /// Bytes read over bytes returned; `None` if nothing is returned.
    pub fn read_amplification(&self) -> Option<f64> {
        (self.returned_bytes > 0.0).then(|| self.bytes(Access::Read) / self.returned_bytes)
    }

    fn of_kind(&self, access: Access) -> impl Iterator<Item = &Transfer> {
        self.transfers.iter().filter(move |transfer| transfer.access == access)
    }
}
