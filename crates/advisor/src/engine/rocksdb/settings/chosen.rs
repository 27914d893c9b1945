//! Settings that the model chose, and those that follow from one.

use flashgrain_cost::ranking::Requests;
use flashgrain_cost::{Access, End, Interval};

use super::super::super::tuned::Tuned;
use super::super::super::{Setting, measured_text};
use super::super::configuration::{MEBI, RocksDb};
use crate::drive::Drive;

/// A setting that the model chose.
pub(super) struct Chosen<'a> {
    pub name: &'static str,
    pub default: &'static str,
    /// `None`: no other value gains enough.
    pub value: Option<String>,
    pub because: &'a str,
    pub number: String,
    pub cost: String,
}

pub(super) fn chosen(chosen: Chosen<'_>, gain: Interval) -> Setting {
    let Chosen { name, default, value, because, number, cost } = chosen;
    let is_changed = value.is_some();
    Setting {
        name,
        default,
        reason: match is_changed {
            true => because.to_owned(),
            false => "no other value is predicted to gain 2 % or more without a risk".into(),
        },
        number,
        gain: is_changed.then_some(gain),
        cost: if is_changed { cost } else { String::new() },
        value,
    }
}

pub(super) fn changed(value: f64, default: f64) -> Option<String> {
    (value != default).then(|| format!("{value:.0}"))
}

pub(super) fn transfer_number(drive: &Drive, access: Access) -> String {
    let rate = |concurrency| {
        let requests = Requests { access, bytes: MEBI, random: true, concurrency };
        MEBI / drive.costs().seconds(&requests, End::Value) / 1e6
    };
    let kind = if access == Access::Read { "read" } else { "write" };
    let text = format!("1 MiB {kind}s: {:.0} MB/s by one stream, {:.0} MB/s by 4", rate(1.0), rate(4.0));
    measured_text(drive, access, text)
}

pub(super) fn random_read_number(tuned: &Tuned<'_, RocksDb>) -> String {
    let clients = f64::from(tuned.workload.clients);
    let read = |bytes| {
        let requests = Requests { access: Access::Read, bytes, random: true, concurrency: clients };
        tuned.drive.costs().seconds(&requests, End::Value) * 1e6
    };
    measured_text(
        tuned.drive,
        Access::Read,
        format!(
            "a random read takes {:.1} µs of the drive's time with 4 KiB, {:.1} µs with 16 KiB, at {clients} in flight",
            read(4096.0),
            read(16384.0)
        ),
    )
}

/// A setting whose value is that of others.
pub(super) fn follows(name: &'static str, default: &'static str, bytes: f64, of: &str) -> Setting {
    let is_default = bytes == default.parse().unwrap_or(0.0);
    Setting {
        name,
        value: (!is_default).then(|| format!("{bytes:.0}")),
        default,
        reason: format!("follows {of}"),
        number: format!("see {of}"),
        gain: None,
        cost: String::new(),
    }
}
