//! Files of earlier versions, whose pages begin with counts, are read and written as before.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use flashgrain_record_files::{Kind, Records};

/// Five records of 400 bytes, in flash pages of 512 bytes.
const FIXTURE: &[u8] = include_bytes!("fixtures/counts-512");

fn record(step: usize) -> Vec<u8> {
    (0..400).map(|at: usize| (at * 7 + step * 31 + 1) as u8).collect()
}

fn fixture() -> (File, Vec<u8>) {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(FIXTURE, 0).unwrap();
    (file, (0..5).flat_map(record).collect())
}

fn open(file: &File) -> Records {
    Records::open(file).unwrap().unwrap()
}

fn assert_content(file: &File, records: &Records, content: &[u8]) {
    for records in [records, &open(file)] {
        let mut bytes = vec![0; records.length_bytes() as usize + 10];
        let read = records.read_at(file, &mut bytes, 0).unwrap();
        assert!(bytes[..read] == *content, "{read} bytes of {}", content.len());
    }
}

#[test]
fn they_go_on_as_they_began() {
    let (file, mut content) = fixture();
    assert_eq!(Records::kind_of(&file).unwrap(), Kind::Records);
    let (mut records, mut other) = (open(&file), open(&file));
    assert_content(&file, &records, &content);
    records.append(&file, &record(5)).unwrap();
    content.extend(record(5));
    records.write_at(&file, b"over", 398).unwrap();
    content[398..402].copy_from_slice(b"over");
    records.sync(&file).unwrap();
    records.finish(&file).unwrap();
    assert_content(&file, &records, &content);
    other.refresh(&file).unwrap();
    assert_content(&file, &other, &content);
    records.set_length(&file, 1000).unwrap();
    content.truncate(1000);
    records.append(&file, &record(6)).unwrap();
    content.extend(record(6));
    assert_content(&file, &records, &content);
    other.refresh(&file).unwrap();
    assert_content(&file, &other, &content);
}

#[test]
fn a_damaged_count_is_an_error_with_its_offset() {
    let (file, _) = fixture();
    for page in 0..5 {
        let at = 4096 + page * 512;
        for bit in 0..32 {
            let byte = FIXTURE[(at + bit / 8) as usize];
            file.write_all_at(&[byte ^ 1 << (bit % 8)], at + bit / 8).unwrap();
            let error = Records::open(&file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(error.to_string().contains(&format!("at byte {at}")), "{error}");
            file.write_all_at(&[byte], at + bit / 8).unwrap();
        }
    }
    // A count that is one, but of no page.
    file.write_all_at(&[0xfd, 1, 2, 0xfe], 4096).unwrap();
    let error = Records::open(&file).unwrap_err().to_string();
    assert!(error.contains("more bytes") && error.contains("truncate --size 4096"), "{error}");
}

#[test]
fn pages_that_never_reached_the_drive_end_the_file_and_lost_ones_do_not() {
    let (file, content) = fixture();
    let zero = |page: u64| file.write_all_at(&[0; 404], 4096 + page * 512);
    zero(4).unwrap();
    zero(3).unwrap();
    assert_content(&file, &open(&file), &content[..1200]);
    zero(1).unwrap();
    let error = Records::open(&file).unwrap_err();
    assert!(error.to_string().contains("at byte 4608 is damaged: it is empty"), "{error}");
}

#[test]
fn they_may_be_cut_off_at_any_byte() {
    let (file, content) = fixture();
    for cut in (4096..=FIXTURE.len() as u64).rev() {
        file.set_len(cut).unwrap();
        let left = open(&file).length_bytes();
        assert!(left + 4 * 5 + 108 * 4 >= cut - 4096, "{cut}");
        assert_content(&file, &open(&file), &content[..left as usize]);
    }
}
