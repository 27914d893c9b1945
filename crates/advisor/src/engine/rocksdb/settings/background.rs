//! Flushes and compactions.

use flashgrain_cost::ranking::Requests;
use flashgrain_cost::{Access, End};
use flashgrain_settings::Bytes;

use super::super::super::tuned::{Configuration as _, Tuned};
use super::super::super::{Setting, measured_text};
use super::super::choice::jobs_max;
use super::super::configuration::{DEFAULT, MEBI, RocksDb};
use super::chosen::{Chosen, changed, chosen, transfer_number};
use crate::drive::Drive;

/// Sizes from which requests have 90 % of the bandwidth: setup is a ninth of the transfer.
const NINE_TENTHS: f64 = 9.0;

type Rocks<'a> = Tuned<'a, RocksDb>;

fn unknown_jobs() -> String {
    "the profile has no costs of writes".into()
}

pub(super) fn jobs(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.jobs = default.jobs);
    let setting = Chosen {
        name: "max_background_jobs",
        default: "2",
        value: changed(tuned.advised.jobs, DEFAULT.jobs),
        because: "the drive moves more bytes with several compactions at a time",
        number: transfer_number(tuned.drive, Access::Write),
        cost: "as many processor cores while compactions run".into(),
    };
    let setting = chosen(setting, gain);
    match jobs_max(tuned.drive) {
        Some(_) => setting,
        None => Setting { reason: unknown_jobs(), ..setting },
    }
}

pub(super) fn subcompactions(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.subcompactions = default.subcompactions);
    let setting = Chosen {
        name: "max_subcompactions",
        default: "1",
        value: changed(tuned.advised.subcompactions, DEFAULT.subcompactions),
        because: "a compaction of level 0, which is alone in its level, is split among threads",
        number: transfer_number(tuned.drive, Access::Write),
        cost: "as many processor cores while level 0 is compacted".into(),
    };
    let setting = chosen(setting, gain);
    match jobs_max(tuned.drive) {
        Some(_) => setting,
        None => Setting { reason: unknown_jobs(), ..setting },
    }
}

/// The size of one stream's requests that reach nine tenths of the bandwidth.
fn good_request_bytes(drive: &Drive, access: Access, min: f64, max: f64) -> f64 {
    let half = drive.costs().half_bandwidth_bytes(access, 1.0);
    ((NINE_TENTHS * half).max(1.0).log2().round().exp2()).clamp(min, max)
}

pub(super) fn bytes_per_sync(tuned: &Rocks<'_>) -> Setting {
    let is_known = tuned.drive.is_measured(Access::Write) && tuned.workload.operations.writes() > 0.0;
    let bytes = good_request_bytes(tuned.drive, Access::Write, MEBI / 2.0, 4.0 * MEBI);
    Setting {
        name: "bytes_per_sync",
        value: is_known.then(|| format!("{bytes:.0}")),
        default: "0",
        reason: match is_known {
            true => "files are written as they grow, in requests of 90 % of the bandwidth, so that no sync at their end holds up the log".into(),
            false => "nothing is written, or the profile has no costs of writes".into(),
        },
        number: measured_text(tuned.drive, Access::Write, format!(
            "writes of one stream have half of the bandwidth with {}",
            Bytes(tuned.drive.costs().half_bandwidth_bytes(Access::Write, 1.0) as u64)
        )),
        gain: None,
        cost: String::new(),
    }
}

pub(super) fn read_ahead(tuned: &Rocks<'_>) -> Setting {
    let is_known = tuned.drive.is_measured(Access::Read) && tuned.workload.operations.writes() > 0.0;
    let bytes = good_request_bytes(tuned.drive, Access::Read, MEBI / 4.0, 8.0 * MEBI);
    let default = tuned.default.version.read_ahead_bytes();
    let value = Some(format!("{bytes:.0}")).filter(|value| is_known && value != default);
    let cost = value.as_ref().map(|_| format!("{} of memory per compacted file", Bytes(bytes as u64)));
    Setting {
        name: "compaction_readahead_size",
        value,
        default,
        reason: match is_known {
            true if default == "0" => {
                "compactions read in requests of 90 % of the bandwidth instead of the kernel's 128 KiB".into()
            }
            true => "compactions read in requests of 90 % of the bandwidth".into(),
            false => "nothing is compacted, or the profile has no costs of reads".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Read,
            format!(
                "reads of one stream have half of the bandwidth with {}",
                Bytes(tuned.drive.costs().half_bandwidth_bytes(Access::Read, 1.0) as u64)
            ),
        ),
        gain: None,
        cost: cost.unwrap_or_default(),
    }
}

/// The drive's write rate over the write amplification below level 0: the rate of delayed writers.
pub(super) fn delayed_rate(tuned: &Rocks<'_>) -> Setting {
    let writes = tuned.workload.operations.writes();
    let amplification = tuned.advised.asked(tuned.workload).write_amplification();
    let stream = Requests {
        access: Access::Write,
        bytes: MEBI,
        random: true,
        concurrency: tuned.advised.tree(tuned.workload).compaction_threads,
    };
    let drive_rate = MEBI / tuned.drive.costs().seconds(&stream, End::Value);
    let rate = amplification.map(|amplification| drive_rate / amplification / 2.0);
    let value = rate.filter(|rate| tuned.drive.is_measured(Access::Write) && *rate > 16.0 * MEBI);
    Setting {
        name: "delayed_write_rate",
        value: value.map(|rate| format!("{:.0}", (rate / MEBI).floor() * MEBI)),
        default: "0 (16 MiB/s)",
        reason: match value {
            Some(_) => "writers that level 0 delays go half as fast as compactions can follow, instead of nearly stopping (3D XPoint paper, two stages)".into(),
            None if writes == 0.0 => "nothing is written".into(),
            None => "the drive is not known to follow faster than the default".into(),
        },
        number: measured_text(tuned.drive, Access::Write, format!(
            "the drive writes {:.0} MB/s, at a predicted write amplification of {}",
            drive_rate / 1e6,
            amplification.map_or("none".into(), |amplification| format!("{amplification:.1}"))
        )),
        gain: None,
        cost: if value.is_some() { "level 0 grows longer in bursts, and reads with it".into() } else { String::new() },
    }
}
