//! `flashgrain trace replay`: on simulated drives and on files, in both loops.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stderr, stdout};

/// A hundred writes and reads of 4 KiB in turns, a millisecond apart, and a flush.
fn trace() -> String {
    let mut trace = String::from("flashgrain trace 1\nname 0 /d/f\n");
    for number in 0..100_u64 {
        let kind = if number % 2 == 0 { 'W' } else { 'R' };
        trace += &format!("{kind} {} 1 0:{} - 4096 -\n", number * 1_000_000, number * 8192);
    }
    trace + "F 100000000 1 0:0 - 0 -\nend\n"
}

fn replayed(folder: &tempfile::TempDir, arguments: &[&str]) -> Value {
    let mut command = flashgrain();
    command.current_dir(folder).args(["trace", "replay", "a.trace"]).args(arguments).arg("--json");
    serde_json::from_str(&stdout(&command.assert().success())).unwrap()
}

#[test]
fn a_simulated_drive_serves_a_trace_in_both_loops_and_repeats_itself() {
    let folder = folder();
    fs::write(folder.path().join("a.trace"), trace()).unwrap();
    let open = replayed(&folder, &["sim:960evo"]);
    let count = |found: &Value, kind: &str| found[kind]["latency"]["count"].as_u64();
    for kind in ["reads", "writes"] {
        assert_eq!(count(&open, kind), Some(50), "{open}");
        assert!(open[kind]["latency"]["p50_us"].as_f64().unwrap() > 1.0, "{open}");
    }
    assert_eq!(count(&open, "flushes"), Some(1));
    let elapsed = |found: &Value| found["elapsed_s"].as_f64().unwrap();
    assert!(elapsed(&open) >= 0.1 && elapsed(&open) < 0.2, "as long as it was recorded: {open}");
    assert_eq!(open, replayed(&folder, &["sim:960evo"]), "virtual time repeats itself");
    let closed = replayed(&folder, &["sim:960evo", "--closed", "--depth", "8"]);
    assert!(elapsed(&closed) < 0.05, "as fast as it goes: {closed}");
    assert_eq!((&closed["pace"], &closed["depth"]), (&"closed".into(), &8.into()));
}

#[test]
fn recorded_latencies_stand_beside_replayed_ones() {
    let folder = folder();
    let with_latencies: String = trace().replace(" 4096 -\n", " 4096 5000\n");
    fs::write(folder.path().join("a.trace"), with_latencies).unwrap();
    let found = replayed(&folder, &["sim:960evo"]);
    for kind in ["reads", "writes"] {
        assert_eq!(found[kind]["recorded"]["count"], 50, "{found}");
        assert_eq!(found[kind]["recorded"]["p99_us"], 5.0, "{found}");
    }
    assert!(found["flushes"]["recorded"].is_null(), "{found}");
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "replay", "a.trace", "sim:960evo"]);
    let said = stdout(&command.assert().success());
    assert!(said.matches("recorded ").count() == 2 && said.contains("p99 5"), "{said}");
}

#[test]
fn a_folder_gets_a_scratch_file_and_existing_files_need_consent() {
    let folder = folder();
    fs::write(folder.path().join("a.trace"), trace()).unwrap();
    fs::write(folder.path().join("kept"), vec![7; 1 << 20]).unwrap();
    let found = replayed(&folder, &[".", "--speed", "10"]);
    assert_eq!(found["writes"]["latency"]["count"], 50);
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "replay", "a.trace", "kept", "--closed"]);
    fails(&mut command, 2, &["--destroy-contents-of"]);
    assert_eq!(
        fs::read(folder.path().join("kept")).unwrap(),
        vec![7; 1 << 20],
        "without consent nothing is written"
    );
    replayed(&folder, &["kept", "--closed", "--destroy-contents-of", "kept"]);
    assert_ne!(fs::read(folder.path().join("kept")).unwrap(), vec![7; 1 << 20]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "scratch files have no name");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("a.trace"), trace()).unwrap();
    fs::write(folder.path().join("cut.trace"), trace().strip_suffix("end\n").unwrap()).unwrap();
    fs::write(folder.path().join("empty.trace"), "flashgrain trace 1\nend\n").unwrap();
    let refused = |arguments: &[&str], code: i32, texts: &[&str]| {
        fails(flashgrain().current_dir(&folder).args(["trace", "replay"]).args(arguments), code, texts);
    };
    refused(&["cut.trace", "sim:960evo"], 1, &["cut.trace", "cut off"]);
    refused(&["empty.trace", "sim:960evo"], 2, &["no request to replay"]);
    refused(&["a.trace", "sim:960evo", "--file-size", "1MiB"], 2, &["--file-size"]);
    refused(&["a.trace", "none"], 1, &["open none", "No such file"]);
    refused(&["a.trace", "sim:960evo", "--speed", "0"], 2, &["factor above zero"]);
    fs::write(folder.path().join("new.trace"), "flashgrain trace 2\nend\n").unwrap();
    refused(&["new.trace", "sim:960evo"], 1, &["newer version of Flashgrain"]);
}

/// With consent, too, and by any name.
#[test]
fn the_trace_itself_is_no_target() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.trace"), trace()).unwrap();
    fs::hard_link(path("a.trace"), path("hard")).unwrap();
    std::os::unix::fs::symlink("a.trace", path("soft")).unwrap();
    for name in ["a.trace", "./a.trace", "hard", "soft"] {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["trace", "replay", "a.trace", name, "--closed"]);
        fails(command.args(["--destroy-contents-of", name]), 2, &["is the trace itself"]);
        assert_eq!(fs::read_to_string(path("a.trace")).unwrap(), trace());
    }
}

#[test]
fn a_target_without_room_for_a_request_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("a.trace"), trace()).unwrap();
    fs::write(folder.path().join("small"), "abc").unwrap();
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "replay", "a.trace", "small", "--closed"]);
    let said = stderr(&command.args(["--destroy-contents-of", "small"]).assert());
    // Through the page cache, requests may be as short as that.
    assert!(said.contains("too small to replay on") || said.contains("page cache"), "{said}");
}

#[test]
fn lines_may_end_as_on_windows() {
    let folder = folder();
    fs::write(folder.path().join("a.trace"), trace().replace('\n', "\r\n")).unwrap();
    let found = replayed(&folder, &["sim:960evo"]);
    assert_eq!(found["writes"]["latency"]["count"], 50);
}
