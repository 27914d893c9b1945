//! Files that people hand over: profiles, samples, drives, traces.

use std::path::Path;

use flashgrain_advisor::observe::observe;
use flashgrain_advisor::workload;
use flashgrain_model::{read_csv, write_csv};
use flashgrain_profile::file;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::mqsim::{Trace, export_drive, import_drive, import_workload, read_trace};
use flashgrain_trace::{Reader, Request, TraceWriter};

const ORIGIN: &str = "fuzzed";

pub fn profile(bytes: &[u8]) {
    let Ok(profile) = file::parse(Path::new(ORIGIN), bytes) else { return };
    let text =
        serde_json::to_vec(&profile).unwrap_or_else(|error| panic!("a profile that was read: {error}"));
    let again = file::parse(Path::new(ORIGIN), &text).unwrap_or_else(|error| panic!("{error}"));
    let again = serde_json::to_vec(&again).unwrap_or_default();
    assert!(again == text, "a profile comes back");
    // The input goes all the way to reports: every profile that was read can be shown, and soon.
    flashgrain_report::html(&profile).unwrap_or_else(|error| panic!("a report of the profile: {error}"));
    flashgrain_report::terminal(&profile, 80);
}

pub fn samples_csv(bytes: &[u8]) {
    let Ok(samples) = read_csv(bytes) else { return };
    let mut text = Vec::new();
    write_csv(&mut text, &samples).unwrap_or_else(|error| panic!("samples that were read: {error}"));
    let again = read_csv(text.as_slice()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, samples, "samples come back");
}

pub fn drive_toml(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(drive) = SimConfig::from_toml(text, ORIGIN) {
        comes_back(&drive);
    }
}

fn comes_back(drive: &SimConfig) {
    // Beyond 2^63 TOML has no numbers.
    let Ok(text) = drive.to_toml() else { return };
    let again = SimConfig::from_toml(&text, ORIGIN).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(&again, drive, "a drive comes back");
}

pub fn mqsim_drive(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(imported) = import_drive(text, ORIGIN) else { return };
    comes_back(&imported.config);
    if let Ok(text) = export_drive(&imported.config, &|_| None) {
        let again = import_drive(&text, ORIGIN);
        assert!(again.is_ok(), "an exported drive is read: {:?}", again.err());
    }
}

pub fn mqsim_workload(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(scenarios) = import_workload(text, ORIGIN, Path::new("/nowhere")) else { return };
    assert!(!scenarios.is_empty() && scenarios.iter().all(|scenario| !scenario.flows.is_empty()));
}

pub fn mqsim_trace(bytes: &[u8]) {
    let unit_ns = [1.0, 1e3, 1e6, 1e9][bytes.len() % 4];
    let trace = Trace { path: ORIGIN.into(), share: 1.0, repeats: 1, unit_ns };
    let Ok(requests) = read_trace(bytes, &trace) else { return };
    assert!(requests.is_sorted_by_key(|request| request.arrival_ns));
    assert!(requests.first().is_none_or(|request| request.arrival_ns == 0), "times begin at zero");
    let whole = |bytes: u64| bytes.is_multiple_of(512);
    assert!(requests.iter().all(|request| whole(request.length_bytes) && whole(request.offset_bytes)));
}

pub fn workload_toml(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(workload) = workload::parse(text) {
        let again = workload::parse(&workload::print(&workload)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, workload, "a workload comes back");
    }
}

/// The counters of engines, of whatever kind the text looks like.
pub fn observed(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(workload) = observe(text, None) {
        assert!(workload::checked(workload.clone()).is_ok(), "{workload:?}");
    }
}

/// A trace of whatever format: its requests come back from Flashgrain's own.
pub fn trace(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let requests: Vec<Request> = reader.by_ref().map_while(Result::ok).collect();
    let mut writer = TraceWriter::new(Vec::new()).unwrap_or_else(|error| panic!("{error}"));
    for request in &requests {
        writer.request(request, reader.names()).unwrap_or_else(|error| panic!("{error}"));
    }
    let written = writer.finish(&reader.losses()).unwrap_or_else(|error| panic!("{error}"));
    let mut again = Reader::new(&written[..]).unwrap_or_else(|error| panic!("{error}"));
    let mut count = 0;
    for request in again.by_ref() {
        let request = request.unwrap_or_else(|error| panic!("a written request is read: {error}"));
        let first = requests.get(count).unwrap_or_else(|| panic!("no more than was written"));
        let place =
            |request: &Request| (request.time_ns, request.layer, request.operation, request.length_bytes);
        assert_eq!(place(&request), place(first));
        let offsets = |request: &Request| {
            [request.in_file, request.on_device].map(|address| address.map(|address| address.offset_bytes))
        };
        assert_eq!(offsets(&request), offsets(first));
        count += 1;
    }
    assert_eq!((count, again.losses()), (requests.len(), reader.losses()), "all of it");
}
