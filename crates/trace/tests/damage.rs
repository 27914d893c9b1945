//! Foreign, damaged and cut-off traces: what came before the damage counts, the error says where it is, and
//! nothing panics.

use std::num::NonZeroU64;

use flashgrain_trace::check::{Check, Drive, JudgedBy};
use flashgrain_trace::{Error, Grain, Reader};
use proptest::prelude::*;

const BEGINS: [&[u8]; 10] = [
    b"fio version 2 iolog\nf write 4096 512\n",
    b"fio version 3 iolog\n1 f write 4096 512\n",
    b"128166372003061629,usr,0,Read,7014609920,24576,41286\n",
    b"  8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]\n",
    b"openat(AT_FDCWD, \"f\", O_RDWR) = 3\n",
    b"\x07\x74\x61\x65",
    b"flashgrain trace 1\nname 0 f\nW 1 - 0:0 - 512 -\n",
    b"io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</f>, aio_nbytes=1, aio_offset=2}]) = 1\n",
    b"0 1 2 8 0\n",
    b"\x2a\0\0\x02\0\0\0\0\0\x02\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

fn judge_all(trace: &[u8]) -> (u64, Option<Error>) {
    let mut reader = match Reader::new(trace) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error)),
    };
    let grain = Grain {
        desirable_write_bytes: NonZeroU64::new(4096),
        chunk_bytes: NonZeroU64::new(512),
        hot_offset_bytes: Some(0),
        stripe_bytes: NonZeroU64::new(65536),
        flash_page_bytes: NonZeroU64::new(512),
    };
    let mut check = Check::new(Drive::of_grain("made up", grain), JudgedBy::Drive);
    let error = reader.by_ref().find_map(|request| request.map(|request| check.take(&request)).err());
    (check.finish(reader.names(), &reader.losses(), reader.notes()).requests, error)
}

#[test]
fn foreign_bytes_are_no_trace() {
    for foreign in [&b""[..], b"\n\n", b"hello\n", b"\x7fELF\x02", b"a,b,c\n1,2,3\n"] {
        assert!(matches!(judge_all(foreign), (0, Some(Error::Foreign))), "{foreign:?}");
    }
}

#[test]
fn a_wrong_line_is_named_and_ends_the_trace() {
    let trace = b"fio version 2 iolog\nf write 0 512\nf write x 512\nf write 0 512\n";
    let (requests, error) = judge_all(trace);
    assert_eq!(requests, 1);
    assert_eq!(
        error.unwrap().to_string(),
        "line 3 of the fio iolog (version 2) trace: expected a file, then add, open or close, or an action with offset and length, got `f write x 512`"
    );
}

#[test]
fn control_characters_of_a_line_do_not_reach_the_terminal() {
    for begin in ["fio version 2 iolog\n", "flashgrain trace 1\n", "0 1 2 8 0\n", "read(3, \"\", 1) = 1\n"] {
        let (_, error) = judge_all(format!("{begin}\x1b[2J\x07a\u{9b}b\n").as_bytes());
        let said = error.unwrap().to_string();
        assert!(said.ends_with("got `\\x1b[2J\\x07a\\x9bb`"), "{said}");
        assert!(!said.contains(char::is_control), "{said:?}");
    }
}

#[test]
fn a_newer_version_says_so() {
    let error = judge_all(b"flashgrain trace 2\nname 0 f\n").1.unwrap();
    assert_eq!(error.kind(), "newer");
    let said = error.to_string();
    assert!(said.contains("newer version of Flashgrain") && said.contains("version 2"), "{said}");
    assert!(matches!(judge_all(b"flashgrain trace x\n"), (0, Some(Error::Foreign))));
}

#[test]
fn a_cut_off_record_is_named() {
    let (requests, error) = judge_all(b"\x07\x74\x61\x65\0\0\0");
    assert_eq!(requests, 0);
    assert!(matches!(error, Some(Error::Record { offset_bytes: 0, .. })), "{error:?}");
}

#[test]
fn a_recording_without_its_end_is_cut_off() {
    let whole = "flashgrain trace 1\nname 0 f\nW 1 - 0:0 - 512 -\nend\n";
    assert!(matches!(judge_all(whole.as_bytes()), (1, None)));
    let (requests, error) = judge_all(whole.strip_suffix("end\n").unwrap().as_bytes());
    assert_eq!(requests, 1);
    let message = error.unwrap().to_string();
    assert_eq!(
        message,
        "the Flashgrain trace is cut off after line 3: expected the line `end`: the recording was cut off"
    );
}

/// Requests of a second recording in the same file must not be left out without a word.
#[test]
fn a_recording_with_more_after_its_end_is_refused() {
    let whole = "flashgrain trace 1\nname 0 f\nW 1 - 0:0 - 512 -\nend\n";
    assert!(matches!(judge_all(format!("{whole}\n").as_bytes()), (1, None)));
    let (requests, error) = judge_all([whole, whole].concat().as_bytes());
    assert_eq!(requests, 1);
    let message = error.unwrap().to_string();
    assert!(message.contains("line 5") && message.contains("nothing after the end"), "{message}");
}

/// A recorder that was killed leaves a part of its last line.
#[test]
fn a_recording_may_be_cut_off_within_a_line() {
    let whole = "flashgrain trace 1\nname 0 f\nW 1 - 0:0 - 512 -\nW 2 - 0:512 - 512 -\n";
    for missing in 1..18 {
        let (requests, error) = judge_all(&whole.as_bytes()[..whole.len() - missing]);
        let error = error.unwrap();
        assert_eq!(error.kind(), "cut_off", "{missing}: {error}");
        assert_eq!(requests, 1, "{missing}");
    }
}

#[test]
fn nothing_comes_after_an_error() {
    let mut reader = Reader::new(&b"fio version 2 iolog\nnonsense\nf write 0 512\n"[..]).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

proptest! {
    #[test]
    fn no_bytes_panic(begin in 0..BEGINS.len(), rest in prop::collection::vec(any::<u8>(), 0..300)) {
        judge_all(&rest);
        judge_all(&[BEGINS[begin], &rest].concat());
    }

    #[test]
    fn no_numbers_panic(begin in 0..BEGINS.len(), rest in "([0-9]{1,20}[ ,.+:]{1,2}|[fDWRF-] |read |write |wait |name |loss |\n){0,40}") {
        judge_all(&[BEGINS[begin], rest.as_bytes()].concat());
    }

    #[test]
    fn the_largest_numbers_are_judged(offset in any::<u64>(), length in any::<u32>()) {
        let line = format!("fio version 2 iolog\nf write {offset} {length}\nf read {offset} {length}\n");
        let (requests, error) = judge_all(line.as_bytes());
        prop_assert!(requests == 2 && error.is_none());
    }
}
