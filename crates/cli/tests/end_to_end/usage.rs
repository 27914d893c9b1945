//! Arguments that make no sense: exit code 2, a message that says what would, and nothing done.

use crate::support::{contents, fails, flashgrain, folder};

#[test]
fn absurd_numbers_are_refused_with_what_is_expected() {
    for (arguments, text) in [
        ("io . --depth 0", "1..=65536"),
        ("io . --depth 65537", "1..=65536"),
        ("io . --workers 0", "1..=1024"),
        ("io . --workers 8 --depth 4", "every worker needs at least one request"),
        ("io . --block-size 0", "more than zero"),
        ("io . --block-size 4Q", "unknown unit"),
        ("io . --block-size 1GiB", "a request may have up to 64 MiB"),
        ("io . --block-size 16MiB --depth 4096", "all in flight up to 4 GiB"),
        ("io . --read-share 3", "a share from 0 to 1"),
        ("io . --seconds=-5", "a time above zero"),
        ("io . --seconds 0", "a time above zero"),
        ("io . --rate 0", "above zero"),
        ("io . --pattern zigzag", "rand, seq, or a share"),
        ("io . --region 1GiB", "OFFSET:LENGTH"),
        ("io . --sync dsync", "--sync makes writes durable"),
        ("io . --polled --backend sync", "io_uring"),
        ("io . --backend spdk", "io_uring"),
        ("io sim:990pro --polled", "simulated drive"),
        ("bench lookup . --polled --backend libaio", "io_uring"),
        ("bench lookup mem --polled", "name a directory"),
        ("bench lookup sim:990pro --backend sync", "name a directory"),
        ("io", "TARGET"),
        ("tune --seconds forever", "a time above zero"),
        ("tune --write-bytes lots", "a size such as"),
        ("profile --only speed", "order"),
        ("frobnicate", "unrecognized subcommand"),
    ] {
        let folder = folder();
        fails(flashgrain().current_dir(&folder).args(arguments.split(' ')), 2, &[text]);
        assert!(contents(folder.path()).is_empty(), "{arguments} left something behind");
    }
}

#[test]
fn a_block_size_that_the_drive_cannot_take_is_refused() {
    let folder = folder();
    fails(
        flashgrain().arg("io").arg(folder.path()).args(["--file-size", "1MiB", "--block-size", "1000"]),
        2,
        &["1000", "multiple of"],
    );
}

#[test]
fn a_region_beyond_the_end_is_refused() {
    let folder = folder();
    fails(
        flashgrain().arg("io").arg(folder.path()).args(["--file-size", "1MiB", "--region", "512KiB:1MiB"]),
        2,
        &["1 MiB"],
    );
}

#[test]
fn files_and_directories_do_not_mix_in_a_stripe_set() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, [0; 8192]).unwrap();
    fails(flashgrain().arg("io").arg(folder.path()).arg(&file), 2, &["one kind"]);
}
