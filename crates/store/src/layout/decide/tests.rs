use flashgrain_profile::DeviceProfile;
use flashgrain_settings::SegmentShape;
use flashgrain_settings::drive::Decision as Decided;

use super::*;
use crate::ErrorKind;

fn geometry(capacity_bytes: u64) -> Geometry {
    Geometry {
        capacity_bytes,
        offset_align_bytes: 512,
        memory_align_bytes: 512,
        preferred_max_transfer_bytes: 1 << 20,
        direct: true,
        writable: true,
        members: 1,
        stripe_unit_bytes: None,
    }
}

fn profile() -> DeviceProfile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json");
    flashgrain_profile::file::read(std::path::Path::new(path)).unwrap()
}

fn ground<'a>(profile: Option<&'a [Decided]>, data: &'a Geometry, capacity: Option<u64>) -> Ground<'a> {
    Ground {
        profile,
        data,
        log: None,
        capacity_bytes: capacity,
        log_capacity_bytes: None,
        recovery_log_bytes: 64 << 20,
        growth_segments: 12,
        room_bytes: None,
    }
}

fn learned(setting: drive::Setting) -> Decided {
    let because = format!("a number for {}", setting.name());
    Decided { setting, because, from_default: false, hidden_by_noise: false }
}

#[test]
fn without_a_profile_every_number_says_that_it_is_a_default() {
    let data = geometry(0);
    let (layout, decisions) = decide(&ground(None, &data, None), &Overrides::default()).unwrap();
    assert_eq!((layout.unit_bytes, layout.node_bytes), (DEFAULT_UNIT_BYTES, 4096));
    let defaults = decisions.iter().filter(|one| one.because.starts_with("default")).count();
    assert_eq!(defaults, 8, "{decisions:#?}");
}

#[test]
fn learned_numbers_decide_and_are_quoted() {
    let segment = SegmentShape { bytes: 32 << 20, align_bytes: 512 << 10 };
    let profile = [
        drive::Setting::WriteUnit(Bytes(512 << 10)),
        drive::Setting::Segment(segment),
        drive::Setting::LogBlock(Bytes(8 << 10)),
        drive::Setting::SyncMethod(SyncMethod::Dsync),
        drive::Setting::ReadAhead(Bytes(1 << 20)),
        drive::Setting::RequestsInFlight(Count(128)),
        drive::Setting::LeafSize(Bytes(1 << 20)),
    ]
    .map(learned);
    let data = geometry(0);
    let (layout, decisions) = decide(&ground(Some(&profile), &data, None), &Overrides::default()).unwrap();
    assert_eq!((layout.unit_bytes, layout.segment_bytes), (512 << 10, 32 << 20));
    assert_eq!((layout.pack_bytes, layout.log_block_bytes), (8 << 10, 8 << 10));
    assert_eq!((layout.sync_method, layout.in_flight), (SyncMethod::Dsync, 128));
    assert_eq!((layout.read_ahead_bytes, layout.node_bytes), (1 << 20, 64 << 10));
    let quoted: Vec<&str> = decisions
        .iter()
        .filter(|decision| decision.because.contains("a number for"))
        .map(|decision| decision.setting.name())
        .collect();
    let expected = [
        "write unit",
        "segment",
        "borders that images keep within",
        "log block",
        "sync method",
        "read-ahead",
        "requests in flight",
        "node",
    ];
    assert_eq!(quoted, expected);
}

#[test]
fn a_profile_that_is_older_than_amounts_decides_by_its_words() {
    let profile = profile();
    let (unit, decision) = profile.decided(drive::Setting::write_unit).unwrap();
    assert!(unit == Bytes(64 << 10) && decision.from_default);
    let data = geometry(0);
    let (layout, decisions) =
        decide(&ground(Some(&profile.decisions), &data, None), &Overrides::default()).unwrap();
    assert_eq!(layout.unit_bytes, DEFAULT_UNIT_BYTES, "the profile has a default only");
    // P = 3.4 was learned.
    assert_eq!(layout.read_ahead_bytes, 256 << 10);
    let ahead = decisions.iter().find(|one| one.setting.read_ahead().is_some()).unwrap();
    assert!(ahead.because.starts_with("P = 3.4"), "{ahead:?}");
}

/// A method whose speed was hidden by noise is still one that the drive takes, and may be far cheaper than
/// `fdatasync`.
#[test]
fn a_sync_method_that_is_a_default_of_the_profile_is_taken() {
    let setting = drive::Setting::SyncMethod(SyncMethod::LinkedFlush);
    let profile = [Decided { from_default: true, hidden_by_noise: true, ..learned(setting) }];
    let data = geometry(0);
    let (layout, _) = decide(&ground(Some(&profile), &data, None), &Overrides::default()).unwrap();
    assert_eq!(layout.sync_method, SyncMethod::LinkedFlush);
}

#[test]
fn a_layout_says_the_settings_that_were_decided() {
    let data = geometry(0);
    let (layout, decisions) = decide(&ground(None, &data, None), &Overrides::default()).unwrap();
    let settings = |decisions: &[Decision]| {
        let mut named: Vec<_> = decisions
            .iter()
            .map(|decision| (decision.setting.name().to_owned(), decision.setting.value()))
            .filter(|(name, _)| !name.starts_with("space"))
            .collect();
        named.sort();
        named
    };
    assert_eq!(settings(&layout.decisions()), settings(&decisions));
}

#[test]
fn everything_lies_behind_one_another_on_whatever_device() {
    for (members, stripe_unit) in [(1, None), (4, Some(64 << 10)), (8, Some(1 << 20))] {
        for capacity in [64 << 20, 256 << 20, 3 << 30, 1 << 40] {
            let data = Geometry { members, stripe_unit_bytes: stripe_unit, ..geometry(capacity) };
            let (layout, _) = decide(&ground(None, &data, Some(capacity)), &Overrides::default()).unwrap();
            let unit = u64::from(layout.unit_bytes);
            assert!(layout.log.start_bytes >= FRONT_BYTES);
            assert!(layout.log.start_bytes >= u64::from(members) * stripe_unit.unwrap_or(0));
            assert!(layout.log.end_bytes() <= layout.segments_start_bytes);
            assert!(
                layout.segments_start_bytes.is_multiple_of(unit) && layout.segment_bytes.is_multiple_of(unit)
            );
            assert!(layout.log.bytes.is_multiple_of(u64::from(layout.log_block_bytes)));
            let own = Ground { log: Some(&data), ..ground(None, &data, Some(capacity)) };
            let (own, _) = decide(&own, &Overrides::default()).unwrap();
            assert!(own.log.start_bytes >= u64::from(members) * stripe_unit.unwrap_or(0));
            let segments = (capacity - layout.segments_start_bytes) / layout.segment_bytes;
            assert!(segments >= 8, "{segments} segments of {layout:?}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let data = geometry(64 << 20);
    let refused = |wanted: Overrides, text: &str| {
        let error = decide(&ground(None, &data, Some(64 << 20)), &wanted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(Overrides { unit_bytes: Some(100_000), ..Overrides::default() }, "a power of two from 65536");
    refused(Overrides { node_bytes: Some(128 << 10), ..Overrides::default() }, "from 4096 to 65536");
    refused(Overrides { segment_bytes: Some(3), ..Overrides::default() }, "a multiple of the write unit");
    refused(Overrides { log_bytes: Some(1 << 30), ..Overrides::default() }, "at most 8388608");
    let small = geometry(1 << 20);
    let error = decide(&ground(None, &small, Some(1 << 20)), &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("too small"), "{error}");
    let coarse = Geometry { offset_align_bytes: 16384, ..geometry(1 << 30) };
    let error = decide(&ground(None, &coarse, None), &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("16384"), "{error}");
}

#[test]
fn a_store_that_grows_begins_small_and_says_so() {
    let data = geometry(0);
    let (layout, decisions) = decide(&ground(None, &data, None), &Overrides::default()).unwrap();
    assert_eq!((layout.first_segment_bytes, layout.segment_bytes), (256 << 10, 4 << 20));
    assert_eq!((layout.log.bytes, layout.log_bytes_max), (256 << 10, 128 << 20));
    let said = decisions.iter().find(|one| one.setting.first_space().is_some()).unwrap();
    assert!(said.setting.first_space().unwrap() < Bytes(7 << 20), "{said:?}");
    assert!(said.because.contains("12 segments of 256 KiB"), "{said:?}");
}

/// Segments that are kept for checkpoints and the cleaner, and the log, are a small part of any file system.
#[test]
fn a_store_that_grows_in_a_small_file_system_has_small_segments() {
    let data = geometry(0);
    let sizes = |mebibytes: u64| {
        let ground = Ground { room_bytes: Some(mebibytes << 20), ..ground(None, &data, None) };
        let (layout, _) = decide(&ground, &Overrides::default()).unwrap();
        let Layout { unit_bytes, first_segment_bytes, segment_bytes, log, log_bytes_max, .. } = layout;
        [unit_bytes.into(), first_segment_bytes, segment_bytes, log.bytes, log_bytes_max]
            .map(|bytes| bytes >> 10)
    };
    assert_eq!(sizes(24), [64, 128, 128, 512, 512]);
    assert_eq!(sizes(256), [256, 256, 1024, 256, 5460]);
    assert_eq!(sizes(1 << 20), [256, 256, 4096, 256, 128 << 10]);
}

#[test]
fn what_is_set_by_hand_or_of_one_size_does_not_grow() {
    let data = geometry(0);
    let own = Ground { log: Some(&data), ..ground(None, &data, None) };
    let by_hand = Overrides { log_bytes: Some(1 << 20), ..Overrides::default() };
    let in_place = Overrides { placement: Some(Placement::InPlace), ..Overrides::default() };
    let fixed = ground(None, &data, Some(1 << 30));
    for (ground, wanted, log_bytes) in [
        (&ground(None, &data, None), &by_hand, 1 << 20),
        (&own, &Overrides::default(), 128 << 20),
        (&ground(None, &data, None), &in_place, 128 << 20),
        (&fixed, &Overrides::default(), 128 << 20),
    ] {
        let (layout, _) = decide(ground, wanted).unwrap();
        assert!(!layout.log_grows(), "{layout:?}");
        assert_eq!(layout.log.bytes, log_bytes);
    }
    let (layout, _) = decide(&fixed, &Overrides::default()).unwrap();
    assert_eq!(layout.first_segment_bytes, layout.segment_bytes);
}
