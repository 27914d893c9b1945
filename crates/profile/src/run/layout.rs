//! Writing the scratch space before anything is measured: extents that were never written do not reach the
//! drive.

use flashgrain_model::{Access, Workload};

use super::bench::Bench;
use crate::Error;
use crate::config::Precondition;
use crate::load::{Load, Pattern, Region, Stop, Sync, layout};
use crate::plan::{Plan, main_layout};
use crate::stats::mix_seed;
use crate::trial::bytes_text;

/// Writes between two looks at progress and time.
const REQUESTS_PER_STEP: u64 = 512;

/// Size of the writes that lay out the region of `location`, 15 times 256 KiB: a multiple of nearly all
/// supposed sizes.
const LOCATION_REQUEST_BYTES: u64 = 3840 << 10;

/// Writes in flight while preconditioning at random.
const RANDOM_STREAMS: f64 = 32.0;

/// Smallest part of the main region that is worth going on with.
const MAIN_BYTES_MIN: u64 = 4 << 20;

/// Results of the layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaidOut {
    /// Bandwidth of large sequential writes; `None` if nothing was written.
    pub bytes_per_second: Option<f64>,
    /// Deviations from the plan, in words.
    pub notes: Vec<String>,
}

/// Lays the regions of `plan.site` out, within twice the time planned for it, and shrinks them to the parts
/// written in that time.
pub(crate) fn lay_out(bench: &mut Bench<'_>, plan: &mut Plan) -> Result<LaidOut, Error> {
    let mut laid_out = LaidOut::default();
    if !plan.writes() {
        return Ok(laid_out);
    }
    let deadline_s = bench.elapsed_s() + 2.0 * plan.layout.seconds;
    let location = plan.site.location;
    if location.length_bytes > 0 {
        let written = fill_location(bench, location, deadline_s)?;
        if written < location.length_bytes {
            laid_out.notes.push("location: its region could not be written in time".into());
            plan.site.location.length_bytes = 0;
        }
    }
    let main = main_layout(&plan.site, bench.config);
    let (written, seconds) = fill(bench, main, layout::CONCURRENCY, deadline_s)?;
    if written < main.length_bytes && main == plan.site.main {
        laid_out.notes.push(format!(
            "the scratch region beyond {}, which could not be written in {seconds:.1} s",
            bytes_text(written)
        ));
        plan.site.main.length_bytes = written / layout::REQUEST_BYTES * layout::REQUEST_BYTES;
        if plan.site.main.length_bytes < MAIN_BYTES_MIN {
            return Err(Error::Argument(format!(
                "the drive wrote only {} in {seconds:.1} s; give it a larger time budget",
                bytes_text(written)
            )));
        }
    }
    laid_out.bytes_per_second = (seconds > 0.0).then(|| written as f64 / seconds);
    // The regions of `request-size` are made again in their own way; here the file system learns that they
    // hold data, so that it does not come between the drive and the small writes.
    let request_size = plan.site.request_size;
    if fill(bench, request_size, layout::CONCURRENCY, deadline_s)?.0 < request_size.length_bytes {
        laid_out.notes.push("request-size: its regions could not be laid out in time".into());
        plan.site.request_size.length_bytes = 0;
    }
    precondition(bench, plan, &mut laid_out)?;
    bench.flush()?;
    Ok(laid_out)
}

/// Writes the region of `location`, one write at a time, as the paper makes the file that its Experiment 2
/// reads; returns the bytes written.
///
/// The paper's writes of 512 KiB cut stripes and chunks that do not divide them, and parts of stripes lie as
/// small writes do. These writes begin and end where stripes of all sizes that are supposed do.
fn fill_location(bench: &mut Bench<'_>, region: Region, deadline_s: f64) -> Result<u64, Error> {
    let end = region.offset_bytes + region.length_bytes;
    let first = region.offset_bytes.next_multiple_of(LOCATION_REQUEST_BYTES).min(end);
    let last = (end / LOCATION_REQUEST_BYTES * LOCATION_REQUEST_BYTES).max(first);
    let parts = [(region.offset_bytes, first), (first, last), (last, end)];
    let mut written = 0;
    for (begin, end) in parts.into_iter().filter(|(begin, end)| begin < end) {
        let part = Region { offset_bytes: begin, length_bytes: end - begin };
        let request_bytes = part.length_bytes.min(LOCATION_REQUEST_BYTES);
        written += fill_with(bench, part, request_bytes, 1, deadline_s)?;
    }
    Ok(written)
}

/// Writes `region` from front to back, piece by piece; returns the bytes and seconds it took.
fn fill(bench: &mut Bench<'_>, region: Region, streams: u64, deadline_s: f64) -> Result<(u64, f64), Error> {
    let began_s = bench.elapsed_s();
    let written = fill_with(bench, region, layout::REQUEST_BYTES, streams, deadline_s)?;
    Ok((written, bench.elapsed_s() - began_s))
}

/// The same with requests of a size; returns the bytes.
fn fill_with(
    bench: &mut Bench<'_>,
    region: Region,
    request_bytes: u64,
    streams: u64,
    deadline_s: f64,
) -> Result<u64, Error> {
    let count = region.length_bytes / request_bytes;
    let (mut next, mut written) = (0, 0);
    while next < count {
        bench.step("layout")?;
        let piece = (next + REQUESTS_PER_STEP).min(count);
        let offsets: Vec<u64> =
            (next..piece).map(|index| region.offset_bytes + index * request_bytes).collect();
        let wanted = offsets.len() as u64 * request_bytes;
        let mut load = layout::writes_in_order(region, request_bytes, offsets, streams);
        load.stop.after_s = Some((deadline_s - bench.elapsed_s()).max(0.01));
        let done = bench.load(bench.target.device, load)?.bytes_written_total;
        written += done;
        if done < wanted {
            break;
        }
        next = piece;
    }
    Ok(written)
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
            fill(bench, main, layout::CONCURRENCY, deadline_s)?.0
        }
        Precondition::Random => {
            bench.step("preconditioning")?;
            let workload = Workload::random(Access::Write, plan.site.page_bytes as f64, RANDOM_STREAMS);
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
