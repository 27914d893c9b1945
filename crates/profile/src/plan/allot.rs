//! Dividing an experiment's time and bytes among its trials.

use crate::experiment::Trials;
use crate::schema::Regime;
use crate::trial::{Trial, Work, bytes_text};

/// Shortest time slice worth its overhead.
const SLICE_S_MIN: f64 = 0.02;

/// Longest time slice of weight 1; more repeats tell more than longer ones.
const SLICE_S_MAX: f64 = 0.25;

/// The same for trials that end by their number of requests. Fast drives end them long before; on a disk, a
/// slice of the length above holds a dozen reads, and the last of them is likely to be a long one.
const COUNTED_SLICE_S_MAX: f64 = 2.0;

/// Rough time to open a channel and to settle after a write.
const OVERHEAD_S: f64 = 0.004;

/// Fewest bytes that a write trial is worth.
const WRITE_BYTES_MIN: u64 = 64 << 10;

/// Requests of each stream in a mixed trial: in fewer, those that happen to be in flight together pass for a
/// rate.
const MIXED_REQUESTS_MIN: u64 = 4;

/// Most bytes that a write trial is given; drives that write more in a slice need no more to be measured.
const WRITE_BYTES_MAX: u64 = 256 << 20;

/// No trial may need more than this share of an experiment's bytes or time in one repeat.
const TRIAL_FRACTION_MAX: f64 = 0.08;

/// A write trial that needs more than this share of an experiment's bytes for one request per stream is run
/// once. Repeats of a few such trials would leave the many small ones a fraction of a millisecond each.
const ONCE_FRACTION: f64 = 0.015;

/// Limits of an experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub seconds: f64,
    pub write_bytes: u64,
    /// Bandwidth of the drive: requests in flight take their time to come back.
    pub bytes_per_second: f64,
    /// Repeats that must fit.
    pub rounds: u32,
    /// Repeats of writes whose bytes must fit.
    pub write_rounds: u32,
    /// Bytes that a repeat of sustained writes takes at least; of mixed ones, the share that is written.
    pub sustained_bytes_min: u64,
    /// Each stream moves this many bytes instead of running for a time slice.
    pub full_bytes_per_stream: Option<u64>,
}

/// A trial with its limits for each repeat.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTrial {
    pub trial: Trial,
    /// Ends a repeat.
    pub slice_s: f64,
    /// Ends a repeat of a full-size run.
    pub bytes: Option<u64>,
    /// Ends a repeat; never exceeded.
    pub write_bytes: u64,
    /// Expected time of a repeat.
    pub expected_s: f64,
    /// Repeats that it may have.
    pub repeats_max: u32,
}

/// Trials that fit, and in words those that do not.
#[derive(Debug, Default)]
pub(crate) struct Allotted {
    pub trials: Vec<PlannedTrial>,
    pub left_out: Vec<String>,
}

/// Needs of a trial for one repeat.
#[derive(Clone, Copy, Debug)]
struct Need {
    seconds: f64,
    write_bytes: u64,
}

fn need(trial: &Trial, limits: &Limits) -> Need {
    let in_flight = trial.in_flight_bytes();
    let moved = match (limits.full_bytes_per_stream, trial.workload()) {
        (Some(each), Some(workload)) => each.saturating_mul(workload.concurrency as u64).max(in_flight),
        _ => in_flight,
    };
    let write_share = trial.write_share();
    let moved_min = if write_share < 1.0 { in_flight * MIXED_REQUESTS_MIN } else { in_flight };
    let written = |bytes: u64| (bytes as f64 * write_share).ceil() as u64;
    let write_bytes = match write_share > 0.0 {
        true => {
            let is_sustained = trial.regime == Some(Regime::Sustained);
            let least = if is_sustained { written(limits.sustained_bytes_min) } else { 0 };
            written(moved.max(moved_min)).max(least).max(WRITE_BYTES_MIN)
        }
        false => 0,
    };
    let slice = SLICE_S_MIN * trial.weight;
    Need { seconds: (moved as f64 / limits.bytes_per_second).max(slice) + OVERHEAD_S, write_bytes }
}

/// Chooses the trials that fit into `limits`, the coarsest grid first, and gives each its slice of time and
/// bytes.
pub(crate) fn allot(trials: Trials, limits: Limits) -> Allotted {
    let mut chosen = Allotted { trials: Vec::new(), left_out: trials.left_out };
    let mut candidates = trials.trials;
    candidates.sort_by_key(|trial| (trial.rank, trial.in_flight_bytes()));
    let (mut kept, mut out_of_time, mut out_of_bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut sum = Need { seconds: 0.0, write_bytes: 0 };
    let count = candidates.len();
    let full = limits.full_bytes_per_stream.is_some();
    let largest = |whole: f64| if count == 1 || full { whole } else { whole * TRIAL_FRACTION_MAX };
    for trial in candidates {
        let need = need(&trial, &limits);
        // One repeat of everything may take half of the bytes, so that there are more repeats of most trials.
        let bytes = sum.write_bytes.saturating_add(need.write_bytes);
        let too_many_bytes = need.write_bytes as f64 > largest(limits.write_bytes as f64)
            || bytes > if full { limits.write_bytes } else { limits.write_bytes / 2 };
        let too_slow = sum.seconds + need.seconds > limits.seconds
            || (!full
                && need.seconds
                    > (SLICE_S_MIN + OVERHEAD_S).max(largest(limits.seconds)) * trial.weight.max(1.0));
        if need.write_bytes > 0 && too_many_bytes {
            out_of_bytes.push(trial);
        } else if too_slow {
            out_of_time.push(trial);
        } else {
            sum = Need { seconds: sum.seconds + need.seconds, write_bytes: bytes };
            kept.push((trial, need));
        }
    }
    chosen.left_out.extend(left_out_text(&out_of_time, count, "the time"));
    chosen.left_out.extend(left_out_text(&out_of_bytes, count, "the bytes that may be written"));
    chosen.trials = with_slices(kept, &limits);
    chosen
}

fn left_out_text(trials: &[Trial], of: usize, lacking: &str) -> Option<String> {
    let largest = trials.iter().map(Trial::in_flight_bytes).max()?;
    let first = trials.first()?;
    Some(match (trials.len(), of) {
        (1, _) => format!("{}: {lacking} does not suffice", first.describe())
            .replace("bytes that may be written does", "bytes that may be written do"),
        (some, of) => format!(
            "{}: {some} of {of} trials, for want of {lacking} (up to {} in flight)",
            first.experiment,
            bytes_text(largest)
        ),
    })
}

fn longest_slice_s(trial: &Trial) -> f64 {
    match &trial.work {
        Work::Load(load) if load.max_requests.is_some() => COUNTED_SLICE_S_MAX,
        _ => SLICE_S_MAX,
    }
}

/// Raises all slices alike until the time for the wanted rounds is used, and all byte limits likewise.
fn with_slices(kept: Vec<(Trial, Need)>, limits: &Limits) -> Vec<PlannedTrial> {
    let rounds = f64::from(limits.rounds);
    let per_round_s = limits.seconds / rounds;
    let slice_of = |(trial, need): &(Trial, Need), level: f64| {
        let level = level.min(longest_slice_s(trial));
        (level * trial.weight).max(need.seconds - OVERHEAD_S).max(SLICE_S_MIN)
    };
    let slices = |level: f64| kept.iter().map(|one| slice_of(one, level) + OVERHEAD_S).sum::<f64>();
    let slice_level = largest_level(COUNTED_SLICE_S_MAX, |level| slices(level) <= per_round_s);

    let once_bytes = limits.write_bytes as f64 * ONCE_FRACTION;
    let once = |need: &Need| {
        limits.full_bytes_per_stream.is_none() && kept.len() > 1 && need.write_bytes as f64 > once_bytes
    };
    let bytes_of = |need: &Need, level: f64| {
        if need.write_bytes == 0 { 0.0 } else { level.max(need.write_bytes as f64) }
    };
    let write_rounds = f64::from(limits.write_rounds);
    let all_repeats =
        |need: &Need, level: f64| bytes_of(need, level) * if once(need) { 1.0 } else { write_rounds };
    let bytes = |level: f64| kept.iter().map(|(_, need)| all_repeats(need, level)).sum::<f64>();
    let byte_level = largest_level(WRITE_BYTES_MAX as f64, |level| bytes(level) <= limits.write_bytes as f64);

    let planned: Vec<PlannedTrial> = kept
        .iter()
        .map(|one| {
            let slice_s = slice_of(one, slice_level);
            let (trial, need) = one;
            let streams = trial.workload().map_or(1, |workload| workload.concurrency as u64);
            let full = limits.full_bytes_per_stream.filter(|_| matches!(trial.work, Work::Load(_)));
            PlannedTrial {
                trial: trial.clone(),
                // A full-size repeat ends by its bytes; four times the expected time is a safety net.
                slice_s: if full.is_some() { need.seconds * 4.0 } else { slice_s },
                bytes: full.map(|each| each.saturating_mul(streams).max(trial.in_flight_bytes())),
                write_bytes: bytes_of(need, byte_level) as u64,
                expected_s: slice_s + OVERHEAD_S,
                repeats_max: if once(need) { 1 } else { u32::MAX },
            }
        })
        .collect();
    planned
}

/// The largest value up to `most` for which `fits`, which holds for small values if for any, by bisection;
/// zero if it holds for none.
fn largest_level(most: f64, fits: impl Fn(f64) -> bool) -> f64 {
    if fits(most) {
        return most;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
