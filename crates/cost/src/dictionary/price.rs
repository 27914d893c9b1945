//! The price of a demand on a device model.

use serde::{Deserialize, Serialize};

use super::{Demand, Situation, Transfer};
use crate::{Access, IoModel};

/// The cost of an operation on a drive.
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
    /// The bottleneck.
    pub binding: Binding,
}

/// The resource that limits the rate of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The clients wait for their own requests one after the other; more clients would do more.
    Clients,
    /// Background work limits the rate, and clients are throttled to it.
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
/// 2. background: work that no client waits for must be done as fast as it comes about, at its own
///    concurrency;
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
    let outstanding = |awaited| concurrency(demand, model, awaited);
    let together = (outstanding(true)? + outstanding(false)?).max(1.0);
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

/// Requests that the transfers of a group have outstanding on average while they take turns: weighted by the
/// time that each takes. Zero without any.
fn concurrency(demand: &Demand, model: &dyn IoModel, awaited: bool) -> Option<f64> {
    let (mut seconds, mut outstanding) = (0.0, 0.0);
    for transfer in demand.transfers.iter().filter(|transfer| transfer.awaited == awaited) {
        let own = transfer.requests * model.seconds_per_request(&transfer.workload())?;
        seconds += own;
        outstanding += own * transfer.concurrency;
    }
    Some(if seconds > 0.0 { outstanding / seconds } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{Processor, Records};
    use crate::test_support::ParallelDrive;

    const STEP: f64 = 1e-3;

    const DRIVE: ParallelDrive = ParallelDrive { block_bytes: 4096.0, parallelism: 4.0, step_seconds: STEP };

    fn transfer(access: Access, requests: f64, concurrency: f64, awaited: bool) -> Transfer {
        Transfer { access, requests, bytes_each: 4096.0, random_share: 1.0, concurrency, awaited }
    }

    fn priced(transfers: Vec<Transfer>, clients: f64, processor: Processor) -> Cost {
        let records = Records { count: 1e6, key_bytes: 16.0, value_bytes: 100.0 };
        let situation = Situation { processor, ..Situation::new(records, 0.0, clients) };
        price(&Demand { transfers, ..Demand::default() }, &DRIVE, &situation).unwrap()
    }

    fn is(got: f64, wanted: f64) -> bool {
        (got / wanted - 1.0).abs() < 1e-9
    }

    #[test]
    fn few_clients_wait_and_many_keep_the_drive_busy() {
        let reads = |clients| vec![transfer(Access::Read, 2.0, clients, true)];
        let one = priced(reads(1.0), 1.0, Processor::FREE);
        assert!(is(one.operations_per_second, 1.0 / (2.0 * STEP)) && is(one.latency_seconds, 2.0 * STEP));
        assert_eq!(one.binding, Binding::Clients);
        let many = priced(reads(16.0), 16.0, Processor::FREE);
        assert!(is(many.operations_per_second, 4.0 / (2.0 * STEP)), "{many:?}");
        assert!(is(many.latency_seconds, 16.0 * 2.0 * STEP / 4.0) && is(many.path_seconds, 8.0 * STEP));
        assert_eq!(many.binding, Binding::Device);
    }

    #[test]
    fn background_work_uses_slots_that_clients_leave_until_it_is_too_slow_itself() {
        let reads = transfer(Access::Read, 1.0, 1.0, true);
        let beside = priced(vec![reads, transfer(Access::Write, 0.5, 1.0, false)], 1.0, Processor::FREE);
        assert!(is(beside.operations_per_second, 1.0 / STEP) && is(beside.device_seconds, 0.75 * STEP));
        assert_eq!(beside.binding, Binding::Clients);
        let behind = priced(vec![reads, transfer(Access::Write, 3.0, 1.0, false)], 1.0, Processor::FREE);
        assert!(is(behind.latency_seconds, 3.0 * STEP) && is(behind.path_seconds, STEP), "{behind:?}");
        assert_eq!(behind.binding, Binding::Background);
        // Three at a time, and the drive's four slots are the limit.
        let wide = priced(vec![reads, transfer(Access::Write, 6.0, 3.0, false)], 1.0, Processor::FREE);
        assert!(is(wide.latency_seconds, 2.0 * STEP), "{wide:?}");
    }

    #[test]
    fn without_requests_the_processor_is_the_limit_and_every_number_is_finite() {
        let processor = Processor { cores: 2.0, seconds_per_operation: 1e-5 };
        let cost = priced(Vec::new(), 8.0, processor);
        assert!(is(cost.operations_per_second, 2e5) && is(cost.path_seconds, 1e-5), "{cost:?}");
        assert_eq!(cost.binding, Binding::Processor);
        let free = priced(Vec::new(), 8.0, Processor::FREE);
        assert!(free.operations_per_second.is_finite() && free.binding == Binding::Processor);
    }
}
