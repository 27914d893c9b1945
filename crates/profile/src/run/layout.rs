//! Writing the scratch space before anything is measured: extents that were never written do not reach the drive.

use flashgrain_model::Workload;

use super::bench::Bench;
use crate::Error;
use crate::config::Precondition;
use crate::load::{Load, Pattern, Region, Stop, Sync};
use crate::plan::Plan;
use crate::stats::mix_seed;
use crate::target::LAYOUT_REQUEST_BYTES;
use crate::trial::bytes_text;

/// Writes in flight while the main region is laid out.
const MAIN_STREAMS: f64 = 8.0;

/// Smallest part of the main region that is worth going on with.
const LEAST_MAIN_BYTES: u64 = 4 << 20;

/// What the layout has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaidOut {
    /// Bandwidth of large sequential writes; `None` if nothing was written.
    pub bytes_per_second: Option<f64>,
    /// What went differently, in words.
    pub notes: Vec<String>,
}

/// Lays the regions of `plan.site` out, within twice the time planned for it, and shrinks them to what was written in it.
pub(crate) fn lay_out(bench: &mut Bench<'_>, plan: &mut Plan) -> Result<LaidOut, Error> {
    let mut laid_out = LaidOut::default();
    if !plan.writes() {
        return Ok(laid_out);
    }
    let deadline_s = bench.elapsed_s() + 2.0 * plan.layout.seconds;
    let location = plan.site.location;
    if location.length_bytes > 0 {
        bench.step("layout")?;
        // One write at a time, as the paper makes the file that its Experiment 2 reads.
        let (written, _) = fill(bench, location, 1.0, deadline_s)?;
        if written < location.length_bytes {
            laid_out.notes.push("location: its region could not be written in time".into());
            plan.site.location.length_bytes = 0;
        }
    }
    bench.step("layout")?;
    let (written, seconds) = fill(bench, plan.site.main, MAIN_STREAMS, deadline_s)?;
    if written < plan.site.main.length_bytes {
        laid_out.notes.push(format!(
            "the scratch region beyond {}, which could not be written in {seconds:.1} s",
            bytes_text(written)
        ));
        plan.site.main.length_bytes = written / LAYOUT_REQUEST_BYTES * LAYOUT_REQUEST_BYTES;
        if plan.site.main.length_bytes < LEAST_MAIN_BYTES {
            return Err(Error::Argument(format!(
                "the drive wrote only {} in {seconds:.1} s; give it a larger time budget",
                bytes_text(written)
            )));
        }
    }
    laid_out.bytes_per_second = (seconds > 0.0).then(|| written as f64 / seconds);
    // The regions of `request-size` are made again in their own way; here the file system learns that they hold data, so that it does not
    // come between the drive and the small writes.
    let request_size = plan.site.request_size;
    if fill(bench, request_size, MAIN_STREAMS, deadline_s)?.0 < request_size.length_bytes {
        laid_out.notes.push("request-size: its regions could not be laid out in time".into());
        plan.site.request_size.length_bytes = 0;
    }
    precondition(bench, plan, &mut laid_out)?;
    bench.flush()?;
    Ok(laid_out)
}

/// Writes `region` from front to back; returns the bytes and seconds it took.
fn fill(bench: &mut Bench<'_>, region: Region, streams: f64, deadline_s: f64) -> Result<(u64, f64), Error> {
    let count = region.length_bytes / LAYOUT_REQUEST_BYTES;
    if count == 0 {
        return Ok((0, 0.0));
    }
    let offsets = (0..count).map(|index| region.offset_bytes + index * LAYOUT_REQUEST_BYTES).collect();
    let began_s = bench.elapsed_s();
    let load = Load {
        workload: sequential_writes(LAYOUT_REQUEST_BYTES, streams.min(count as f64)),
        pattern: Pattern::List(offsets),
        region,
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.0,
        stop: Stop {
            after_s: Some((deadline_s - began_s).max(0.05)),
            after_requests: Some(count),
            ..Stop::default()
        },
        seed: bench.config.seed,
    };
    let measured = bench.load(bench.target.device, load)?;
    Ok((measured.bytes_written_total, bench.elapsed_s() - began_s))
}

fn sequential_writes(request_bytes: u64, streams: f64) -> Workload {
    Workload { read_share: 0.0, request_bytes: request_bytes as f64, random_share: 0.0, concurrency: streams }
}

/// Brings the main region to the state that was asked for, within the time of the layout again.
fn precondition(bench: &mut Bench<'_>, plan: &Plan, laid_out: &mut LaidOut) -> Result<(), Error> {
    let main = plan.site.main;
    let deadline_s = bench.elapsed_s() + 2.0 * plan.layout.seconds;
    let wanted = main.length_bytes * (bench.config.precondition.fills() - 1);
    let written = match bench.config.precondition {
        Precondition::None => return Ok(()),
        Precondition::Sequential => {
            bench.step("preconditioning")?;
            fill(bench, main, MAIN_STREAMS, deadline_s)?.0
        }
        Precondition::Random => {
            bench.step("preconditioning")?;
            let workload =
                Workload { random_share: 1.0, ..sequential_writes(plan.site.page_bytes, MAIN_STREAMS * 4.0) };
            let load = Load {
                workload,
                pattern: Pattern::Mixed { align_bytes: None },
                region: main,
                workers: 1,
                sync: Sync::None,
                rate_per_s: None,
                polled: false,
                warmup_share: 0.0,
                stop: Stop {
                    after_s: Some((deadline_s - bench.elapsed_s()).max(0.05)),
                    after_bytes_written: Some(wanted),
                    ..Stop::default()
                },
                seed: mix_seed(bench.config.seed, 0x9e),
            };
            bench.load(bench.target.device, load)?.bytes_written_total
        }
    };
    if written < wanted {
        laid_out.notes.push(format!(
            "preconditioning beyond {} of {}, for want of time",
            bytes_text(written),
            bytes_text(wanted)
        ));
    }
    Ok(())
}
