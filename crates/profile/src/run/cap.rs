//! The probe for a cap before the drive (see [`crate::learn::cap`]), made only if the experiments raise the
//! suspicion of one.
//!
//! The buckets are drained by the first reads of a kind, which are repeated until their rate stays; the next
//! reads find them empty.

use flashgrain_model::{Access, Workload};

use super::bench::Bench;
use crate::Error;
use crate::learn::cap::{FEW_PAGES, MANY_PAGES, PAGES_MAX, Probed, SOME_PAGES, is_suspected, judge};
use crate::load::{Load, Measured, Pattern, Stop, Sync};
use crate::plan::Plan;
use crate::schema::Cap;
use crate::series::Series;
use crate::stats::mix_seed;

/// Share of the budget that the probe takes at most.
const TIME_FRACTION: f64 = 0.1;

/// Share of the budget that a rate takes at least, and requests, so that those in flight at its ends do not
/// matter.
const SLICE_FRACTION: f64 = 0.002;
const REQUESTS_MIN: f64 = 64.0;
const LATENCIES_MIN: f64 = 4.0;

/// Streams of the rates, of pages and of large requests; and requests of each latency.
const STREAMS: u32 = 16;
const LARGE_STREAMS: u32 = 8;
const PACED_REQUESTS: u64 = 16;

/// Leading share of a rate that is not counted.
const WARMUP_FRACTION: f64 = 0.15;

/// A bucket is drained when a rate differs from the one before by no more than this.
const STEADY: f64 = 0.02;

/// Looks for a cap if the experiments make one likely and the time suffices; otherwise says so.
pub(super) fn look_for(
    bench: &mut Bench<'_>,
    plan: &Plan,
    series: &[Series],
    left_out: &mut Vec<String>,
) -> Result<Option<Cap>, Error> {
    if !is_suspected(series, plan.site.page_bytes) {
        return Ok(None);
    }
    let until_s = (bench.elapsed_s() + TIME_FRACTION * plan.budget_s).min(plan.budget_s);
    let mut probe = Probe { bench, plan, until_s, before: None, loads: 0 };
    match probe.run() {
        Ok(Some(probed)) => Ok(judge(&probed)),
        Ok(None) => {
            left_out.push("whether a cap limits the drive: the time does not suffice to tell".into());
            Ok(None)
        }
        Err(error) => {
            left_out.push(probe.bench.conclude(error)?);
            Ok(None)
        }
    }
}

struct Probe<'p, 'b> {
    bench: &'p mut Bench<'b>,
    plan: &'p Plan,
    until_s: f64,
    /// Requests per second of the rate before, and bytes of each.
    before: Option<(f64, f64)>,
    loads: u64,
}

impl Probe<'_, '_> {
    /// `None` if the time did not suffice for requests; bytes are left out if it does not suffice for them.
    fn run(&mut self) -> Result<Option<Probed>, Error> {
        let Some(mut probed) = self.requests()? else { return Ok(None) };
        if PAGES_MAX * probed.page_bytes * 4 <= self.plan.site.main.length_bytes {
            self.bytes(&mut probed)?;
        }
        Ok(Some(probed))
    }

    fn random(&self, pages: u64, streams: u32) -> Workload {
        let bytes = pages * self.plan.site.page_bytes;
        Workload::random(Access::Read, bytes as f64, f64::from(streams))
    }

    fn requests(&mut self) -> Result<Option<Probed>, Error> {
        let [page, few, some, alone] = [(1, STREAMS), (FEW_PAGES, STREAMS), (SOME_PAGES, STREAMS), (1, 1)]
            .map(|(pages, streams)| self.random(pages, streams));
        let mut probed = Probed { page_bytes: self.plan.site.page_bytes, ..Probed::default() };
        let Some(rate) = self.drained(page)? else { return Ok(None) };
        probed.page = rate;
        for (workload, found) in [
            (few, &mut probed.few),
            (some, &mut probed.some),
            (Workload { random_share: 0.0, ..page }, &mut probed.sequential),
        ] {
            let Some((rate, _)) = self.rate(workload)? else { return Ok(None) };
            *found = rate;
        }
        let Some((alone_rate, alone_s)) = self.rate(alone)? else { return Ok(None) };
        (probed.alone, probed.alone_s) = (alone_rate, alone_s);
        let Some(paced_s) = self.paced(alone, rate)? else { return Ok(None) };
        probed.paced_page_s = paced_s;
        Ok(Some(probed))
    }

    fn bytes(&mut self, probed: &mut Probed) -> Result<(), Error> {
        let alone = self.random(MANY_PAGES, 1);
        let Some(many) = self.drained(self.random(MANY_PAGES, LARGE_STREAMS))? else { return Ok(()) };
        let Some((most, _)) = self.rate(self.random(PAGES_MAX, LARGE_STREAMS))? else { return Ok(()) };
        let Some((many_alone, many_alone_s)) = self.rate(alone)? else { return Ok(()) };
        let Some(paced_many_s) = self.paced(alone, many_alone)? else { return Ok(()) };
        *probed = Probed { many, most, many_alone, many_alone_s, paced_many_s, ..*probed };
        Ok(())
    }

    /// The final rate of requests of a kind.
    fn drained(&mut self, workload: Workload) -> Result<Option<f64>, Error> {
        let mut before = f64::INFINITY;
        loop {
            match self.rate(workload)? {
                Some((rate, _)) if (rate / before - 1.0).abs() <= STEADY => return Ok(Some(rate)),
                Some((rate, _)) => before = rate,
                None => return Ok(None),
            }
        }
    }

    /// Requests per second, and their median latency in seconds.
    fn rate(&mut self, workload: Workload) -> Result<Option<(f64, f64)>, Error> {
        let requests = REQUESTS_MIN.max(LATENCIES_MIN * workload.concurrency);
        let large_bytes = (MANY_PAGES * self.plan.site.page_bytes) as f64;
        let expected_s = self.before.map_or(0.0, |(rate, bytes)| {
            // Small requests may come as fast as smaller ones.
            let slower = if bytes < large_bytes { 1.0 } else { (workload.request_bytes / bytes).max(1.0) };
            requests / rate * slower
        });
        let seconds = (SLICE_FRACTION * self.plan.budget_s).max(expected_s);
        let stop = Stop { after_s: Some(seconds), ..Stop::default() };
        let Some(measured) = self.load(workload, None, stop, seconds)? else { return Ok(None) };
        let rate = measured.iops();
        self.before = (rate > 0.0).then_some((rate, workload.request_bytes));
        Ok((rate > 0.0).then_some((rate, median_s(&measured))))
    }

    /// Median latency of single requests at a quarter of `rate`, seconds.
    fn paced(&mut self, workload: Workload, rate: f64) -> Result<Option<f64>, Error> {
        let rate = rate / 4.0;
        let stop = Stop { after_requests: Some(PACED_REQUESTS), ..Stop::default() };
        let workload = Workload { concurrency: 4.0, ..workload };
        let measured = self.load(workload, Some(rate), stop, PACED_REQUESTS as f64 / rate)?;
        Ok(measured.map(|measured| median_s(&measured)))
    }

    /// `None` if there is no time for `seconds`.
    fn load(
        &mut self,
        workload: Workload,
        rate_per_s: Option<f64>,
        stop: Stop,
        seconds: f64,
    ) -> Result<Option<Measured>, Error> {
        let bench = &mut *self.bench;
        bench.step("probe for a cap")?;
        if bench.elapsed_s() + seconds > self.until_s {
            return Ok(None);
        }
        self.loads += 1;
        let load = Load {
            workload,
            pattern: Pattern::Mixed { align_bytes: None },
            region: self.plan.site.main,
            workers: bench.workers(bench.target.device, workload.concurrency),
            sync: Sync::None,
            rate_per_s,
            polled: bench.config.polled,
            warmup_share: if rate_per_s.is_some() { 0.0 } else { WARMUP_FRACTION },
            stop,
            seed: mix_seed(bench.config.seed ^ 0xca9, self.loads),
        };
        bench.load(bench.target.device, load).map(Some)
    }
}

fn median_s(measured: &Measured) -> f64 {
    measured.read_latency_ns.value_at_quantile(0.5) as f64 / 1e9
}
