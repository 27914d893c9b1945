//! Settings in files: every value reads back, files of before and of later read, and nothing impossible does.

use std::time::Duration;

use flashgrain_device::BackendKind;
use flashgrain_settings::{
    Amount, Bytes, Count, Fraction, PagePlacement, Placement, SegmentShape, SyncMethod, drive, layout,
};
use serde_json::{Value, json};

fn settings() -> Vec<drive::Setting> {
    let (chunk_bytes, shift_bytes) = (192 << 10, 48 << 10);
    let mut all = vec![
        drive::Setting::LeafSize(Bytes(4 << 10)),
        drive::Setting::WriteUnit(Bytes(96 << 10)),
        drive::Setting::Segment(SegmentShape { bytes: 12 << 20, align_bytes: 192 << 10 }),
        drive::Setting::StripeUnit(Bytes(1 << 20)),
        drive::Setting::ScanNode(Bytes(2 << 20)),
        drive::Setting::PagePlacement(PagePlacement::OwnSize),
        drive::Setting::PagePlacement(PagePlacement::Aligned { chunk_bytes }),
        drive::Setting::PagePlacement(PagePlacement::Shifted { chunk_bytes, shift_bytes }),
        drive::Setting::LogBlock(Bytes(16 << 10)),
        drive::Setting::GroupCommitWindow(Duration::ZERO),
        drive::Setting::GroupCommitWindow(Duration::from_micros(1020)),
        drive::Setting::RequestsInFlight(Count(4096)),
        drive::Setting::BusyHalfBandwidth(Bytes(16 << 10)),
        drive::Setting::ReadAhead(Bytes(384 << 10)),
        drive::Setting::BackgroundWrites(Fraction(0.25)),
    ];
    all.extend(SyncMethod::ALL.map(drive::Setting::SyncMethod));
    all.extend(BackendKind::ALL.map(drive::Setting::Interface));
    all
}

fn decision(setting: drive::Setting) -> drive::Decision {
    drive::Decision { setting, because: "a number".into(), from_default: true, hidden_by_noise: true }
}

#[test]
fn every_value_reads_back_with_its_amount_and_by_its_words_alone() {
    for setting in settings() {
        let written = decision(setting);
        let mut stored = serde_json::to_value(&written).unwrap();
        assert_eq!(serde_json::from_value::<drive::Decision>(stored.clone()).unwrap(), written);
        stored.as_object_mut().unwrap().remove("amount");
        assert_eq!(serde_json::from_value::<drive::Decision>(stored).unwrap(), written);
    }
}

#[test]
fn an_amount_is_more_exact_than_the_words() {
    let window = Duration::from_nanos(870_432);
    let written = decision(drive::Setting::GroupCommitWindow(window));
    let stored = serde_json::to_value(&written).unwrap();
    assert_eq!(stored["value"], "870 µs");
    assert_eq!(stored["amount"], json!({ "microseconds": 870.432 }));
    assert_eq!(serde_json::from_value::<drive::Decision>(stored).unwrap(), written);
}

#[test]
fn the_keys_of_a_decision_are_those_of_the_format() {
    let stored = serde_json::to_value(decision(drive::Setting::WriteUnit(Bytes(64 << 10)))).unwrap();
    let expected = json!({
        "setting": "write unit",
        "value": "64 KiB",
        "amount": { "bytes": 65536 },
        "because": "a number",
        "from_default": true,
        "hidden_by_noise": true,
    });
    assert_eq!(stored, expected);
    let method = layout::Decision {
        setting: layout::Setting::SyncMethod(SyncMethod::LinkedFlush),
        because: "a number".into(),
    };
    let expected = json!({ "setting": "sync method", "value": "linked flush", "because": "a number" });
    assert_eq!(serde_json::to_value(&method).unwrap(), expected);
    assert_eq!(serde_json::from_value::<layout::Decision>(expected).unwrap(), method);
}

fn read(stored: &Value) -> Result<drive::Setting, String> {
    let decision = serde_json::from_value::<drive::Decision>(stored.clone());
    decision.map(|decision| decision.setting).map_err(|error| error.to_string())
}

fn row(setting: &str, value: &str, amount: Option<Value>) -> Value {
    let mut row = json!({ "setting": setting, "value": value, "because": "a number", "from_default": false });
    if let Some(amount) = amount {
        row["amount"] = amount;
    }
    row
}

#[test]
fn what_is_unknown_is_kept_word_for_word() {
    let of_before = row("table write size", "1 MiB", Some(json!({ "bytes": 1 << 20 })));
    let setting = read(&of_before).unwrap();
    assert!(matches!(setting, drive::Setting::Unknown(_)));
    assert_eq!((setting.name(), setting.value().as_str()), ("table write size", "1 MiB"));
    assert_eq!(setting.amount(), Some(Amount::Bytes(1 << 20)));
    let again = drive::Decision { from_default: false, hidden_by_noise: false, ..decision(setting) };
    assert_eq!(serde_json::to_value(&again).unwrap(), of_before);
    // Units of later versions, and words of later versions for a setting that is known.
    for later in [
        row("spin-up", "3 turns", Some(json!({ "turns": 3 }))),
        row("sync method", "by carrier pigeon", None),
        row("write unit", "a handful", None),
        row("page placement in a write unit", "pages of 0 B shifted by 9 TiB", None),
    ] {
        let setting = read(&later).unwrap();
        assert!(matches!(setting, drive::Setting::Unknown(_)), "{setting:?}");
        assert_eq!(later["value"], setting.value());
    }
}

#[test]
fn what_cannot_be_is_refused_by_name_value_and_range() {
    for (setting, value, amount, problem) in [
        (
            "write unit",
            "x",
            json!({ "bytes": 0 }),
            "`write unit` is 0 B, but must be between 512 B and 1 TiB",
        ),
        ("leaf size", "x", json!({ "bytes": 1_u64 << 60 }), "`leaf size` is 1048576 TiB, but must be"),
        (
            "requests in flight",
            "x",
            json!({ "count": 0 }),
            "`requests in flight` is 0, but must be between 1",
        ),
        ("group-commit window", "x", json!({ "microseconds": 1e30 }), "µs, but must be between 0 µs and"),
        ("group-commit window", "x", json!({ "microseconds": -1 }), "an amount that does not belong"),
        (
            "background writes beside reads",
            "x",
            json!({ "share": 1.5 }),
            "is 1.5, but must be between 0 and 1",
        ),
        (
            "write unit",
            "64 KiB",
            json!({ "count": 65536 }),
            "`write unit` has an amount that does not belong",
        ),
        ("write unit", "64 KiB", json!({ "bytes": -5 }), "`write unit` has an amount that does not belong"),
        ("sync method", "fdatasync", json!({ "bytes": 1 }), "`sync method` has an amount that does not"),
        ("segment size and alignment", "8 MiB", json!({ "bytes": 8 << 20 }), "next to the value `8 MiB`"),
    ] {
        let error = read(&row(setting, value, Some(amount))).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let error = read(&row("write unit", "1 B", None)).unwrap_err();
    assert!(error.contains("`write unit` is 1 B, but must be between"), "{error}");
}

#[test]
fn a_setting_is_looked_up_by_its_type() {
    let decisions: Vec<_> = settings().into_iter().map(decision).collect();
    let (unit, found) = drive::decided(&decisions, drive::Setting::write_unit).unwrap();
    assert_eq!((unit, found.setting.name()), (Bytes(96 << 10), "write unit"));
    assert!(drive::decided(&decisions[..1], drive::Setting::write_unit).is_none());
    let placed = layout::Setting::Placement(Placement::InPlace);
    assert_eq!((placed.placement(), placed.log()), (Some(Placement::InPlace), None));
}
