//! Origin and cost of the profile.

use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{Budget, ProcessorUse, Provenance};

use crate::table::{Cell, Kind, Table, Tone};
use crate::unit;

/// Drive, way to it, moment: label and value, without a head.
pub(crate) fn drive_table(provenance: &Provenance) -> Table {
    let identity = &provenance.identity;
    let geometry = &provenance.geometry;
    let mut table = Table::new(&[("", Kind::Label), ("", Kind::Prose)]);
    let mut row = |label: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            table.push([Cell::toned(label, Tone::Quiet), value.into()]);
        }
    };
    let join = |parts: &[Option<String>]| {
        let known: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        Some(known.join(", "))
    };

    row("target", Some(format!("{} ({})", identity.target, identity.kind)));
    row(
        "drive",
        join(&[
            identity.model.clone(),
            identity.firmware.as_ref().map(|firmware| format!("firmware {firmware}")),
            identity.block_device.clone(),
        ]),
    );
    row("file system", join(&[identity.file_system.clone(), identity.mount_options.clone()]));
    row(
        "kernel",
        join(&[
            identity.kernel.clone(),
            identity.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")),
            identity.write_cache.as_ref().map(|cache| format!("cache {cache}")),
            identity.queue_requests.map(|requests| format!("{requests} requests queued")),
            identity.max_transfer_bytes.map(|size| format!("transfers to {}", unit::bytes(size as f64))),
            identity.poll_queues.map(|there| if there { "poll queues" } else { "no poll queues" }.to_owned()),
            identity.rotational.filter(|rotates| *rotates).map(|_| "said to rotate".to_owned()),
        ]),
    );
    row("backend", Some(format!("{}: {}", identity.backend, identity.backend_reason)));
    row(
        "geometry",
        join(&[
            Some(format!("{} usable", unit::bytes(geometry.capacity_bytes as f64))),
            Some(if geometry.direct { "O_DIRECT" } else { "through the page cache" }.to_owned()),
            Some(format!("aligned to {}", unit::bytes(f64::from(geometry.offset_align_bytes)))),
            identity
                .logical_block_bytes
                .map(|size| format!("logical block {}", unit::bytes(f64::from(size)))),
            identity
                .physical_block_bytes
                .map(|size| format!("physical block {}", unit::bytes(f64::from(size)))),
            (geometry.members > 1).then(|| match geometry.stripe_unit_bytes {
                Some(size) => format!("{} drives striped by {}", geometry.members, unit::bytes(size as f64)),
                None => format!("{} drives", geometry.members),
            }),
        ]),
    );
    row("state", Some(provenance.precondition.clone()));
    row(
        "made",
        Some(format!(
            "{} by Flashgrain {}, seed {}",
            provenance.date_utc, provenance.flashgrain_version, provenance.seed
        )),
    );
    for note in &identity.notes {
        table.push([Cell::toned("note", Tone::Quiet), Cell::toned(note, Tone::Warning)]);
    }
    table
}

/// Why the run cannot be trusted, as a sentence.
pub(crate) fn distrust_sentence(profile: &DeviceProfile) -> Option<String> {
    let why = profile.distrust.as_ref()?;
    let mut letters = why.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    Some(format!("{first}{}.", letters.as_str()))
}

/// Used and permitted time and bytes.
pub(crate) fn budget_sentence(budget: &Budget) -> String {
    let (used, limit) = (unit::seconds(budget.used_s), unit::seconds(budget.limit_s));
    let time = match used != limit && budget.used_s > budget.limit_s {
        true => format!(
            "Used {used}, more than the {limit} allowed: requests, or other programs, took longer than planned; it"
        ),
        false => format!("Used {used} of {limit} and"),
    };
    format!(
        "{time} wrote {} of at most {}; scratch file of {}.",
        unit::bytes(budget.used_write_bytes as f64),
        unit::bytes(budget.limit_write_bytes as f64),
        unit::bytes(budget.file_bytes as f64),
    )
}

/// Warns of latencies that waiting for processors distorted; `None` if the processors were not contended, or
/// if it is unknown.
pub(crate) fn contention_sentence(budget: &Budget) -> Option<String> {
    let processor = budget.processor.filter(ProcessorUse::is_contended)?;
    let stolen = processor.stolen_share.filter(|share| *share >= 0.0005);
    let stolen = stolen.map_or_else(String::new, |share| {
        format!(", and a hypervisor gave {} of all processors' time to others", unit::share(share))
    });
    Some(format!(
        "The processors were contended: of the time in which they could have run, the measuring threads waited {} for a processor{stolen}. \
         High percentiles of latency, of some milliseconds above all, are the scheduler's rather than the drive's; measure again when less else runs.",
        unit::share(processor.waited_share())
    ))
}

/// The experiments with their cost and noise; then the trials that were left out.
pub(crate) fn experiment_table(budget: &Budget) -> Table {
    let mut table = Table::new(&[
        ("experiment", Kind::Label),
        ("trials", Kind::Number),
        ("time", Kind::Number),
        ("written", Kind::Number),
        ("noise", Kind::Number),
    ]);
    for used in &budget.experiments {
        let noise = match used.noise {
            Some(noise) => Cell::toned(
                format!("± {}", unit::share(noise)),
                if noise > 0.1 { Tone::Warning } else { Tone::Plain },
            ),
            None => Cell::toned("no repeats", Tone::Quiet),
        };
        table.push([
            used.name.as_str().into(),
            used.trials.to_string().into(),
            unit::seconds(used.used_s).into(),
            unit::bytes(used.used_write_bytes as f64).into(),
            noise,
        ]);
    }
    table
}
