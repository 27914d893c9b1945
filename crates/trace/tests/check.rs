//! Whole traces against the papers' findings.

use std::num::NonZeroU64;

use flashgrain_trace::check::{Check, Drive, FileKind, JudgedBy, Report};
use flashgrain_trace::{Address, Grain, Layer, Losses, Names, Operation, Request, Rule};

/// Toshiba XG5, SSD-T of the hidden-parameters paper.
fn toshiba() -> Grain {
    let kib = |kib: u64| NonZeroU64::new(kib * 1024);
    Grain {
        desirable_write_bytes: kib(64),
        chunk_bytes: kib(4),
        hot_offset_bytes: Some(0),
        stripe_bytes: kib(64),
        flash_page_bytes: kib(4),
    }
}

/// Judges requests, each with its file, offset and length.
fn judged(grain: Grain, requests: impl IntoIterator<Item = (Operation, &'static str, u64, u64)>) -> Report {
    judged_at(0, grain, requests)
}

/// The same, of files that begin so far after a stripe does.
fn judged_at(
    begin_bytes: u64,
    grain: Grain,
    requests: impl IntoIterator<Item = (Operation, &'static str, u64, u64)>,
) -> Report {
    let mut names = Names::default();
    let mut check = Check::new(Drive::of_grain("made up", grain), JudgedBy::Drive).with_files_at(begin_bytes);
    for (time_ns, (operation, file, offset_bytes, length_bytes)) in (0..).zip(requests) {
        let in_file = Some(Address { name: names.id(file), offset_bytes });
        let request = Request {
            time_ns,
            layer: Layer::File,
            operation,
            on_device: None,
            in_file,
            length_bytes,
            process: None,
            latency_ns: None,
        };
        check.take(&request);
    }
    check.finish(&names, &Losses::default(), &[])
}

/// Section 4.3: a million records of 275 bytes on average, 6.7 % of which fall on a boundary.
#[test]
fn of_275_byte_records_6_7_percent_straddle_a_flash_page() {
    let record = |record: u64| {
        [
            (Operation::Write, "host-bin.000001", record * 275, 275),
            (Operation::Flush, "host-bin.000001", 0, 0),
        ]
    };
    let report = judged(toshiba(), (0..100_000).flat_map(record));
    let file = &report.files[0];
    assert_eq!(file.kind, FileKind::BinaryLog);
    let broken = file.group.broken(Rule::FewFlashPages).unwrap();
    let percent = broken.broken as f64 / broken.judged as f64 * 100.0;
    assert!((percent - 6.7).abs() < 0.05, "{percent}");
    let pages = file.group.wear.flash_pages.unwrap();
    assert_eq!(pages.modified - pages.least, broken.broken);
    let rules: Vec<_> = report.kinds[0].mending.iter().flat_map(|mending| mending.rules.clone()).collect();
    assert_eq!(rules, [1, 3, 5], "the paper's Figure 8 for the binary log");
}

/// Figure 7: frames of 24 bytes and a page, two in a commit. Figure 14: 1.6, 3.1 and 12.4 % more wear than
/// pages alone.
#[test]
fn the_log_of_sqlite_breaks_rules_1_and_3_and_wears_as_in_figure_14() {
    let file = "test.db-wal";
    let commit = |commit: u64| {
        let at = |frame: u64| 32 + (2 * commit + frame) * (24 + 65536);
        [
            (Operation::Write, file, at(0), 24),
            (Operation::Write, file, at(0) + 24, 65536),
            (Operation::Write, file, at(1), 24),
            (Operation::Write, file, at(1) + 24, 65536),
            (Operation::Flush, file, 0, 0),
        ]
    };
    let report = judged(toshiba(), (0..2000).flat_map(commit));
    let group = &report.files[0].group;
    assert_eq!(report.files[0].kind, FileKind::SqliteWal);
    let share =
        |rule: Rule| group.broken(rule).map_or(0.0, |tally| tally.broken as f64 / tally.judged as f64);
    assert_eq!(share(Rule::DesirableWrites), 0.5);
    assert!(share(Rule::AlignedWrites) > 0.99);
    let payload = 4000.0 * 65536.0;
    for (flash_page_bytes, percent) in [(2048, 1.6), (4096, 3.1), (16384, 12.4)] {
        let wear =
            group.wear.by_flash_page_bytes.iter().find(|(bytes, ..)| *bytes == flash_page_bytes).unwrap();
        let gain = ((wear.1.modified * flash_page_bytes) as f64 / payload - 1.0) * 100.0;
        assert!((gain - percent).abs() < 0.2, "{flash_page_bytes}: {gain} instead of {percent} %");
    }
}

#[test]
fn a_rule_without_its_parameter_is_skipped_and_says_so() {
    let grain = Grain { flash_page_bytes: None, ..toshiba() };
    let report = judged(grain, [(Operation::Write, "f", 100, 100)]);
    assert_eq!(report.rules[4].skipped.as_deref(), Some("flash_page_bytes is unknown"));
    assert_eq!(report.files[0].group.rules[4], None);
    assert_eq!(report.rules[0].skipped, None);
    assert!(report.files[0].group.wear.flash_pages.is_none());
}

/// Samsung 960 EVO, SSD-S of the paper: pages of a chunk are at hot locations on a partition that begins at
/// one, and their writes are no longer aligned (rules 3 and 4). Of smaller pages only some are there.
#[test]
fn a_partition_that_begins_at_a_hot_location_moves_whole_chunks_there_and_their_writes_off_stripes() {
    let kib = |kib: u64| NonZeroU64::new(kib * 1024);
    let samsung = Grain {
        desirable_write_bytes: kib(32),
        chunk_bytes: kib(64),
        hot_offset_bytes: Some(32 << 10),
        stripe_bytes: kib(64),
        flash_page_bytes: None,
    };
    let found = |begin_bytes: u64, page_bytes: u64| {
        let page = |number: u64| {
            [Operation::Read, Operation::Write].map(|of| (of, "t.ibd", number * page_bytes, page_bytes))
        };
        let report = judged_at(begin_bytes, samsung, (0..64).flat_map(page));
        let group = report.files[0].group.clone();
        let broken = |rule| group.broken(rule).map_or(0, |tally| tally.broken);
        let at_hot = group.at_hot.unwrap();
        assert_eq!(at_hot.reads, at_hot.writes);
        let rules = [Rule::HotReads, Rule::AlignedWrites, Rule::AlignedChunks];
        (at_hot.reads, rules.map(broken))
    };
    assert_eq!(found(0, 64 << 10), (0, [64, 0, 0]));
    assert_eq!(found(32 << 10, 64 << 10), (64, [0, 64, 64]));
    // A quarter of pages of 16 KiB, wherever the partition begins.
    assert_eq!(found(0, 16 << 10), (16, [0, 48, 0]));
    assert_eq!(found(32 << 10, 16 << 10), (16, [0, 48, 0]));
}

#[test]
fn the_use_of_a_file_says_its_kind_where_its_name_does_not() {
    let page = |number: u64| (Operation::Write, "paged", (number * 7 % 100) * 8192, 8192);
    let requests = (0..100).map(page);
    let requests = requests.chain((0..100).map(|record| (Operation::Write, "appended", record * 10, 10)));
    let requests = requests.chain([(Operation::Read, "read", 0, 10)]);
    let requests =
        requests.chain((0..50).map(|number| (Operation::Write, "mixed", number * 999 % 77, number + 1)));
    let report = judged(Grain::default(), requests);
    let kind = |name: &str| report.files.iter().find(|file| file.name == name).map(|file| file.kind);
    assert_eq!(kind("paged"), Some(FileKind::Paged));
    assert_eq!(kind("appended"), Some(FileKind::Appended));
    assert_eq!(kind("read"), Some(FileKind::OnlyRead));
    assert_eq!(kind("mixed"), Some(FileKind::Mixed));
}

#[test]
fn what_reaches_the_drive_is_counted_apart_from_what_a_file_was_asked_for() {
    let mut names = Names::default();
    let (file, drive) = (names.id("/d/f"), names.id("254:0"));
    let call = Request {
        time_ns: 0,
        layer: Layer::File,
        operation: Operation::Write,
        on_device: None,
        in_file: Some(Address { name: file, offset_bytes: 0 }),
        length_bytes: 100,
        process: None,
        latency_ns: None,
    };
    let on_device = Some(Address { name: drive, offset_bytes: 1 << 20 });
    let block = Request { layer: Layer::Drive, on_device, length_bytes: 4096, ..call };
    let flush = Request { operation: Operation::Flush, in_file: None, length_bytes: 0, ..block };
    let mut check = Check::new(Drive::of_grain("made up", toshiba()), JudgedBy::Drive);
    [call, block, flush, block].iter().for_each(|request| check.take(request));
    let report = check.finish(&names, &Losses::default(), &[]);
    let layers: Vec<_> =
        report.layers.iter().map(|group| (group.layer, group.writes.bytes, group.wear.runs)).collect();
    assert_eq!(layers, [(Layer::File, 100, 1), (Layer::Drive, 8192, 2)]);
    let files: Vec<_> = report.files.iter().map(|file| (file.name.as_str(), file.group.layer)).collect();
    assert!(files.contains(&("/d/f", Layer::File)) && files.contains(&("/d/f", Layer::Drive)), "{files:?}");
    assert_eq!(report.lowest_layer().map(|group| group.layer), Some(Layer::Drive));
}
