//! Advice of a workload on a profile: what follows from known drives, and from profiles that know little.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use flashgrain_advisor::engine::{EngineName, EngineVersion};
use flashgrain_advisor::rank::Family;
use flashgrain_advisor::workload::{Durability, PRESETS};
use flashgrain_advisor::{Advice, Interval, Workload, workload};
use flashgrain_model::Estimate;
use flashgrain_profile::{DeviceProfile, file};

/// A simulated Samsung 960 EVO, profiled in a minute of its time; without the points behind the models.
const FULL: &str = include_str!("fixtures/960evo.json");
/// A profile of the first schema, with few experiments.
const OLD: &str = include_str!("../../profile/tests/fixtures/profile-v1.json");

fn profile(text: &str) -> DeviceProfile {
    file::parse("profile.json".as_ref(), text.as_bytes()).unwrap()
}

fn contains_its_value(interval: &Interval) -> bool {
    interval.low <= interval.value && interval.value <= interval.high
}

#[test]
fn every_preset_gets_advice_for_every_engine_with_intervals_that_contain_their_values() {
    for text in [FULL, OLD] {
        for (name, _) in PRESETS {
            let advice = Advice::new(&workload::preset(name).unwrap(), &profile(text), &EngineName::ALL);
            for row in &advice.ranking.rows {
                for interval in [row.rate_per_second, row.latency_us, row.written_bytes_per_day] {
                    assert!(contains_its_value(&interval) && interval.value.is_finite(), "{name}: {row:?}");
                }
                assert!(row.space_amplification >= 1.0, "{name}: {row:?}");
            }
            let rates: Vec<f64> = advice.ranking.rows.iter().map(|row| row.rate_per_second.value).collect();
            assert!(rates.is_sorted_by(|a, b| a >= b), "{name}: {rates:?}");
            for engine in &advice.engines {
                assert!(engine.gain.value >= 0.999, "{name}: {:?} {:?}", engine.engine, engine.gain);
            }
        }
    }
}

/// A B+-tree writes a page for each record that changes, and an LSM-tree writes the record as often as it has
/// levels: small records decide for the one, as skewed updates of large ones, most of which meet a page in
/// the cache, decide for the other.
#[test]
fn stores_have_lsm_trees_where_writes_prevail_and_b_trees_where_reads_do() {
    let kind = |name: &str, durability, updates_only: bool| {
        let mut workload = Workload { durability, ..workload::preset(name).unwrap() };
        if updates_only {
            (workload.operations.point_hits, workload.operations.updates) = (0.0, 1.0);
            (workload.records.value_bytes, workload.skew) = (100, 0.0);
        }
        let advice = Advice::new(&workload, &profile(FULL), &[EngineName::Flashgrain]).engines.remove(0);
        let kind = advice.settings.iter().find(|setting| setting.name == "--kind").unwrap().clone();
        println!("{name} {durability:?} {:?}: {}", kind.value, kind.reason);
        assert!(
            kind.reason.contains("a B+-tree is predicted to do") && kind.reason.contains("an LSM-tree (")
        );
        assert_eq!(kind.value.is_some(), advice.value("--workload").is_some());
        kind.value.is_some()
    };
    for durability in [Durability::None, Durability::Sync] {
        // Waiting for flushes takes the same time in all trees.
        assert_eq!(kind("ycsb-a", durability, true), durability == Durability::None);
        for skewed in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d"] {
            assert!(!kind(skewed, durability, false), "{skewed}");
        }
    }
}

/// The profile, with P of a drive that serves so many blocks at a time.
fn profile_with_parallelism(blocks: u64) -> DeviceProfile {
    let mut profile: serde_json::Value = serde_json::from_str(FULL).unwrap();
    for decision in profile["decisions"].as_array_mut().unwrap() {
        if decision["setting"] == "read-ahead" {
            decision["value"] = format!("{} KiB", blocks * 64).into();
            decision["amount"]["bytes"] = (blocks * 65_536).into();
            decision["from_default"] = false.into();
        }
    }
    self::profile(&profile.to_string())
}

fn flashgrain(workload: &Workload, profile: &DeviceProfile) -> flashgrain_advisor::engine::EngineAdvice {
    Advice::new(workload, profile, &[EngineName::Flashgrain]).engines.remove(0)
}

#[test]
fn each_tree_that_a_store_may_have_is_predicted_and_one_is_advised() {
    for name in ["ycsb-a", "ycsb-e"] {
        let workload = workload::preset(name).unwrap();
        for (blocks, count) in [(1, 3), (8, 4)] {
            let advice = flashgrain(&workload, &profile_with_parallelism(blocks));
            assert_eq!(advice.trees.len(), count, "{name}: {:?}", advice.trees);
            assert_eq!(advice.trees.iter().filter(|tree| tree.is_advised).count(), 1, "{name}");
            let advised = advice.trees.iter().find(|tree| tree.is_advised).unwrap();
            assert_eq!(advised.rate_per_second, advice.advised_rate_per_second, "{name}");
            for tree in &advice.trees {
                let numbers = [tree.latency_us, tree.space_amplification];
                assert!(numbers.iter().all(|number| *number > 0.0 && number.is_finite()), "{tree:?}");
                assert!(tree.reads >= 0.0 && tree.written_bytes >= 0.0, "{tree:?}");
                assert!(advice.file.contains(&format!("{:.0} operations/s", tree.rate_per_second.value)));
            }
        }
    }
}

/// Its nodes are read at once, and those of short ranges, too.
#[test]
fn a_single_reader_with_little_memory_has_nodes_of_several_blocks() {
    let mut workload = Workload { clients: 1, skew: 0.0, ..workload::preset("ycsb-c").unwrap() };
    (workload.memory_bytes, workload.records.value_bytes) = (256 << 20, 100);
    let shares = &mut workload.operations;
    (shares.point_hits, shares.ranges, shares.range_bytes) = (0.8, 0.2, 4096);
    let advice = flashgrain(&workload, &profile_with_parallelism(8));
    let blocks = advice.value("--node-blocks").unwrap_or_else(|| panic!("{}", advice.file));
    assert!(["2", "4", "8"].contains(&blocks), "{blocks}");
    assert!(advice.value("--kind").is_none());
    let command = format!("db create-tree \"$STORE\" \"${{TREE:-default}}\" --node-blocks {blocks}\n");
    assert!(advice.file.ends_with(&command), "{}", advice.file);
    // A drive that serves one at a time has nothing to gain by it, nor have those who write.
    assert!(flashgrain(&workload, &profile_with_parallelism(1)).value("--node-blocks").is_none());
    (workload.operations.point_hits, workload.operations.updates) = (0.2, 0.6);
    assert!(flashgrain(&workload, &profile_with_parallelism(8)).value("--node-blocks").is_none());
}

/// B and F of a workload, in the words of the advice.
fn buffered(look_ups: f64) -> String {
    let mut workload =
        Workload { skew: 0.0, durability: Durability::None, ..workload::preset("ycsb-a").unwrap() };
    (workload.operations.point_hits, workload.operations.updates) = (look_ups, 1.0 - look_ups);
    (workload.records.value_bytes, workload.memory_bytes) = (100, 256 << 20);
    let advice = flashgrain(&workload, &profile(FULL));
    let tree = advice.trees.iter().find(|tree| tree.name.starts_with("a Bε-tree")).unwrap();
    println!("{look_ups}: {}", tree.name);
    tree.name.clone()
}

#[test]
fn the_nodes_of_a_b_epsilon_tree_follow_from_the_mix() {
    assert_ne!(buffered(0.02), buffered(0.98));
}

#[test]
fn little_memory_makes_no_cache_smaller_than_the_default_that_fits() {
    let engines = [
        (EngineName::Wiredtiger, "cache_size", 126, 100),
        (EngineName::Mariadb, "innodb_buffer_pool_size", 171, 128),
        (EngineName::Flashgrain, "cache_bytes", 286, 256 << 20),
    ];
    for (engine, setting, memory_mib, default) in engines {
        for (name, _) in PRESETS {
            let mut workload = workload::preset(name).unwrap();
            (workload.memory_bytes, workload.records.count) = (memory_mib << 20, 1_000_000);
            let advice = Advice::new(&workload, &profile(FULL), &[engine]).engines.remove(0);
            assert!(advice.gain.value >= 0.999, "{name}: {engine:?} {:?}", advice.gain);
            let cache = advice.value(setting).map_or(default, |value| {
                value.trim_end_matches(|unit: char| !unit.is_ascii_digit()).parse().unwrap()
            });
            assert!(cache >= default, "{name}: {engine:?} {cache}");
        }
    }
}

/// Of data that fit into memory, an engine reads nothing with its defaults either, as these get the memory.
#[test]
fn defaults_are_compared_with_the_memory_of_the_workload() {
    let workload = Workload { memory_bytes: 256 << 30, ..workload::preset("ycsb-c").unwrap() };
    for engine in Advice::new(&workload, &profile(FULL), &EngineName::ALL).engines {
        // A filter spares RocksDB the processor time of blocks in memory.
        let filters = engine.settings.iter().find(|setting| setting.name == "filter_policy");
        let by_filters = filters.and_then(|filter| filter.gain).map_or(1.0, |gain| gain.value);
        assert!(engine.gain.value < 1.3 * by_filters, "{:?}: {:?}", engine.engine, engine.gain);
        if by_filters > 1.0 {
            assert_eq!(engine.default_bound.describe(), "processor");
        }
        let caches = engine.settings.iter().filter(|setting| {
            ["cache_size", "cache_bytes", "block_cache", "innodb_buffer_pool_size"].contains(&setting.name)
        });
        assert!(caches.clone().count() == 1 && caches.clone().all(|cache| cache.gain.is_none()));
    }
}

#[test]
fn mariadb_has_smaller_pages_only_where_they_hold_many_records_and_never_larger_ones() {
    let page = |value_bytes: u64, range_bytes: u64| {
        let mut workload = workload::preset("ycsb-c").unwrap();
        (workload.memory_bytes, workload.records.count) = (256 << 20, 10_000_000);
        workload.records.value_bytes = value_bytes;
        if range_bytes > 0 {
            (workload.operations.point_hits, workload.operations.ranges) = (0.0, 1.0);
            workload.operations.range_bytes = range_bytes;
        }
        let advice = Advice::new(&workload, &profile(FULL), &[EngineName::Mariadb]).engines.remove(0);
        advice.value("innodb_page_size").map(str::to_owned)
    };
    assert_eq!(page(1000, 0), None);
    assert_eq!(page(100, 0).as_deref(), Some("4k"));
    assert_eq!(page(100, 50 << 10), None);
}

#[test]
fn mariadbs_notes_say_where_the_partition_should_begin() {
    let note = |chunk_kib: u64, hot_kib: u64| {
        let mut text: serde_json::Value = serde_json::from_str(FULL).unwrap();
        for (name, kib) in [("chunk_bytes", chunk_kib), ("hot_offset_bytes", hot_kib)] {
            text["learned"][name]["estimate"]["value"] = (kib * 1024).into();
        }
        let workload = workload::preset("ycsb-c").unwrap();
        let advice = Advice::new(&workload, &profile(&text.to_string()), &[EngineName::Mariadb]);
        advice.engines[0].notes.iter().find(|note| note.contains("hot location")).cloned()
    };
    // The paper's SSD-S: pages of 16 KiB share its chunks, so that only those of 64 KiB can be at hot locations.
    let of_large = note(64, 32).unwrap();
    for words in ["innodb_page_size = 64k", "32 KiB after a multiple of 64 KiB", "-C 65536", "40 % less time"]
    {
        assert!(of_large.contains(words), "no {words:?}: {of_large}");
    }
    // Its SSD-T: all pages are, on a partition as most are.
    let of_small = note(4, 0).unwrap();
    assert!(of_small.contains("should begin at a multiple of 4 KiB"), "{of_small}");
    // No page of InnoDB is as large as that.
    assert_eq!(note(128, 64), None);
}

#[test]
fn a_profile_without_writes_gives_wider_intervals_and_says_so() {
    let workload = workload::preset("ycsb-a").unwrap();
    let mut without: serde_json::Value = serde_json::from_str(FULL).unwrap();
    for model in ["dam", "pdam", "affine", "mqssd"] {
        without["models"][model]["costs"]["writes"] = serde_json::Value::Null;
    }
    let [full, reads] = [FULL, &without.to_string()].map(|text| Advice::new(&workload, &profile(text), &[]));
    let width = |advice: &Advice| {
        let widths = advice.ranking.rows.iter().map(|row| row.rate_per_second.high / row.rate_per_second.low);
        widths.fold(1.0, f64::max)
    };
    assert!(width(&reads) > width(&full), "{} {}", width(&reads), width(&full));
    let known = ["s(k)", "β(k)", "writes: short bursts"];
    let is_known = |note: &String| known.iter().any(|start| note.starts_with(start));
    assert!(full.notes.iter().all(is_known), "{:?}", full.notes);
    let says = reads.notes.iter().any(|note| note.contains("writes were not measured"));
    assert!(says, "{:?}", reads.notes);
}

#[test]
fn a_profile_that_knows_nothing_gives_advice_too() {
    let mut profile = profile(FULL);
    profile.models = None;
    profile.comparison = None;
    profile.measurements.flush.clear();
    let advice = Advice::new(&workload::preset("ycsb-a").unwrap(), &profile, &EngineName::ALL);
    assert!(advice.notes.iter().any(|note| note.contains("nothing was measured")), "{:?}", advice.notes);
    assert!(advice.notes.iter().any(|note| note.contains("flush was not run")), "{:?}", advice.notes);
    let rate = advice.ranking.rows[0].rate_per_second;
    assert!(rate.high / rate.low > 50.0, "{rate:?}");
}

/// A model that misses mixed workloads by half says less of engines than one that misses none.
#[test]
fn the_error_of_mixed_workloads_widens_the_intervals() {
    let width = |error: f64| {
        let mut profile = profile(FULL);
        let rows = &mut profile.comparison.as_mut().unwrap().rows;
        rows.iter_mut().filter(|row| row.access.is_none()).for_each(|row| row.median_relative_error = error);
        // Flushes would hide the costs of reads and writes.
        let mix = Workload { durability: Durability::None, ..workload::preset("ycsb-a").unwrap() };
        let advice = Advice::new(&mix, &profile, &[]);
        let rate = advice.ranking.rows[0].rate_per_second;
        rate.high / rate.low
    };
    assert!(width(1.0) > 1.2 * width(0.0), "{} {}", width(1.0), width(0.0));
}

/// Nothing that the profile does not have is called learned, and what stands in is called assumed.
#[test]
fn files_call_nothing_learned_that_is_not() {
    let mut nothing = profile(OLD);
    let learned = &mut nothing.learned;
    for value in [
        &mut learned.desirable_write_bytes,
        &mut learned.stripe_bytes,
        &mut learned.flash_page_bytes,
        &mut learned.best_page_iops_bytes,
        &mut learned.depth_90,
        &mut learned.parallelism,
        &mut learned.half_bandwidth_bytes,
    ] {
        value.estimate = Estimate::Undetermined { why: "too little time".into() };
    }
    nothing.decisions.iter_mut().for_each(|decision| decision.from_default = true);
    nothing.measurements = Default::default();
    nothing.models = None;
    let advice = Advice::new(&workload::preset("ycsb-a").unwrap(), &nothing, &EngineName::ALL);
    for engine in &advice.engines {
        let text = engine.file.replace(['#', '-', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for learned in text.split("Learned: ").skip(1) {
            let number = learned.split(". ").next().unwrap();
            let is_known = number.starts_with("none") || number.starts_with("see ");
            assert!(is_known, "{:?}: {number}", engine.engine);
        }
    }
    let mariadb = advice.engines.iter().find(|one| one.engine == EngineName::Mariadb).unwrap();
    let threads = mariadb.settings.iter().find(|one| one.name == "innodb_read_io_threads").unwrap();
    assert_eq!(threads.number, "undetermined: too little time");
}

#[test]
fn more_memory_clients_and_less_to_write_never_lower_a_rate() {
    let profile = profile(FULL);
    let base = workload::preset("ycsb-a").unwrap();
    let rate =
        |workload: &Workload| Advice::new(workload, &profile, &[]).ranking.rows[0].rate_per_second.value;
    let more_memory = Workload { memory_bytes: base.memory_bytes * 4, ..base.clone() };
    let more_clients = Workload { clients: base.clients * 2, ..base.clone() };
    let reads = workload::preset("ycsb-b").unwrap();
    for better in [more_memory, more_clients, reads] {
        assert!(rate(&better) >= rate(&base) * 0.999, "{better:?}");
    }
}

#[test]
fn a_lifetime_budget_limits_the_rate_to_what_it_allows() {
    let mut workload = workload::preset("ycsb-a").unwrap();
    let text =
        workload::print(&workload) + "[lifetime]\ndrive_writes_per_day = 0.3\ndrive_bytes = \"500GB\"\n";
    workload = workload::parse(&text).unwrap();
    let advice = Advice::new(&workload, &profile(FULL), &[]);
    let row = &advice.ranking.rows[0];
    let allowed = 0.3 * 500e9;
    assert!((row.written_bytes_per_day.value / allowed - 1.0).abs() < 1e-6, "{row:?}");
    assert!((row.lifetime_years.unwrap().value - 5.0).abs() < 1e-6, "{row:?}");
}

#[test]
fn durability_is_weakened_only_where_the_workload_allows_it() {
    let profile = profile(FULL);
    let file_of = |durability| {
        let workload = Workload { durability, ..workload::preset("ycsb-a").unwrap() };
        let advice = Advice::new(&workload, &profile, &EngineName::ALL);
        advice.engines.iter().map(|engine| engine.file.clone()).collect::<Vec<_>>().join("\n")
    };
    const LAZY: [&str; 3] =
        ["PRAGMA synchronous = NORMAL", "innodb_flush_log_at_trx_commit = 2", "Durability::Buffered"];
    let short = Durability::Group { window_us: 1000 };
    for (durability, lazy) in [
        (Durability::Sync, [false, false, false]),
        (short, [false, false, false]),
        (Durability::Group { window_us: 2_000_000 }, [false, true, false]),
        (Durability::None, [true, true, true]),
    ] {
        let file = file_of(durability);
        assert_eq!(LAZY.map(|text| file.contains(text)), lazy, "{durability:?}");
        let synced = file.contains("\ntransaction_sync=(enabled=true,method=fsync)");
        assert_eq!(synced, durability != Durability::None, "{durability:?}");
        assert!(!file.contains("innodb_doublewrite = 0"), "{durability:?}");
    }
}

#[test]
fn the_rotational_flag_is_not_consulted() {
    let workload = workload::preset("ycsb-a").unwrap();
    let texts = [Some(true), Some(false), None].map(|rotational| {
        let mut profile = profile(FULL);
        profile.provenance.identity.rotational = rotational;
        let advice = Advice::new(&workload, &profile, &EngineName::ALL);
        format!("{advice:?}")
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
}

/// Rate of the first design of a family, of a profile that is changed.
fn changed(workload: &Workload, family: Family, change: impl Fn(&mut serde_json::Value)) -> f64 {
    let mut profile: serde_json::Value = serde_json::from_str(FULL).unwrap();
    change(&mut profile);
    let advice = Advice::new(workload, &self::profile(&profile.to_string()), &[]);
    advice.ranking.rows.iter().find(|row| row.family == family).unwrap().rate_per_second.value
}

/// Updates or look-ups at places of their own, by clients that keep the drive busy.
fn random(look_ups: f64) -> Workload {
    let mut workload = Workload {
        skew: 0.0,
        clients: 64,
        durability: Durability::None,
        memory_bytes: 256 << 20,
        ..workload::preset("ycsb-a").unwrap()
    };
    (workload.operations.point_hits, workload.operations.updates) = (look_ups, 1.0 - look_ups);
    workload
}

/// The term of the MQSSD model: half of reads and half of writes take 1 + γ·4ρ(1 - ρ) times their sum.
#[test]
fn reads_and_writes_together_take_as_long_as_they_were_measured_to() {
    let rate = |look_ups: f64, gamma: f64| {
        changed(&random(look_ups), Family::BTree, |profile| {
            profile["models"]["mqssd"]["interference"] =
                serde_json::json!({ "state": "kept", "gamma": gamma });
        })
    };
    assert_eq!(rate(1.0, 0.5), rate(1.0, 0.0), "nothing is written");
    let slower = rate(0.5, 0.0) / rate(0.5, 0.5);
    assert!((1.05..=1.5).contains(&slower), "{slower}");
    assert!(rate(0.5, -0.3) > rate(0.5, 0.0));
}

/// 40 MB/s of random writes of 4 KiB in the steady state are 10 thousand a second.
#[test]
fn writes_that_go_on_are_as_fast_as_in_the_steady_state() {
    let rate = |look_ups: f64, bytes_per_second: f64| {
        changed(&random(look_ups), Family::BTree, |profile| {
            profile["measurements"]["sustain"] = serde_json::json!({
                "request_bytes": 4096, "concurrency": 32, "rounds": [], "steady": true,
                "steady_from_round": 1, "burst_bytes_per_second": 1e9,
                "sustained_bytes_per_second":
                    { "state": "determined", "value": bytes_per_second, "low": bytes_per_second, "high": bytes_per_second },
            });
        })
    };
    assert_eq!(rate(1.0, 40e6), rate(1.0, 1e12), "nothing is written");
    let [slow, slower] = [40e6, 20e6].map(|bytes_per_second| rate(0.0, bytes_per_second));
    assert!(slow < 10_000.0 && slow < rate(0.0, 1e12), "{slow}");
    assert!((1.7..=2.0).contains(&(slow / slower)), "{slow} {slower}");
}

/// A database of 30 GB: 256 MiB in level 1 of 7.8, and the rest in proportion below; of 11 the last level has
/// nine tenths, so that a tree has as many levels or one fewer.
#[test]
fn levels_of_rocksdb_follow_from_its_version() {
    let mut workload = workload::preset("uniform-reads").unwrap();
    workload.records.count = 30_000_000;
    let of = |version: &str| {
        let version = EngineVersion::of(EngineName::Rocksdb, version).unwrap();
        Advice::for_versions(&workload, &profile(FULL), &[version]).engines.remove(0)
    };
    let (older, newer) = (of("7.8"), of("11"));
    let ratio = newer.default_rate_per_second.value / older.default_rate_per_second.value;
    assert!((0.8..1.6).contains(&ratio), "{ratio}");
    assert!(ratio != 1.0, "other levels have another price");
    let read_ahead = |advice: &flashgrain_advisor::engine::EngineAdvice| {
        let of_name = |name| advice.settings.iter().find(|setting| setting.name == name).map(|it| it.default);
        of_name("compaction_readahead_size")
    };
    assert_eq!((read_ahead(&older), read_ahead(&newer)), (Some("0"), Some("2097152")));
}

/// While a commit with a rollback journal flushes, nobody reads: 5 % of commits hold up 95 % of reads.
#[test]
fn a_log_gains_more_for_sqlite_than_its_flushes_where_few_commits_hold_up_many_reads() {
    let gain = |name: &str| {
        let workload = workload::preset(name).unwrap();
        Advice::new(&workload, &profile(FULL), &[EngineName::Sqlite]).engines.remove(0).gain.value
    };
    assert!(gain("uniform-reads") > 1.3, "{}", gain("uniform-reads"));
    assert!(gain("ycsb-c") < 1.05, "{}", gain("ycsb-c"));
}
