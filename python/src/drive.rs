//! Simulated drives in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Device, Op};
use flashgrain_model::Workload;
use flashgrain_profile::load::{self, InFlight, Load, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use flashgrain_ssdsim::config::StartState;
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::numbers::{Float, whole};
use crate::{errors, interruptible, json as json_objects};

/// Most requests in flight.
const IN_FLIGHT_MAX: u32 = 32_000;

/// The longest run: a drive that does nothing is simulated, too, about a million times as fast as it is.
const VIRTUAL_SECONDS_MAX: f64 = 1e6;

/// A simulated drive: flash, 3D XPoint or a hard disk, in virtual time that starts at zero.
///
/// The same name, state and seed give the same times on every machine.
#[pyclass(frozen, module = "flashgrain._flashgrain")]
pub struct Drive {
    device: Arc<SimDevice>,
    config: SimConfig,
    seed: u64,
}

/// Requests one after the other, some of them in flight at the same time; latencies in nanoseconds.
fn run_requests(
    device: &SimDevice,
    seed: u64,
    requests: &[(Op, u64, u32)],
    in_flight: u32,
    interrupt: &AtomicBool,
) -> Result<Vec<f64>, flashgrain_profile::Error> {
    let longest = requests.iter().map(|(_, _, bytes)| *bytes).max().unwrap_or(1);
    let mut channel = InFlight::open(device, in_flight, longest, seed)?;
    let mut begun = vec![0; requests.len()];
    let mut latencies = vec![f64::NAN; requests.len()];
    let mut waiting = requests.iter().enumerate();
    let mut under_way = 0_u32;
    loop {
        while channel.has_room() {
            let Some((place, (op, offset_bytes, bytes))) = waiting.next() else { break };
            if let Some(begun) = begun.get_mut(place) {
                *begun = channel.now().0;
            }
            channel.submit(*op, *offset_bytes, *bytes, place as u64)?;
            under_way += 1;
        }
        if under_way == 0 || interrupt.load(Ordering::Relaxed) {
            return Ok(latencies);
        }
        for tag in channel.wait(None)? {
            under_way -= 1;
            let place = tag as usize;
            if let (Some(latency), Some(begun)) = (latencies.get_mut(place), begun.get(place)) {
                *latency = (channel.now().0 - begun) as f64;
            }
        }
    }
}

/// Refuses loads that have no end, or one too far away.
fn check_end(
    py: Python<'_>,
    requests: Option<u64>,
    seconds: Option<f64>,
    rate_per_s: Option<f64>,
) -> PyResult<()> {
    if requests == Some(0) {
        return Err(errors::argument(py, "requests is 0: use a whole number from 1 on"));
    }
    if let Some(seconds) = seconds.filter(|seconds| *seconds > VIRTUAL_SECONDS_MAX) {
        let text = format!("seconds is {seconds}: use at most {VIRTUAL_SECONDS_MAX} virtual seconds");
        return Err(errors::argument(py, text));
    }
    let Some(rate) = rate_per_s.filter(|rate| *rate > 0.0) else { return Ok(()) };
    // A run with both bounds ends at the first request after `seconds`, whatever the number of requests.
    let requests = if seconds.is_some() { 1 } else { requests.unwrap_or(1) };
    let least = requests as f64 / VIRTUAL_SECONDS_MAX;
    if rate < least {
        let text = format!(
            "rate_per_s is {rate}: use at least {least}, so that the run takes at most {VIRTUAL_SECONDS_MAX} \
             virtual seconds"
        );
        return Err(errors::argument(py, text));
    }
    Ok(())
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (name, *, state, working_set, seed))]
    fn new(
        py: Python<'_>,
        name: String,
        state: Option<&str>,
        working_set: Float,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        if name.contains('\0') {
            return Err(errors::argument(py, format!("the name {name:?} has a null byte")));
        }
        let (working_set, seed) = (working_set.0, whole("seed", seed)?);
        if !(working_set > 0.0 && working_set <= 1.0) {
            let text = format!("working_set is {working_set}: use a share of more than 0, up to 1");
            return Err(errors::argument(py, text));
        }
        let mut config = SimConfig::named(&name).map_err(|error| errors::argument(py, error))?;
        config.state = match state {
            None => config.state,
            Some("fresh") => StartState::Fresh,
            Some("filled") => StartState::Filled,
            Some("steady-random") => StartState::SteadyRandom { working_set },
            Some(other) => {
                let known = "fresh, filled or steady-random";
                return Err(errors::argument(py, format!("state is {other:?}: use {known}")));
            }
        };
        let of = config.clone();
        let device = interruptible::run(py, move |_| SimDevice::new(&of, &name, seed))?;
        let device = Arc::new(device.map_err(|error| errors::argument(py, error))?);
        Ok(Self { device, config, seed })
    }

    /// The drive's model name.
    #[getter]
    fn name(&self) -> &str {
        &self.config.name
    }

    /// Bytes of the drive.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// Bytes that offsets and lengths are multiples of.
    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.device.geometry().offset_align_bytes
    }

    /// The description as TOML, every field with its value.
    fn to_toml(&self, py: Python<'_>) -> PyResult<String> {
        self.config.to_toml().map_err(|error| errors::argument(py, error))
    }

    /// Runs a closed loop of requests of one kind and size. Returns the rate and the latencies' percentiles
    /// and histogram.
    #[pyo3(signature = (
        *, read_share, request_bytes, random_share, concurrency, requests, seconds, rate_per_s, warmup_share, seed
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each number of the load")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        read_share: Float,
        request_bytes: Float,
        random_share: Float,
        concurrency: Float,
        requests: Option<&Bound<'py, PyAny>>,
        seconds: Option<Float>,
        rate_per_s: Option<Float>,
        warmup_share: Float,
        seed: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let requests = requests.map(|requests| whole("requests", requests)).transpose()?;
        let (seconds, rate_per_s) = (seconds.map(|number| number.0), rate_per_s.map(|number| number.0));
        check_end(py, requests, seconds, rate_per_s)?;
        let load = Load {
            workload: Workload {
                read_share: read_share.0,
                request_bytes: request_bytes.0,
                random_share: random_share.0,
                concurrency: concurrency.0,
            },
            pattern: Pattern::Mixed { align_bytes: None },
            region: Region { offset_bytes: 0, length_bytes: self.device.capacity_bytes() },
            workers: 1,
            sync: Sync::None,
            rate_per_s,
            polled: false,
            warmup_share: warmup_share.0,
            stop: Stop { after_s: seconds, after_requests: requests, ..Stop::default() },
            seed: whole("seed", seed)?,
        };
        let device = Arc::clone(&self.device);
        let measured = interruptible::run(py, move |interrupt| load::run(&*device, &load, interrupt))?;
        let measured = measured.map_err(|error| errors::of_profile(py, &error))?;
        let result = PyDict::new(py);
        result.set_item("seconds", measured.elapsed.seconds())?;
        result.set_item("requests", measured.requests)?;
        result.set_item("bytes_per_second", measured.bytes_per_second())?;
        result.set_item("requests_per_second", measured.iops())?;
        for (name, latencies) in [("read", &measured.read_latency_ns), ("write", &measured.write_latency_ns)]
        {
            result.set_item(format!("{name}_latency"), json_objects::object(py, &Latency::of(latencies))?)?;
            let counted = || latencies.iter_recorded();
            let ns: Vec<u64> = counted().map(|bucket| bucket.value_iterated_to()).collect();
            let counts: Vec<u64> = counted().map(|bucket| bucket.count_at_value()).collect();
            result.set_item(format!("{name}_latency_ns"), ns)?;
            result.set_item(format!("{name}_latency_counts"), counts)?;
        }
        Ok(result)
    }

    /// Runs these requests in order, at most `in_flight` at a time; their latencies in nanoseconds.
    fn requests(
        &self,
        py: Python<'_>,
        offsets: Vec<u64>,
        lengths: Vec<u32>,
        writes: Vec<bool>,
        in_flight: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<f64>> {
        let in_flight = whole("in_flight", in_flight)?;
        if !(1..=IN_FLIGHT_MAX).contains(&in_flight) {
            return Err(errors::argument(py, format!("in_flight is {in_flight}: use 1 to {IN_FLIGHT_MAX}")));
        }
        let (capacity, sector) = (self.capacity_bytes(), u64::from(self.sector_bytes().max(1)));
        let mut requests = Vec::with_capacity(offsets.len());
        for (place, ((offset, length), is_write)) in offsets.iter().zip(&lengths).zip(&writes).enumerate() {
            let bytes = u64::from(*length);
            let end = offset.checked_add(bytes);
            let is_whole = bytes > 0 && offset.is_multiple_of(sector) && bytes.is_multiple_of(sector);
            if !is_whole || end.is_none_or(|end| end > capacity) {
                let text = format!(
                    "request {place}, {length} bytes at {offset}: use multiples of {sector} bytes within {capacity}"
                );
                return Err(errors::argument(py, text));
            }
            requests.push((if *is_write { Op::Write } else { Op::Read }, *offset, *length));
        }
        let (device, seed) = (Arc::clone(&self.device), self.seed);
        let done = interruptible::run(py, move |interrupt| {
            run_requests(&device, seed, &requests, in_flight, interrupt)
        })?;
        done.map_err(|error| errors::of_profile(py, &error))
    }

    /// Counters and the drive's virtual time.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let statistics = self.device.statistics();
        let seconds = self.device.simulation().map_or(0.0, |simulation| simulation.now().seconds());
        json_objects::object(py, &json!({ "seconds": seconds, "counters": statistics.counters }))
    }

    fn __repr__(&self) -> String {
        format!("<flashgrain.Drive {}>", self.config.name)
    }
}

/// The names of all drives that come with the package.
#[pyfunction]
pub fn drive_presets() -> Vec<&'static str> {
    preset::names()
}
