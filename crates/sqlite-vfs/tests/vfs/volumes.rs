//! Databases in volumes: on simulated drives in virtual time, and on files that are striped over.

use std::sync::Arc;

use flashgrain_device::{Device as _, Op, OpenOptions};
use flashgrain_sqlite_vfs::{Volume, VolumeOptions, create_files, open_files};
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, PowerCut, Survivors, Trigger};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::ErrorCode;

use crate::kills::number;
use crate::model::live;
use crate::support::{
    LAYOUTS, Mounted, check, count, create, drive, fill, open, pragma, try_open, write_side_by_side,
};

const MODES: [&str; 5] = ["delete", "truncate", "persist", "memory", "wal"];

#[test]
fn random_transactions_do_what_a_map_does() {
    let volume = Mounted::create("model", drive());
    let mut seed = 1;
    for layout in [LAYOUTS[0], LAYOUTS[3]] {
        for mode in MODES {
            live(&volume.path(&format!("{layout}-{mode}")), layout, mode, seed);
            seed += 1;
        }
    }
}

#[test]
fn a_volume_is_found_again() {
    let device = drive();
    for mode in ["delete", "wal"] {
        let volume = Mounted::create("again", Arc::clone(&device) as _);
        let connection = open(&volume.path("database"), LAYOUTS[0]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        fill(&connection, 0..300);
        // Without closing: a log is left behind.
        std::mem::forget(connection);
        drop(volume);
        let volume = Mounted::open("again", Arc::clone(&device) as _);
        let connection = open(&volume.path("database"), "plain");
        assert_eq!(count(&connection), 300, "{mode}");
        check(&connection);
        drop(connection);
        assert_eq!(volume.volume.as_ref().unwrap().names(), ["database"], "{mode}");
    }
}

#[test]
fn several_devices_are_one_volume() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3).map(|number| folder.path().join(number.to_string())).collect();
    let (device, options) = (OpenOptions::default(), VolumeOptions::default());
    {
        let volume = Mounted::mount("set", create_files(&paths, 48 << 20, &device, options).unwrap());
        let connection = open(&volume.path("database"), "plain");
        create(&connection);
        connection.execute_batch("PRAGMA cache_size = 10; BEGIN").unwrap();
        fill(&connection, 0..20_000);
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&connection), 20_000);
        assert!(open_files(&paths, &device, options).is_err(), "one at a time");
    }
    let volume = Mounted::mount("set", open_files(&paths, &device, options).unwrap());
    let connection = open(&volume.path("database"), "plain");
    connection.execute_batch("PRAGMA cache_size = 10").unwrap();
    assert_eq!(count(&connection), 20_000);
    check(&connection);
}

/// Members are as large as those of the other volume, and have whole directories of theirs.
#[test]
fn members_of_another_volume_and_in_another_order_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (device, options) = (OpenOptions::default(), VolumeOptions::default());
    let [one, other] = ["one", "other"].map(|volume| {
        let paths: Vec<_> = (0..3).map(|number| folder.path().join(format!("{volume}-{number}"))).collect();
        let made = Mounted::mount(volume, create_files(&paths, 24 << 20, &device, options).unwrap());
        let connection = open(&made.path("database"), "plain");
        create(&connection);
        fill(&connection, 0..300);
        paths
    });
    let refused = |paths: [&std::path::PathBuf; 3], kind: &str, texts: &[&str]| {
        let error = open_files(&paths.map(Clone::clone), &device, options).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(texts.iter().all(|text| error.to_string().contains(text)), "{error}");
    };
    refused([&one[0], &one[1], &other[2]], "member", &["other-2 belongs to another volume than", "one-0"]);
    refused([&other[0], &one[1], &one[2]], "member", &["one-1 belongs to another volume"]);
    refused([&one[0], &one[2], &one[1]], "member", &["one-2 is number 3", "named as number 2", "order"]);
    let error = open_files(&one[..2], &device, options).unwrap_err();
    assert!(error.to_string().contains("is one of 3 that the volume is made of, and 2 are named"), "{error}");
    refused([&one[0], &one[0], &one[2]], "twice", &["one-0 is named twice"]);
    let empty = folder.path().join("empty");
    std::fs::write(&empty, vec![0; std::fs::metadata(&one[0]).unwrap().len() as usize]).unwrap();
    refused([&one[0], &empty, &one[2]], "member", &["empty is no part of the volume of", "one-0"]);
    for (volume, paths) in [("one", &one), ("other", &other)] {
        let found = Mounted::mount(volume, open_files(paths, &device, options).unwrap());
        assert_eq!(count(&open(&found.path("database"), "plain")), 300);
    }
}

#[test]
fn scans_are_read_ahead_of() {
    let device = drive();
    let mut times = Vec::new();
    for read_ahead_bytes in [0, 1 << 20] {
        let options = VolumeOptions { read_ahead_bytes };
        let volume = Mounted::mount("scan", Volume::create(Arc::clone(&device) as _, options).unwrap());
        let connection = open(&volume.path("database"), "plain");
        create(&connection);
        connection.execute_batch("PRAGMA cache_size = 10; BEGIN").unwrap();
        fill(&connection, 0..20_000);
        connection.execute_batch("COMMIT").unwrap();
        let now = || device.simulation().unwrap().now();
        let began = now();
        let characters: i64 =
            connection.query_row("SELECT sum(length(content)) FROM records", [], |row| row.get(0)).unwrap();
        assert_eq!(characters, (0..20_000).map(|number| number % 700 * 2).sum::<i64>());
        times.push(now().since(began).0);
    }
    assert!(times[1] * 2 < times[0], "virtual nanoseconds: {times:?}");
}

#[test]
fn writers_and_readers_share_a_database() {
    let volume = Mounted::create("several", drive());
    for mode in ["delete", "wal"] {
        let path = volume.path(mode);
        let connection = open(&path, LAYOUTS[0]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        write_side_by_side(&path, "full");
        assert_eq!(count(&connection), 400);
        check(&connection);
    }
}

/// `FLASHGRAIN_CUTS` cuts (40) from the seed `FLASHGRAIN_SEED` (1).
#[test]
fn power_cuts_lose_no_acknowledged_transaction() {
    let seed = number("FLASHGRAIN_SEED", 1);
    let mut random = Pcg64::seed_from_u64(seed);
    for round in 0..number("FLASHGRAIN_CUTS", 40) {
        let mode = MODES[random.random_range(0..MODES.len())];
        // A journal in memory is gone with the power.
        let mode = if mode == "memory" { "delete" } else { mode };
        let device = drive();
        let volume = Mounted::create("cut", Arc::clone(&device) as _);
        let connection = open(&volume.path("database"), LAYOUTS[random.random_range(0..LAYOUTS.len())]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        // Below `extra`, a journal's removal is no promise.
        connection
            .execute_batch("PRAGMA cache_size = 5; PRAGMA synchronous = extra; PRAGMA user_version = 1")
            .unwrap();
        pragma::<i64>(&connection, "wal_autocheckpoint = 20");
        let survivors =
            [Survivors::None, Survivors::Random, Survivors::All][random.random_range(0..3)].clone();
        let cut = PowerCut { survivors, seed: random.random(), in_flight: true, ..PowerCut::default() };
        let event = device.events() + random.random_range(0..4000);
        device.inject(Fault { at: Trigger::Event(event), ..Fault::new(FaultKind::PowerCut(cut)) });
        let mut acknowledged = 0;
        while acknowledged < 100 {
            let numbers = format!(
                "WITH numbers (value) AS (SELECT {} UNION ALL SELECT value + 1 FROM numbers LIMIT 10) \
                 INSERT INTO records SELECT value, hex(zeroblob(value % 700)) FROM numbers",
                acknowledged * 10
            );
            let done = connection.execute_batch(&numbers);
            if done.is_err() {
                break;
            }
            acknowledged += 1;
        }
        std::mem::forget(connection);
        recovered(volume, &device, acknowledged, &format!("seed {seed}, round {round}, {mode}"));
    }
}

/// After the power is back, all acknowledged transactions are there, and at most one more.
fn recovered(volume: Mounted, device: &Arc<SimDevice>, acknowledged: u32, told: &str) {
    drop(volume);
    device.disarm_faults();
    device.power_on();
    let volume = Mounted::open("cut", Arc::clone(device) as _);
    let connection = open(&volume.path("database"), "plain");
    let found = count(&connection);
    assert!(found == acknowledged * 10 || found == acknowledged * 10 + 10, "{told}: {acknowledged}, {found}");
    check(&connection);
}

#[test]
fn names_without_a_volume_are_refused() {
    let volume = Mounted::create("refused", drive());
    drop(open(&volume.path("database"), "plain"));
    for path in ["/@nowhere/database", "/@refused", "/@refused/a/b"] {
        let error = try_open(path.as_ref(), "plain").unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen), "{path}");
    }
    let other = Volume::create(drive(), VolumeOptions::default()).unwrap();
    assert_eq!(flashgrain_sqlite_vfs::mount("@refused", other).unwrap_err().kind(), "mounted");
}

#[test]
fn a_full_volume_says_so_and_stays_whole() {
    let config = flashgrain_ssdsim::SimConfig::named("sim:960evo").unwrap().resized(64 << 20);
    let device = Arc::new(SimDevice::new(&config, "sim:960evo", 1).unwrap());
    let volume = Mounted::create("full", device);
    let connection = open(&volume.path("database"), LAYOUTS[0]);
    create(&connection);
    fill(&connection, 0..100);
    connection.execute_batch("CREATE TABLE blobs (content BLOB)").unwrap();
    let error = (0..200)
        .find_map(|_| connection.execute("INSERT INTO blobs VALUES (zeroblob(1000000))", []).err())
        .unwrap();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull));
    assert_eq!(count(&connection), 100);
    check(&connection);
}

#[test]
fn a_device_without_a_volume_is_refused() {
    let device = drive();
    let error = Volume::open(device, VolumeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "no volume");
}

#[test]
fn split_writes_end_where_stripes_do() {
    const STRIPE_BYTES: u64 = 64 << 10;
    let volume = Mounted::create("split", drive());
    let path = volume.path("database");
    let connection = open(&path, "hot:65536:32768&split=65536");
    connection.execute_batch("PRAGMA page_size = 65536").unwrap();
    create(&connection);
    connection.execute_batch("PRAGMA synchronous = full; PRAGMA cache_size = 10").unwrap();
    connection.execute_batch("BEGIN").unwrap();
    fill(&connection, 0..5000);
    connection.execute_batch("COMMIT").unwrap();
    // Files that grow have zeros where pieces wait.
    volume.volume.as_ref().unwrap().record(true);
    for round in 0..5 {
        connection.execute_batch("BEGIN").unwrap();
        fill(&connection, round * 1000..(round + 1) * 1000);
        connection.execute_batch("COMMIT").unwrap();
    }
    assert_eq!(count(&connection), 5000);
    let sent = volume.volume.as_ref().unwrap().record(false);
    let writes: Vec<_> = sent.iter().filter(|sent| sent.op == Op::Write && sent.file == "database").collect();
    assert!(writes.len() > 10);
    for write in writes {
        let end = write.offset_bytes + write.length_bytes - 1;
        assert_eq!(write.offset_bytes / STRIPE_BYTES, end / STRIPE_BYTES, "{write:?}");
    }
    check(&connection);
    drop(connection);
    let connection = open(&path, "plain");
    assert_eq!(count(&connection), 5000);
    check(&connection);
    for wrong in ["hot:65536:32768&split=0", "hot:65536:32768&split=65537"] {
        assert!(try_open(&volume.path("other"), wrong).is_err());
    }
}
