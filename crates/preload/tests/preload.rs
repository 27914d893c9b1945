//! Programs with the library: this one again, which plays a part in a process of its own.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The part that a process plays.
const PART: &str = "FLASHGRAIN_TEST_PART";

const LOG: &str = "host-bin.000001";

/// This program as `part`, in a folder and with the library.
fn playing(part: &str, folder: &Path) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(&own);
    command
        .args(["--exact", "plays_its_part", "--include-ignored", "--nocapture"])
        .env(PART, part)
        .env("LD_PRELOAD", own.with_file_name("libflashgrain_preload.so"))
        .env("FLASHGRAIN_RECORD_FILES", "*-bin.[0-9]*:other.log")
        .env("FLASHGRAIN_FLASH_PAGE", "4096")
        .current_dir(folder);
    command
}

fn plays(part: &str, folder: &Path) -> Output {
    let output = playing(part, folder).output().unwrap();
    assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stdout));
    output
}

#[test]
#[ignore = "the other tests run it, with the library"]
fn plays_its_part() {
    match std::env::var(PART).as_deref() {
        Ok("writer") => write_all_ways(),
        Ok("reader") => read_back(),
        Ok("far") => write_far_behind_the_end(),
        Ok("appender") => append_for_ever(),
        Ok("checker") => check_appended(),
        Ok("adder") => add_beside_others(),
        Ok("counter") => {
            println!("whole {}", fs::read(LOG).unwrap().chunks_exact(40).filter(is_whole).count())
        }
        _ => {}
    }
}

/// Writes as databases do, and what there should be into a file of another name.
fn write_all_ways() {
    let mut model = Vec::new();
    let mut log = OpenOptions::new().write(true).create(true).truncate(true).open(LOG).unwrap();
    for number in 0..2000_usize {
        let record = vec![number as u8; 1 + number * 37 % 600];
        log.write_all(&record).unwrap();
        model.extend(record);
    }
    log.write_all_at(b"flag", 21).unwrap();
    model[21..25].copy_from_slice(b"flag");
    let parts = [std::io::IoSlice::new(b"one "), std::io::IoSlice::new(b"record")];
    assert_eq!(log.write_vectored(&parts).unwrap(), 10);
    model.extend(b"one record");
    assert_eq!(log.stream_position().unwrap(), model.len() as u64);
    for length in [log.metadata().unwrap().len(), fs::metadata(LOG).unwrap().len()] {
        assert_eq!(length, model.len() as u64);
    }
    let mut other = File::open(LOG).unwrap();
    let mut found = Vec::new();
    other.read_to_end(&mut found).unwrap();
    assert!(found == model);
    // What is appended later is found by those who have read to the end.
    let mut appending = OpenOptions::new().append(true).open(LOG).unwrap();
    appending.write_all(b"appended").unwrap();
    model.extend(b"appended");
    found.clear();
    assert_eq!(other.read_to_end(&mut found).unwrap(), 8);
    log.set_len(50_000).unwrap();
    model.truncate(50_000);
    assert_eq!(log.seek(SeekFrom::End(0)).unwrap(), 50_000);
    let mut duplicate = log.try_clone().unwrap();
    duplicate.write_all(b"duplicate").unwrap();
    log.write_all(b"original").unwrap();
    model.extend(b"duplicateoriginal");
    fs::write("model", &model).unwrap();
}

fn read_back() {
    let model = fs::read("model").unwrap();
    assert!(fs::read(LOG).unwrap() == model);
    // Copies are plain.
    fs::copy(LOG, "copy").unwrap();
    let mut part = [0; 100];
    File::open(LOG).unwrap().read_exact_at(&mut part, 4000).unwrap();
    assert!(model[4000..4100] == part);
}

/// A gap is written as zeros, and a large one would fill the drive.
fn write_far_behind_the_end() {
    let log = OpenOptions::new().write(true).open(LOG).unwrap();
    let refused = log.write_all_at(b"far", 200_000_000).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::FileTooLarge);
}

/// Appends records with their numbers, and says which are synchronised.
fn append_for_ever() {
    let mut log = OpenOptions::new().append(true).create(true).open(LOG).unwrap();
    let first = log.metadata().unwrap().len() / 275;
    for number in first.. {
        let mut record = vec![number as u8; 275];
        record[..8].copy_from_slice(&number.to_le_bytes());
        log.write_all(&record).unwrap();
        log.sync_data().unwrap();
        println!("synchronised {number}");
    }
}

fn check_appended() {
    let bytes = fs::read(LOG).unwrap();
    let records = bytes.chunks(275).enumerate();
    for (number, record) in records.clone().filter(|(_, record)| record.len() == 275) {
        assert_eq!(record[..8], (number as u64).to_le_bytes());
        assert!(record[8..].iter().all(|byte| *byte == number as u8));
    }
    println!("whole {}", bytes.len() / 275);
    // A database cuts off what is not whole.
    OpenOptions::new().write(true).open(LOG).unwrap().set_len(bytes.len() as u64 / 275 * 275).unwrap();
}

/// Appends records of its own, while others do.
fn add_beside_others() {
    let mut log = OpenOptions::new().append(true).create(true).open(LOG).unwrap();
    let record = [std::process::id() as u8; 40];
    (0..300).for_each(|_| log.write_all(&record).unwrap());
}

fn is_whole(record: &&[u8]) -> bool {
    record.iter().all(|byte| *byte == record[0])
}

/// A shell hands its files to programs that know nothing of records.
#[test]
fn a_log_becomes_no_programs_output() {
    let folder = tempfile::tempdir().unwrap();
    plays("writer", folder.path());
    let own = playing("reader", folder.path());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("echo lost >> {LOG}")]).current_dir(folder.path());
    shell.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(!shell.output().unwrap().status.success());
    plays("reader", folder.path());
}

#[test]
fn what_several_processes_append_is_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let adders: Vec<_> = (0..4).map(|_| playing("adder", folder.path()).spawn().unwrap()).collect();
    for mut adder in adders {
        assert!(adder.wait().unwrap().success());
    }
    let said = String::from_utf8(plays("counter", folder.path()).stdout).unwrap();
    assert_eq!(last_number(&said, "whole"), Some(4 * 300));
}

#[test]
fn a_program_finds_what_it_wrote_and_no_record_lies_over_two_flash_pages() {
    let folder = tempfile::tempdir().unwrap();
    plays("writer", folder.path());
    plays("far", folder.path());
    plays("reader", folder.path());
    let [model, copy, log] = ["model", "copy", LOG].map(|name| fs::read(folder.path().join(name)).unwrap());
    assert!(model == copy && log.starts_with(b"Flashgrain file\0"));
    assert!(
        log.len() > model.len() + 4096 && log.len() < model.len() / 10 * 11 + 4096 + 4096,
        "{}",
        log.len()
    );
}

/// The last number after this word in what a process said.
fn last_number(said: &str, word: &str) -> Option<u64> {
    let mut numbers = said.lines().filter_map(|line| line.split_once(word)?.1.trim().parse().ok());
    numbers.next_back()
}

#[test]
fn what_was_synchronised_survives_kills() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let mut appender = playing("appender", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(appender.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while said.matches("synchronised").count() < 10 + 13 * round {
            said += &(lines.next().unwrap().unwrap() + "\n");
        }
        appender.kill().unwrap();
        appender.wait().unwrap();
        lines.for_each(|line| said += &(line.unwrap() + "\n"));
        // The last line may have been cut off.
        let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let synchronised = last_number(whole, "synchronised").unwrap();
        let checked = String::from_utf8(plays("checker", folder.path()).stdout).unwrap();
        assert!(last_number(&checked, "whole").unwrap() > synchronised, "{synchronised}, {checked}");
    }
}

#[test]
fn other_files_stay_as_they_are_and_a_page_without_sense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = playing("writer", folder.path()).env("FLASHGRAIN_RECORD_FILES", "nothing").output().unwrap();
    assert!(output.status.success());
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read(LOG) == read("model"));
    // It goes on as it began.
    plays("reader", folder.path());
    let output = playing("writer", folder.path()).env("FLASHGRAIN_FLASH_PAGE", "5000").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("power of two from 512 to 65536"), "{said}");
    assert!(read(LOG) == read("model"));
    fs::write(
        folder.path().join(LOG),
        b"Flashgrain file\0, but damaged behind its magic, for all that is known of it",
    )
    .unwrap();
    let output = playing("reader", folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("the layout header is damaged"), "{said}");
}
