use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::{Amount, Decision as Decided};

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

fn ground<'a>(profile: Option<&'a LearnedSettings>, data: &'a Geometry, capacity: Option<u64>) -> Ground<'a> {
    Ground {
        profile,
        data,
        log: None,
        capacity_bytes: capacity,
        log_capacity_bytes: None,
        recovery_log_bytes: 64 << 20,
        growth_segments: 12,
    }
}

fn learned(setting: &str, value: &str, amount: Option<Amount>) -> Decided {
    let because = format!("a number for {setting}");
    Decided {
        setting: setting.into(),
        value: value.into(),
        amount,
        because,
        from_default: false,
        hidden_by_noise: false,
    }
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
    let mut profile = profile();
    profile.decisions = vec![
        learned("write unit", "512 KiB", Some(Amount::Bytes(512 << 10))),
        learned("segment size and alignment", "32 MiB, aligned to 512 KiB", Some(Amount::Bytes(32 << 20))),
        learned("log block size", "8 KiB", Some(Amount::Bytes(8 << 10))),
        learned("sync method", "RWF_DSYNC", None),
        learned("read-ahead", "1 MiB", Some(Amount::Bytes(1 << 20))),
        learned("requests in flight", "128", Some(Amount::Count(128))),
        learned("leaf size", "1 MiB", Some(Amount::Bytes(1 << 20))),
    ];
    let data = geometry(0);
    let (layout, decisions) =
        decide(&ground(Some(&LearnedSettings::from(&profile)), &data, None), &Overrides::default()).unwrap();
    assert_eq!((layout.unit_bytes, layout.segment_bytes), (512 << 10, 32 << 20));
    assert_eq!((layout.pack_bytes, layout.log_block_bytes), (8 << 10, 8 << 10));
    assert_eq!((layout.sync_method, layout.in_flight), (SyncMethod::Dsync, 128));
    assert_eq!((layout.read_ahead_bytes, layout.node_bytes), (1 << 20, 64 << 10));
    for setting in
        ["write unit", "segment", "log block", "sync method", "read-ahead", "requests in flight", "node"]
    {
        let decision = decisions.iter().find(|one| one.setting == setting).unwrap();
        assert!(decision.because.contains("a number for"), "{decision:?}");
    }
}

#[test]
fn a_profile_that_is_older_than_numbers_gives_defaults() {
    let profile = profile();
    assert!(profile.decision("write unit").unwrap().bytes().is_none());
    let data = geometry(0);
    let (layout, _) =
        decide(&ground(Some(&LearnedSettings::from(&profile)), &data, None), &Overrides::default()).unwrap();
    assert_eq!(layout.unit_bytes, DEFAULT_UNIT_BYTES);
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
    assert_eq!((layout.first_segment_bytes, layout.segment_bytes), (512 << 10, 4 << 20));
    assert_eq!((layout.log.bytes, layout.log_bytes_max), (256 << 10, 128 << 20));
    let said = decisions.iter().find(|one| one.setting == "space at first").unwrap();
    assert!(said.bytes.unwrap() < 7 << 20, "{said:?}");
    assert!(said.because.contains("12 segments of 512 KiB"), "{said:?}");
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
