//! `flashgrain db` with what it cannot do: each time an error of its own that says what to do, and nothing is
//! lost.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use flashgrain::{DATA_FILE, Db};
use tempfile::TempDir;

use crate::db::{command, db, store};
use crate::support::{LoopDevice, contents, fails, flashgrain, folder, stderr, stdout};

#[test]
fn empty_keys_and_keys_and_values_over_the_limit() {
    let folder = store();
    db(&folder, "put store key value");
    for words in [&["put", "store", "", "value"][..], &["del", "store", ""]] {
        let mut command = flashgrain();
        command.current_dir(&folder).arg("db").args(words);
        fails(&mut command, 2, &["a key of 0 bytes", "1 to 1024"]);
    }
    let long = "k".repeat(1025);
    fails(&mut command(&folder, &format!("put store {long} v")), 2, &["a key of 1025 bytes", "1 to 1024"]);
    // A file without content takes no room.
    let file = fs::File::create(folder.path().join("large")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let mut put = command(&folder, "put store key --value-file large");
    fails(&mut put, 2, &["1073741825 bytes", "the limit is 1073741824", "divide it"]);
    assert_eq!(db(&folder, "scan store"), "key\tvalue\n");
}

#[test]
fn what_is_no_store_is_said_so_and_left_alone() {
    let folder = folder();
    let inside = |name: &str| folder.path().join(name);
    fs::create_dir(inside("empty")).unwrap();
    fs::write(inside("file"), "dear").unwrap();
    for (name, bytes) in [("short", vec![7; 1024]), ("other", vec![7; 1 << 20])] {
        fs::create_dir(inside(name)).unwrap();
        fs::write(inside(name).join(DATA_FILE), bytes).unwrap();
    }
    let before = contents(folder.path());
    for (name, why, remedy) in [
        ("nowhere", "there is nothing", "create a store"),
        ("empty", "has no file data.flashgrain", "create a store"),
        ("file", "neither a directory nor a block device", "name another place"),
        ("short", "it has 1024 bytes", "restore it from a backup"),
        ("other", "does not begin with a store's superblock", "restore it from a backup"),
    ] {
        for verb in ["get", "del", "put"] {
            let value = if verb == "put" { " value" } else { "" };
            let mut command = command(&folder, &format!("{verb} {name} key{value}"));
            fails(&mut command, 1, &[name, "not a Flashgrain store", why, remedy]);
        }
    }
    assert!(contents(folder.path()) == before, "something was changed");
}

/// One copy is enough to open a store: only a check tells of the others.
#[test]
fn damaged_copies_of_the_superblock_are_counted_until_none_is_left() {
    let folder = store();
    db(&folder, "put store key value");
    let path = folder.path().join("store").join(DATA_FILE);
    let places = [0, 16, 64, 80].map(|kib: u64| kib << 10);
    let (whole, file) = (fs::read(&path).unwrap(), fs::OpenOptions::new().write(true).open(&path).unwrap());
    for (count, place) in (1..).zip(&places[..3]) {
        file.write_all_at(&[7; 4096], *place).unwrap();
        let are = if count == 1 { "is" } else { "are" };
        let told = format!("{count} of 4 copies of the superblock {are} damaged");
        let mut check = command(&folder, "check store");
        fails(&mut check, 1, &[&told, "nothing is lost"]);
        assert!(stdout(&check.assert()).starts_with("sound: 1 tree, 1 record in"));
    }
    db(&folder, "put store other value");
    db(&folder, "put store third value");
    assert!(db(&folder, "check store").starts_with("sound: 1 tree, 3 records in"));
    for all in [7, 0] {
        fs::write(&path, &whole).unwrap();
        places.iter().for_each(|place| file.write_all_at(&[all; 4096], *place).unwrap());
        let said = stderr(&command(&folder, "check store").assert().code(1));
        assert!(said.contains("restore it from a backup") && !said.contains("create"), "{said}");
    }
}

/// Bit by bit: no part of the store is trusted to check itself.
fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc)))
}

#[test]
fn a_store_of_another_format_version_is_not_touched() {
    let folder = store();
    let path = folder.path().join("store").join(DATA_FILE);
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut head = vec![0; 256 << 10];
    file.read_exact_at(&mut head, 0).unwrap();
    for (number, sector) in head.chunks_exact_mut(512).enumerate() {
        if sector.starts_with(b"flshgrn") {
            sector[12..16].copy_from_slice(&2_000_000_u32.to_le_bytes());
            let checksum = crc32c(&sector[12..]);
            sector[8..12].copy_from_slice(&checksum.to_le_bytes());
            file.write_all_at(sector, number as u64 * 512).unwrap();
        }
    }
    let texts =
        ["format version 2000000", "this program knows 13", "the version of Flashgrain that wrote it"];
    fails(&mut command(&folder, "get store key"), 1, &texts);
    fails(&mut command(&folder, "put store key value"), 1, &texts);
    let mut now = vec![0; 256 << 10];
    file.read_exact_at(&mut now, 0).unwrap();
    assert!(now == head, "the store was changed");
}

#[test]
fn a_second_opener_is_told_who_keeps_it_away() {
    let folder = store();
    let first =
        Db::builder().path(folder.path().join("store")).workers(1).cache_bytes(4 << 20).open().unwrap();
    for arguments in ["get store key", "put store key value", "check store", "stats store"] {
        fails(
            &mut command(&folder, arguments),
            1,
            &["store: another process has this store open; end it first", "back it up", "open the copy"],
        );
    }
    first.tree("default").unwrap().insert("key", "first").unwrap();
    first.backup(Db::builder().path(folder.path().join("copy")).workers(1).cache_bytes(4 << 20)).unwrap();
    assert_eq!(db(&folder, "get copy key"), "first\n", "beside the writer of the store");
    drop(first);
    assert_eq!(db(&folder, "get store key"), "first\n");
}

#[test]
fn a_cache_too_small_is_refused_with_the_least() {
    let folder = store();
    for arguments in ["get store key --cache 4KiB", "create other --cache 1000KiB"] {
        fails(&mut command(&folder, arguments), 2, &["too small", "at least 1048576 bytes"]);
    }
    assert!(!folder.path().join("other").exists());
}

#[test]
fn a_missing_member_of_a_striped_store_is_named() {
    let folder = folder();
    db(&folder, "create one,two,three --log-size 1MiB");
    db(&folder, "put one,two,three key value");
    let inside = |name: &str| folder.path().join(name);
    fs::rename(inside("two"), inside("away")).unwrap();
    let texts =
        ["two: this member of the store that one belongs to is missing", "there is nothing", "bring it back"];
    fails(&mut command(&folder, "get one,two,three key"), 1, &texts);
    fs::create_dir(inside("two")).unwrap();
    fails(
        &mut command(&folder, "get one,two,three key"),
        1,
        &["two: this member", "has no file data.flashgrain"],
    );
    fails(
        &mut command(&folder, "get one,three key"),
        1,
        &["3 members, 2 of them were named", "name them all"],
    );
    fails(&mut command(&folder, "get one,one,three key"), 1, &["3 members, 2 of them were named"]);
    db(&folder, "create stranger --log-size 1MiB");
    let mut with_stranger = command(&folder, "get one,stranger,three key");
    fails(&mut with_stranger, 1, &["stranger: it belongs to another store"]);
    assert_eq!(db(&folder, "get one,away,three key"), "value\n");
}

#[test]
fn a_truncated_file_is_noticed_when_it_is_opened() {
    let folder = store();
    db(&folder, "put store key value");
    let path = folder.path().join("store").join(DATA_FILE);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    for (shorter, texts) in [
        (length - 4096, ["it was truncated", "restore it from a copy"]),
        (1 << 20, ["it was truncated", "restore it from a copy"]),
        (4096, ["not a Flashgrain store", "it has 4096 bytes"]),
        // As if its making had been cut off: nothing is in it.
        (0, ["not a Flashgrain store", "was being made"]),
    ] {
        file.set_len(shorter).unwrap();
        for verb in ["get store key", "check store", "put store key other"] {
            fails(&mut command(&folder, verb), 1, &texts);
        }
    }
}

#[test]
fn a_block_device_is_made_a_store_only_with_the_flag_that_names_it() {
    let folder = folder();
    let image = folder.path().join("image");
    fs::write(&image, vec![7; 64 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image) else { return };
    let path = &device.0;
    fails(&mut command(&folder, &format!("create {path}")), 1, &[path, "destroys", "--destroy-contents-of"]);
    let mut other = command(&folder, &format!("create {path} --destroy-contents-of /dev/other"));
    fails(&mut other, 1, &[path, "--destroy-contents-of"]);
    assert!(fs::read(&image).unwrap() == vec![7; 64 << 20], "it was written without consent");
    fails(&mut command(&folder, &format!("get {path} key")), 1, &["not a Flashgrain store"]);
    db(&folder, &format!("create {path} --destroy-contents-of {path}"));
    db(&folder, &format!("put {path} key value"));
    assert_eq!(db(&folder, &format!("get {path} key")), "value\n");
    assert!(db(&folder, &format!("check {path}")).contains("sound: 1 tree, 1 record in"));
}

/// Puts 2 MiB under `prefix0`, `prefix1` and so on until the store is full; how many went in.
fn fill(folder: &TempDir, store: &str, prefix: &str) -> usize {
    for number in 0..200 {
        let put = format!("put {store} {prefix}{number} --value-file value");
        let assert = command(folder, &put).assert();
        let (code, said) = (assert.get_output().status.code(), stderr(&assert));
        if code != Some(0) {
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("the store is full: "), "{said}");
            return number;
        }
    }
    panic!("more went in than there is room for");
}

#[test]
fn a_full_device_refuses_writes_reads_on_and_takes_more_when_something_is_removed() {
    let folder = folder();
    let image = folder.path().join("image");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = LoopDevice::over(&image) else { return };
    let store = &device.0;
    let value: Vec<u8> =
        (0..2_u32 << 20).map(|index| (index.wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
    fs::write(folder.path().join("value"), &value).unwrap();
    db(&folder, &format!("create {store} --destroy-contents-of {store} --log-size 1MiB"));
    let first = fill(&folder, store, "a");
    assert!(first >= 16, "{first} values of 2 MiB in 64 MiB");
    let get = |key: &str| {
        db(&folder, &format!("get {store} {key} --output back"));
        assert!(fs::read(folder.path().join("back")).unwrap() == value, "{key}");
    };
    (0..first).for_each(|number| get(&format!("a{number}")));
    assert!(db(&folder, &format!("check {store}")).contains(&format!("{first} records")));
    (0..first / 2).for_each(|number| assert_eq!(db(&folder, &format!("del {store} a{number}")), ""));
    let second = fill(&folder, store, "b");
    assert!(second >= 1, "none went into the room of {}", first / 2);
    get("b0");
    get(&format!("a{}", first - 1));
    let keys = db(&folder, &format!("scan {store} --keys-only"));
    assert_eq!(keys.lines().count(), first - first / 2 + second);
}

/// Output of a script that runs with a file system of `size` at `folder`; `None`, and a note, where mounting
/// is not allowed.
fn with_small_file_system(folder: &Path, size: &str, script: &str) -> Option<assert_cmd::Command> {
    let mount = format!("mount -t tmpfs -o size={size} none \"$0\"");
    let root = fs::metadata("/proc/self").unwrap();
    let user: &[&str] =
        if std::os::unix::fs::MetadataExt::uid(&root) == 0 { &[] } else { &["--user", "--map-root-user"] };
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]).args(user);
        command
    };
    let probe = unshare().args(["sh", "-c", &mount]).arg(folder).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mounting is not allowed here");
        return None;
    }
    let mut command = unshare();
    command
        .args(["sh", "-c", &format!("{mount} && cd \"$0\" && {script}")])
        .arg(folder)
        .arg(env!("CARGO_BIN_EXE_flashgrain"));
    Some(assert_cmd::Command::from_std(command))
}

#[test]
fn a_full_file_system_is_said_so_when_a_store_is_made_in_it_and_nothing_is_left() {
    let folder = folder();
    let script = "{ \"$1\" db create store; echo \"code $?\"; ls | wc -l; } 2>&1";
    let Some(mut command) = with_small_file_system(folder.path(), "1m", script) else { return };
    let said = stdout(&command.assert());
    for text in ["the store is full", "No space left", "make room there", "code 1\n0\n"] {
        assert!(said.contains(text), "{text:?} in\n{said}");
    }
}

#[test]
fn a_store_that_cannot_grow_any_more_refuses_writes_and_grows_when_there_is_room_again() {
    let folder = folder();
    // The ballast goes when the store is full.
    let script = r#"head -c 16777216 /dev/zero | tr '\0' v > value; head -c 50331648 /dev/zero > ballast
        "$1" db create store --log-size 1MiB > made && {
        n=0; while "$1" db put store a$n --value-file value; do n=$((n+1)); done
        "$1" db get store a0 | head -c 16777216 | cmp - value && "$1" db check store && rm ballast
        "$1" db put store more --value-file value && echo "took more after $n"; } 2>&1"#;
    let Some(mut command) = with_small_file_system(folder.path(), "320m", script) else { return };
    let said = stdout(&command.assert());
    for text in ["the store is full", "sound: 1 tree, ", "took more after "] {
        assert!(said.contains(text), "{text:?} in\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}
