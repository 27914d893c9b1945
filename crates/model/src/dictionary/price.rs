//! What a device model asks for a demand.

use serde::{Deserialize, Serialize};

use super::{Demand, Situation, Transfer};
use crate::{Access, IoModel};

/// What an operation costs on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Device time per operation, in seconds, while everything that it needs runs at once: the inverse of the
    /// rate that the drive bears.
    pub device_seconds: f64,
    /// Time that the requests which an operation waits for take, and its processor time, in seconds: its
    /// latency as long as nothing but the clients limits the rate.
    pub path_seconds: f64,
    /// Operations per second of all clients, in the steady state.
    pub operations_per_second: f64,
    /// Average latency at that rate, in seconds: clients over operations per second, since each client has
    /// one operation at any time. Longer than [`Cost::path_seconds`] where clients are held back.
    pub latency_seconds: f64,
    /// What limits the rate.
    pub binding: Binding,
}

/// What limits the rate of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The clients wait for their own requests one after the other; more clients would do more.
    Clients,
    /// Background work does not get done faster by those who do it; clients are held back for it.
    Background,
    /// The drive is busy.
    Device,
    /// The processor is busy.
    Processor,
}

/// A drive that gains less than this share from twice the requests at a time is busy.
const GAIN_MIN: f64 = 0.05;

/// No operation takes less time than this: one without I/O on a processor that takes no time keeps a finite
/// rate.
const SECONDS_MIN: f64 = 1e-9;

/// Prices a demand under a device model; `None` if the model has no costs for a kind of request in it.
///
/// Four limits hold at the same time, and the lowest is the rate:
///
/// 1. clients: each waits for its own requests, at the concurrency that the design reaches with them;
/// 2. background: what nobody waits for must be done as fast as it comes about, at its own concurrency;
/// 3. device: both together, at the sum of both concurrencies;
/// 4. processor.
///
/// The device time of n requests by c at a time is the time until all are done, so 1. and 2. are inverses of
/// sums over transfers. Transfers of one group take turns: a client makes its requests one after the other,
/// background work has one crew.
pub fn price(demand: &Demand, model: &dyn IoModel, situation: &Situation) -> Option<Cost> {
    let clients = situation.clients.max(1.0);
    let alone = |awaited: bool| -> Option<f64> {
        let transfers = demand.transfers.iter().filter(|transfer| transfer.awaited == awaited);
        device_seconds(transfers, model, |transfer| transfer.concurrency)
    };
    let (awaited, background) = (alone(true)?, alone(false)?);
    let together = (concurrency(demand, true) + concurrency(demand, false)).max(1.0);
    let busy = |concurrency: f64| device_seconds(demand.transfers.iter(), model, |_| concurrency);
    let (device, device_deeper) = (busy(together)?, busy(2.0 * together)?);
    // With no other work than that of the clients, 1. and 3. are the same. The drive limits the rate then
    // unless it would do more with more requests at a time.
    let is_saturated = device_deeper > (1.0 - GAIN_MIN) * device;

    let processor = situation.processor.seconds_per_operation;
    let path_seconds = clients * awaited + processor;
    let limits = [
        (Binding::Clients, path_seconds / clients),
        (Binding::Background, background),
        (Binding::Device, device),
        (Binding::Processor, processor / situation.processor.cores.max(1.0)),
    ];
    let seconds = limits.iter().map(|(_, seconds)| *seconds).fold(SECONDS_MIN, f64::max);
    let binding = if is_saturated && device >= seconds {
        Binding::Device
    } else {
        limits.iter().find(|(_, limit)| *limit >= seconds).map_or(Binding::Processor, |limit| limit.0)
    };
    Some(Cost {
        device_seconds: device,
        path_seconds,
        operations_per_second: seconds.recip(),
        latency_seconds: clients * seconds,
        binding,
    })
}

/// Seconds per operation of transfers that take turns, each at a concurrency.
fn device_seconds<'a>(
    transfers: impl Iterator<Item = &'a Transfer>,
    model: &dyn IoModel,
    concurrency: impl Fn(&Transfer) -> f64,
) -> Option<f64> {
    let (mut reads, mut writes) = (0.0, 0.0);
    for transfer in transfers {
        let workload = transfer.workload_at(concurrency(transfer));
        let seconds = transfer.requests * model.seconds_per_request(&workload)?;
        match transfer.access {
            Access::Read => reads += seconds,
            Access::Write => writes += seconds,
        }
    }
    Some(model.seconds_together(reads, writes))
}

/// Requests that are outstanding on average while the transfers of a group take turns, weighted by requests.
fn concurrency(demand: &Demand, awaited: bool) -> f64 {
    let group = || demand.transfers.iter().filter(move |transfer| transfer.awaited == awaited);
    let requests: f64 = group().map(|transfer| transfer.requests).sum();
    let outstanding: f64 = group().map(|transfer| transfer.requests * transfer.concurrency).sum();
    if requests > 0.0 { outstanding / requests } else { 0.0 }
}
