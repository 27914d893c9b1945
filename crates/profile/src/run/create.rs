//! Creating the regions of `request-size`: sequential writes of one size each (hidden-parameters paper,
//! Experiment 1, lines 5-16).

use super::bench::Bench;
use crate::Error;
use crate::experiment::request_size::{READ_BYTES, REGION_BYTES_MIN, SizedRegion, regions, tail_bytes};
use crate::load::layout::{CONCURRENCY, REQUEST_BYTES, writes_in_order};
use crate::load::{Region, Sync};
use crate::plan::Plan;
use crate::trial::bytes_text;

/// Share of the experiment's time that goes into creating regions; the rest is for reading them.
const CREATION_FRACTION: f64 = 0.5;

/// Times the planned time of the experiment within which its regions must be made.
const TIMES_PLANNED_MAX: f64 = 1.5;

/// Writes that a calibration takes at most, and its time.
const CALIBRATION_WRITES: u64 = 32;
const CALIBRATION_S: f64 = 0.2;

/// The regions as they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Created {
    pub regions: Vec<SizedRegion>,
    /// How they were made, for the evidence.
    pub how: String,
    /// Deviations from the plan, in words.
    pub notes: Vec<String>,
}

/// Time of one write of each kind on this drive, seconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    write_s: f64,
    flushed_write_s: f64,
    per_byte_s: f64,
}

/// The regions that will be made, and how.
#[derive(Clone, Debug, PartialEq)]
struct Making {
    regions: Vec<SizedRegion>,
    flush_each: bool,
    too_slow: usize,
}

/// Creates the regions within a share of `seconds`, in the order that follows from `seed`.
pub(crate) fn create(
    bench: &mut Bench<'_>,
    plan: &Plan,
    (seconds, bytes_per_second): (f64, f64),
    seed: u64,
) -> Result<Created, Error> {
    let planned = regions(&plan.site, seed);
    let smallest = planned.iter().min_by_key(|sized| sized.write_request_bytes).copied();
    let Some(smallest) = smallest else { return Ok(Created::default()) };
    bench.step("request-size: regions")?;
    let costs = calibrate(bench, smallest, bytes_per_second)?;
    let making = choose(&planned, costs, seconds * CREATION_FRACTION);
    let mut created = Created { how: String::new(), ..Created::default() };
    if making.too_slow > 0 {
        created.notes.push(format!(
            "request-size: the {} smallest write sizes, which take too long on this drive for the time budget",
            making.too_slow
        ));
    }
    let began_s = bench.elapsed_s();
    let deadline_s = began_s + seconds * TIMES_PLANNED_MAX;
    let whole_bytes = making.regions.first().map_or(0, |sized| sized.region.length_bytes);
    // A cache takes the writes of a calibration faster than those of whole regions. The least that is worth
    // reading is made of all, and as much more as the time that took allows.
    let bytes_min = whole_bytes.min(REGION_BYTES_MIN);
    let begun = write_all(bench, &making, 0, bytes_min, deadline_s)?;
    let used_s = (bench.elapsed_s() - began_s).max(1e-9);
    let more_bytes = (bytes_min as f64 * (seconds * CREATION_FRACTION - used_s) / used_s).max(0.0) as u64;
    let more_bytes = (more_bytes / READ_BYTES * READ_BYTES).min(whole_bytes - bytes_min);
    let complete_bytes = match begun == bytes_min && more_bytes > 0 {
        true => write_all(bench, &making, bytes_min, bytes_min + more_bytes, deadline_s)?,
        false => begun,
    };
    write_tail(bench, plan, tail_bytes(&making.regions), deadline_s)?;
    // Only parts that were written in every region may be read, or the regions would differ by more than
    // their write size.
    created.regions = making.regions;
    for sized in &mut created.regions {
        sized.region.length_bytes = sized.region.length_bytes.min(complete_bytes);
    }
    if created.regions.len() < 2 || complete_bytes < REGION_BYTES_MIN {
        created.notes.push("request-size: its regions could not be written in time".into());
        created.regions.clear();
    }
    let flushes = if making.flush_each { "a flush after every write" } else { "one flush after each region" };
    created.how = match created.regions.first() {
        Some(first) => format!("regions of {} with {flushes}", bytes_text(first.region.length_bytes)),
        None => String::new(),
    };
    Ok(created)
}

/// Times a few writes of the smallest size, without and with a flush after each.
fn calibrate(bench: &mut Bench<'_>, smallest: SizedRegion, bytes_per_second: f64) -> Result<Costs, Error> {
    let mut cost = |flush: bool| -> Result<f64, Error> {
        let bytes = smallest.write_request_bytes * CALIBRATION_WRITES;
        let part = SizedRegion { region: Region { length_bytes: bytes, ..smallest.region }, ..smallest };
        let began_s = bench.elapsed_s();
        let written = write_part(bench, part, 0, flush, began_s + CALIBRATION_S)?;
        let writes = (written / smallest.write_request_bytes).max(1);
        Ok((bench.elapsed_s() - began_s) / writes as f64)
    };
    let (write_s, flushed_write_s) = (cost(false)?, cost(true)?);
    Ok(Costs { write_s, flushed_write_s, per_byte_s: 1.0 / bytes_per_second.max(1.0) })
}

/// The largest regions that can be made in `seconds`: with a flush after every write if they can be as large
/// as planned, otherwise without, smaller, and without the smallest writes if even that takes too long.
fn choose(planned: &[SizedRegion], costs: Costs, seconds: f64) -> Making {
    let whole = planned.first().map_or(0, |sized| sized.region.length_bytes);
    let time = |regions: &[SizedRegion], each: u64, per_write_s: f64| -> f64 {
        let one = |sized: &SizedRegion| {
            each as f64 * (per_write_s / sized.write_request_bytes as f64 + costs.per_byte_s)
        };
        regions.iter().map(one).sum()
    };
    if time(planned, whole, costs.flushed_write_s) <= seconds {
        return Making { regions: planned.to_vec(), flush_each: true, too_slow: 0 };
    }
    let mut sizes: Vec<u64> = planned.iter().map(|sized| sized.write_request_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for (too_slow, smallest) in sizes.iter().enumerate() {
        let left: Vec<SizedRegion> =
            planned.iter().filter(|sized| sized.write_request_bytes >= *smallest).copied().collect();
        let affordable = seconds / time(&left, whole, costs.write_s);
        let each = ((whole as f64 * affordable.min(1.0)) as u64) / READ_BYTES * READ_BYTES;
        if each >= REGION_BYTES_MIN {
            let shortened = |sized: &SizedRegion| SizedRegion {
                region: Region { length_bytes: each, ..sized.region },
                ..*sized
            };
            return Making { regions: left.iter().map(shortened).collect(), flush_each: false, too_slow };
        }
    }
    Making { regions: Vec::new(), flush_each: false, too_slow: sizes.len() }
}

/// Writes the part of every region between two offsets into it; returns up to where all are complete but for
/// less than a write.
fn write_all(
    bench: &mut Bench<'_>,
    making: &Making,
    from_bytes: u64,
    until_bytes: u64,
    deadline_s: f64,
) -> Result<u64, Error> {
    let mut complete_bytes = until_bytes;
    for sized in &making.regions {
        bench.step("request-size: regions")?;
        let part = SizedRegion { region: Region { length_bytes: until_bytes, ..sized.region }, ..*sized };
        let written = write_part(bench, part, from_bytes, making.flush_each, deadline_s)?;
        // The edges that a write size leaves unwritten are not read.
        let missing = (until_bytes - from_bytes - written.min(until_bytes - from_bytes))
            .saturating_sub(2 * sized.write_request_bytes);
        complete_bytes = complete_bytes.min((until_bytes - missing) / READ_BYTES * READ_BYTES);
        bench.flush()?;
    }
    Ok(complete_bytes)
}

/// Writes a region from the write that an offset into it falls into to its end, one write at a time; returns
/// the bytes written by the deadline.
fn write_part(
    bench: &mut Bench<'_>,
    sized: SizedRegion,
    from_bytes: u64,
    flush: bool,
    deadline_s: f64,
) -> Result<u64, Error> {
    let SizedRegion { write_request_bytes, region } = sized;
    // Drives count stripes from their beginning.
    let first_bytes = region.offset_bytes.next_multiple_of(write_request_bytes);
    let end_bytes = region.offset_bytes + region.length_bytes;
    let count = end_bytes.saturating_sub(first_bytes) / write_request_bytes;
    let done = (region.offset_bytes + from_bytes).saturating_sub(first_bytes) / write_request_bytes;
    let offsets: Vec<u64> = (done..count).map(|index| first_bytes + index * write_request_bytes).collect();
    if offsets.is_empty() {
        return Ok(0);
    }
    let mut load = writes_in_order(region, write_request_bytes, offsets, 1);
    load.sync = if flush { Sync::WriteThenFdatasync } else { Sync::None };
    load.stop.after_s = Some((deadline_s - bench.elapsed_s()).max(0.01));
    Ok(bench.load(bench.target.device, load)?.bytes_written_total)
}

/// Writes `bytes` of the main region again with large requests: a cache that keeps the last writes keeps
/// these, and no part of a region.
fn write_tail(bench: &mut Bench<'_>, plan: &Plan, bytes: u64, deadline_s: f64) -> Result<(), Error> {
    let main = plan.site.main;
    let requests = bytes.min(main.length_bytes) / REQUEST_BYTES;
    if requests == 0 {
        return Ok(());
    }
    let offsets = (0..requests).map(|index| main.offset_bytes + index * REQUEST_BYTES).collect();
    let mut load = writes_in_order(main, REQUEST_BYTES, offsets, CONCURRENCY);
    load.stop.after_s = Some((deadline_s - bench.elapsed_s()).max(0.01));
    bench.load(bench.target.device, load)?;
    bench.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    const COSTS: Costs = Costs { write_s: 50e-6, flushed_write_s: 5e-3, per_byte_s: 1e-9 };

    /// Room for two regions of 16 MiB of each of 24 sizes.
    fn site() -> crate::target::Site {
        let mut site = testing::site();
        site.request_size.length_bytes = 768 << 20;
        site
    }

    #[test]
    fn flushes_stand_behind_every_write_or_behind_none() {
        let planned = regions(&site(), 1);
        // 768 MiB in 48 regions are some 74,000 writes: 370 s with flushes, 4.6 s without.
        let patient = choose(&planned, COSTS, 400.0);
        assert!(patient.flush_each && patient.too_slow == 0);
        assert_eq!(patient.regions, planned);
        let hasty = choose(&planned, COSTS, 5.2);
        assert!(!hasty.flush_each && hasty.too_slow == 0);
        assert_eq!(hasty.regions, planned);
    }

    #[test]
    fn short_of_time_regions_shrink_and_then_small_writes_go() {
        let planned = regions(&site(), 1);
        let shrunk = choose(&planned, COSTS, 2.0);
        assert_eq!((shrunk.regions.len(), shrunk.too_slow), (48, 0));
        assert!(shrunk.regions[0].region.length_bytes < planned[0].region.length_bytes);
        let fewer = choose(&planned, COSTS, 0.8);
        assert!(fewer.too_slow > 0 && !fewer.regions.is_empty(), "{fewer:?}");
        assert!(fewer.regions.iter().all(|sized| sized.region.length_bytes >= REGION_BYTES_MIN));
        assert!(choose(&planned, COSTS, 0.001).regions.is_empty());
    }
}
