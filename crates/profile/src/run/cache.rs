//! The write cache: found by writing until the rate falls, then kept full or empty as a trial needs it.
//!
//! 1. [`find`] empties the cache, writes at random piece by piece, and ends when the rate has fallen and
//!    stayed low for as many bytes as it was high, or at its limits.
//! 2. Trials of the burst regime begin when it is empty and write less than the cache holds.
//! 3. Trials of the sustained regime follow one another after [`fill`], without a flush between them
//!    (`sustained`).

use flashgrain_model::{Access, Estimate, Workload};

use super::bench::Bench;
use crate::Error;
use crate::load::{Load, Pattern, Stop, Sync};
use crate::schema::{LearnedValue, WriteCache};
use crate::stats::mix_seed;
use crate::target::Site;
use crate::trial::bytes_text;

/// Writes of the search.
const REQUEST_BYTES: u64 = 128 << 10;
const STREAMS: f64 = 16.0;

/// The first piece; later ones are this part of the bytes written so far, so that the fall is placed as
/// sharply at any size.
const PIECE_BYTES_MIN: u64 = 4 << 20;
const PIECE_DIVISOR: u64 = 12;

/// A rate that falls to less than this share has left the cache.
const FALLEN_FRACTION: f64 = 0.75;

/// Part of the cache that a piece of a later fill has.
const FULL_PIECE_DIVISOR: u64 = 8;

/// Writes no faster than this multiple of the medium's rate do not fill the cache.
const SLOW_RATIO: f64 = 1.1;

/// Times its size that is written into a cache whose rate neither falls nor is slow.
const FILLS_MAX: u64 = 2;

/// Pieces of each rate that make a fall.
const PIECES_MIN: usize = 3;

/// Bytes over which the sustained rate must be measured, as a multiple of the burst.
const SUSTAINED_BYTES_RATIO: u64 = 2;

/// Known properties of the cache while trials run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cache {
    /// The workload that found the cache.
    pub workload: Workload,
    /// Bytes that fill it from empty while it passes them on.
    pub burst_bytes: u64,
    pub capacity_bytes: u64,
    pub sustained_bytes_per_second: f64,
}

/// One piece of the search.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: u64,
    seconds: f64,
}

/// The point at which the rate fell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fall {
    burst_bytes: u64,
    /// Uncertainty of `burst_bytes`: half of the piece in which the rate fell.
    doubt_bytes: u64,
    before: f64,
    after: f64,
}

/// Writes until the rate falls, `limit_bytes` or `limit_s`.
pub(super) fn find(
    bench: &mut Bench<'_>,
    site: &Site,
    (limit_bytes, limit_s): (u64, f64),
) -> Result<WriteCache, Error> {
    let request_bytes = REQUEST_BYTES.next_multiple_of(site.align_bytes).min(site.main.length_bytes / 8);
    let request_bytes = (request_bytes / site.align_bytes).max(1) * site.align_bytes;
    let workload = Workload::random(Access::Write, request_bytes as f64, STREAMS);
    let began_s = bench.elapsed_s();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut written = 0;
    bench.flush()?;
    loop {
        bench.step("looking for the write cache")?;
        let piece = PIECE_BYTES_MIN.max(written / PIECE_DIVISOR);
        let remaining_s = limit_s - (bench.elapsed_s() - began_s);
        if written + piece > limit_bytes || remaining_s <= 0.0 {
            break;
        }
        let seed = mix_seed(bench.config.seed, 0xca00 + pieces.len() as u64);
        let measured = bench.load(bench.target.device, write(site, workload, piece, remaining_s, seed))?;
        written += measured.bytes_written_total;
        pieces.push(Piece { bytes: measured.bytes_written, seconds: measured.elapsed.seconds() });
        let is_enough = |fall: Fall| written >= fall.burst_bytes * (1 + SUSTAINED_BYTES_RATIO);
        if fall(&pieces).is_some_and(is_enough) {
            break;
        }
    }
    bench.flush()?;
    Ok(concluded(workload, written, &pieces))
}

/// Writes `bytes` into the cache, for `seconds` at most; returns the bytes written.
pub(super) fn fill(
    bench: &mut Bench<'_>,
    site: &Site,
    workload: Workload,
    bytes: u64,
    seconds: f64,
) -> Result<u64, Error> {
    let seed = mix_seed(bench.config.seed, 0xf111 ^ u64::from(bench.next_order()));
    let load = write(site, workload, bytes, seconds, seed);
    Ok(bench.load(bench.target.device, load)?.bytes_written_total)
}

/// Fills the cache with writes of one kind until `until_s`, and measures the rate at which the drive passes
/// them on, bytes per second; `None` if the time did not suffice.
pub(super) fn fill_with(
    bench: &mut Bench<'_>,
    site: &Site,
    workload: Workload,
    cache: Cache,
    (until_s, bytes_max): (f64, u64),
) -> Result<Option<f64>, Error> {
    let written_before = bench.written_bytes;
    let in_flight = (workload.request_bytes * workload.concurrency) as u64;
    let bytes = cache.piece_bytes().max(in_flight);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut is_full = false;
    loop {
        if bench.written_bytes - written_before + bytes > bytes_max {
            return Ok(None);
        }
        let Some(piece) = write_piece(bench, site, workload, bytes, until_s)? else { return Ok(None) };
        if is_full {
            return Ok(rate(&[piece]));
        }
        pieces.push(piece);
        is_full = fills(&pieces, cache);
    }
}

/// Fills a cache that has drained a little: until a piece of it comes no faster than `rate_max`, bytes per
/// second, or the time or the bytes end.
pub(super) fn fill_again(
    bench: &mut Bench<'_>,
    site: &Site,
    workload: Workload,
    (piece_bytes, rate_max): (u64, f64),
    (until_s, bytes_max): (f64, u64),
) -> Result<(), Error> {
    let written_before = bench.written_bytes;
    while bench.written_bytes - written_before + piece_bytes <= bytes_max {
        let Some(piece) = write_piece(bench, site, workload, piece_bytes, until_s)? else { break };
        if rate(&[piece]).is_none_or(|rate| rate <= rate_max) {
            break;
        }
    }
    Ok(())
}

/// Writes `bytes`; `None` if there is no time for that.
fn write_piece(
    bench: &mut Bench<'_>,
    site: &Site,
    workload: Workload,
    bytes: u64,
    until_s: f64,
) -> Result<Option<Piece>, Error> {
    let remaining_s = until_s - bench.elapsed_s();
    if remaining_s <= 0.0 {
        return Ok(None);
    }
    let seed = mix_seed(bench.config.seed, 0xf111 ^ u64::from(bench.next_order()));
    let measured = bench.load(bench.target.device, write(site, workload, bytes, remaining_s, seed))?;
    let piece = Piece { bytes: measured.bytes_written, seconds: measured.elapsed.seconds() };
    Ok((piece.bytes > 0 && piece.seconds > 0.0).then_some(piece))
}

/// Whether these pieces have filled the cache and replaced its content, whatever it held before.
fn fills(pieces: &[Piece], cache: Cache) -> bool {
    let written: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let rates = pieces.iter().filter_map(|piece| rate(std::slice::from_ref(piece)));
    let fastest = rates.fold(0.0, f64::max);
    let last = pieces.len().saturating_sub(2);
    let Some(now) = pieces.get(last..).and_then(rate) else { return false };
    if written < cache.capacity_bytes {
        return false;
    }
    let passed_on = cache.sustained_bytes_per_second;
    let has_fallen = now < FALLEN_FRACTION * fastest;
    // Writes no faster than the drive passes on never fill a cache, and need not.
    let is_slow = fastest <= SLOW_RATIO * passed_on;
    let needed = cache.capacity_bytes as f64 * fastest / (fastest - passed_on);
    has_fallen || is_slow || written as f64 >= needed.min((FILLS_MAX * cache.capacity_bytes) as f64)
}

fn rate(pieces: &[Piece]) -> Option<f64> {
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let seconds: f64 = pieces.iter().map(|piece| piece.seconds).sum();
    (seconds > 0.0 && bytes > 0).then(|| bytes as f64 / seconds)
}

impl Cache {
    /// Bytes of the smallest piece that the medium's rate is measured with.
    pub(super) fn piece_bytes(self) -> u64 {
        self.capacity_bytes / FULL_PIECE_DIVISOR
    }

    /// The cache of a profile, if one was found.
    pub(super) fn of(found: &WriteCache) -> Option<Self> {
        Some(Self {
            workload: found.workload,
            burst_bytes: found.burst_bytes.estimate.value()? as u64,
            capacity_bytes: found.capacity_bytes.estimate.value()? as u64,
            sustained_bytes_per_second: found.sustained_bytes_per_second.estimate.value()?,
        })
    }

    /// Time that a cache which a flush does not empty takes to pass on its capacity, or `written_bytes` if
    /// these are less.
    pub(super) fn drain_s(self, written_bytes: u64) -> f64 {
        written_bytes.min(self.capacity_bytes) as f64 / self.sustained_bytes_per_second
    }

    /// Bytes of `written_bytes` that are left in the cache after a flush of `flush_s` seconds: a cache that
    /// keeps its data without power does not empty itself for a flush, but only goes on passing data on.
    pub(super) fn remaining_bytes(self, written_bytes: u64, flush_s: f64) -> u64 {
        let remaining_s = (self.drain_s(written_bytes) - flush_s).max(0.0);
        (remaining_s * self.sustained_bytes_per_second) as u64
    }
}

fn write(site: &Site, workload: Workload, bytes: u64, seconds: f64, seed: u64) -> Load {
    Load {
        workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region: site.main,
        workers: 1,
        sync: Sync::None,
        rate_per_s: None,
        polled: false,
        warmup_share: 0.0,
        stop: Stop { after_s: Some(seconds.max(0.001)), after_bytes_written: Some(bytes), ..Stop::default() },
        seed,
    }
}

/// The split of the pieces into two rates that leaves the least squared deviation of their logarithms, if the
/// second is clearly lower than the first.
fn fall(pieces: &[Piece]) -> Option<Fall> {
    let deviation = |pieces: &[Piece]| {
        let logs: Vec<f64> =
            pieces.iter().filter_map(|piece| rate(std::slice::from_ref(piece))).map(f64::ln).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>()
    };
    let last = pieces.len().checked_sub(PIECES_MIN)?;
    let splits = (1..=last).filter_map(|at| pieces.split_at_checked(at));
    let (before, after) = splits.min_by(|one, other| {
        // The piece that filled the cache has a rate between both and counts as none.
        let all = |(before, after): &(&[Piece], &[Piece])| {
            deviation(before) + after.get(1..).map_or(0.0, deviation)
        };
        all(one).total_cmp(&all(other))
    })?;
    let (first, rest) = after.split_first()?;
    let (fast, slow) = (rate(before)?, rate(rest)?);
    // A rate that rises again or wanders has no two levels: each piece after the fall must be slower than any
    // before it.
    let slowest = before.iter().filter_map(|piece| rate(std::slice::from_ref(piece))).reduce(f64::min)?;
    if slow >= FALLEN_FRACTION * fast || slow >= slowest {
        return None;
    }
    let part = match rate(std::slice::from_ref(first)) {
        // In its time t it took `part` of its bytes at the first rate, the others at the second.
        Some(own) => ((slow.recip() - own.recip()) / (slow.recip() - fast.recip())).clamp(0.0, 1.0),
        None => 0.0,
    };
    let whole: u64 = before.iter().map(|piece| piece.bytes).sum();
    let burst_bytes = whole + (first.bytes as f64 * part) as u64;
    Some(Fall { burst_bytes, doubt_bytes: first.bytes / 2, before: fast, after: slow })
}

fn concluded(workload: Workload, written_bytes: u64, pieces: &[Piece]) -> WriteCache {
    let (bytes, seconds) = pieces
        .iter()
        .fold((0.0, 0.0), |(bytes, seconds), piece| (bytes + piece.bytes as f64, seconds + piece.seconds));
    let Some(fall) = fall(pieces) else {
        let why = format!("the rate did not fall while {} were written", bytes_text(written_bytes));
        let none = LearnedValue {
            estimate: Estimate::Undetermined { why: why.clone() },
            evidence: why,
            confidence: 0.0,
        };
        return WriteCache {
            workload,
            written_bytes,
            burst_bytes: none.clone(),
            capacity_bytes: none.clone(),
            burst_bytes_per_second: if seconds > 0.0 { bytes / seconds } else { 0.0 },
            sustained_bytes_per_second: none,
        };
    };
    let evidence = format!(
        "random writes of {} fell from {:.0} to {:.0} MB/s after {}",
        bytes_text(workload.request_bytes as u64),
        fall.before / 1e6,
        fall.after / 1e6,
        bytes_text(fall.burst_bytes)
    );
    let value = |value: f64, doubt: f64| LearnedValue {
        estimate: Estimate::Determined { value, low: (value - doubt).max(0.0), high: value + doubt },
        evidence: evidence.clone(),
        confidence: 1.0,
    };
    let kept_share = 1.0 - fall.after / fall.before;
    let (burst, doubt) = (fall.burst_bytes as f64, fall.doubt_bytes as f64);
    WriteCache {
        workload,
        written_bytes,
        burst_bytes: value(burst, doubt),
        capacity_bytes: value(burst * kept_share, doubt * kept_share),
        burst_bytes_per_second: fall.before,
        sustained_bytes_per_second: value(fall.after, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of 4 MiB of a drive that takes `cache` bytes at 500 MB/s and the rest at 100.
    fn pieces(cache: f64, count: usize) -> Vec<Piece> {
        let piece = PIECE_BYTES_MIN as f64;
        let each = |index: usize| {
            let fast = (cache - index as f64 * piece).clamp(0.0, piece);
            Piece { bytes: PIECE_BYTES_MIN, seconds: fast / 5e8 + (piece - fast) / 1e8 }
        };
        (0..count).map(each).collect()
    }

    #[test]
    fn the_fall_is_placed_within_a_piece() {
        for cache in [9e6, 20e6, 33e6] {
            let fall = fall(&pieces(cache, 24)).unwrap();
            assert!((fall.burst_bytes as f64 / cache - 1.0).abs() < 0.02, "{fall:?}");
            assert!((fall.after / 1e8 - 1.0).abs() < 0.01 && (fall.before / 5e8 - 1.0).abs() < 0.01);
        }
    }

    /// Pieces of an eighth of a cache of 32 MiB, which takes 500 MB/s and passes 100 on, from a level.
    #[test]
    fn a_cache_is_full_when_its_content_is_replaced_and_the_rate_has_fallen() {
        let capacity_bytes: u64 = 32 << 20;
        let workload = Workload::random(Access::Write, 4096.0, 32.0);
        let cache =
            Cache { workload, burst_bytes: 40 << 20, capacity_bytes, sustained_bytes_per_second: 1e8 };
        let pieces_until_full = |level: f64, feed: f64| {
            let bytes = cache.piece_bytes();
            let mut level = level * capacity_bytes as f64;
            let mut pieces = Vec::new();
            while !fills(&pieces, cache) && pieces.len() < 100 {
                // At the first rate as long as there is room.
                let room = (capacity_bytes as f64 - level) / (1.0 - 1e8 / feed).max(1e-9);
                let fast = (bytes as f64).min(room.max(0.0));
                let seconds = fast / feed + (bytes as f64 - fast) / feed.min(1e8);
                level = (level + bytes as f64 - 1e8 * seconds).clamp(0.0, capacity_bytes as f64);
                pieces.push(Piece { bytes, seconds });
            }
            (pieces.len(), level / capacity_bytes as f64)
        };
        for level in [0.0, 0.4, 0.9] {
            let (pieces, full) = pieces_until_full(level, 5e8);
            assert!(pieces <= 12 && full > 0.99, "{level}: {pieces} pieces, {full}");
        }
        assert_eq!(pieces_until_full(1.0, 5e8).0, 8, "its content is replaced");
        assert_eq!(pieces_until_full(0.0, 0.8e8), (8, 0.0), "slow writes need no full cache");
    }

    #[test]
    fn a_rate_that_does_not_fall_shows_no_cache() {
        assert_eq!(fall(&pieces(1e12, 24)), None);
        assert_eq!(fall(&pieces(0.0, 24)), None);
        // Up and down is no fall.
        let mut wandering = pieces(1e12, 24);
        wandering.iter_mut().step_by(3).for_each(|piece| piece.seconds *= 3.0);
        assert_eq!(fall(&wandering), None);
        let found = concluded(Workload::random(Access::Write, 131_072.0, 16.0), 1 << 20, &wandering);
        assert!(Cache::of(&found).is_none());
    }
}
