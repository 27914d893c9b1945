//! Files of records beside plain vectors of bytes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use flashgrain_layout::{PageHead, sum};
use flashgrain_record_files::Records;
use proptest::prelude::*;

/// What a program does to its file.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Write {
        at: usize,
        length: usize,
    },
    SetLength(usize),
    /// Another process opens the file, and goes on.
    OpenAgain,
    Sync,
    /// Another process appends, and this one looks.
    AppendedByOther(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_usize..3000).prop_map(Step::Append),
        2 => (0_usize..20_000, 1_usize..3000).prop_map(|(at, length)| Step::Write { at, length }),
        1 => (0_usize..20_000).prop_map(Step::SetLength),
        1 => Just(Step::OpenAgain),
        1 => Just(Step::Sync),
        1 => (1_usize..3000).prop_map(Step::AppendedByOther),
    ]
}

fn bytes(length: usize, step: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + step * 31 + 1) as u8).collect()
}

fn all(records: &Records, file: &File) -> Vec<u8> {
    let mut read = vec![0; records.length_bytes() as usize + 10];
    let length = records.read_at(file, &mut read, 0).unwrap();
    read.truncate(length);
    read
}

fn put(model: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    model.resize(model.len().max(at + bytes.len()), 0);
    model[at..at + bytes.len()].copy_from_slice(bytes);
}

fn open(file: &File) -> Records {
    Records::open(file).unwrap().unwrap()
}

proptest! {
    // Each case synchronises a real file many times.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_file_of_records_is_a_file(page_shift in 9_u32..=14, steps in proptest::collection::vec(step(), 1..40)) {
        let file = tempfile::tempfile().unwrap();
        let mut records = Records::create(&file, 1 << page_shift).unwrap();
        let mut model = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(length) => {
                    records.append(&file, &bytes(length, number)).unwrap();
                    model.extend(bytes(length, number));
                }
                Step::Write { at, length } => {
                    records.write_at(&file, &bytes(length, number), at as u64).unwrap();
                    put(&mut model, at, &bytes(length, number));
                }
                Step::SetLength(length) => {
                    records.set_length(&file, length as u64).unwrap();
                    model.resize(length, 0);
                }
                Step::OpenAgain => records = open(&file),
                Step::Sync => records.sync(&file).unwrap(),
                Step::AppendedByOther(length) => {
                    open(&file).append(&file, &bytes(length, number)).unwrap();
                    model.extend(bytes(length, number));
                    records.refresh(&file).unwrap();
                }
            }
            prop_assert_eq!(records.length_bytes(), model.len() as u64);
            prop_assert!(all(&records, &file) == model, "step {}", number);
            prop_assert!(all(&open(&file), &file) == model, "step {}, opened again", number);
        }
    }

    /// However much of the last write a crash leaves.
    #[test]
    fn what_is_left_of_a_file_is_a_prefix(
        lengths in proptest::collection::vec(1_usize..3000, 1..30),
        cut in 0_u64..60_000,
    ) {
        let file = tempfile::tempfile().unwrap();
        let mut records = Records::create(&file, 4096).unwrap();
        let mut model = Vec::new();
        for (number, length) in lengths.into_iter().enumerate() {
            records.append(&file, &bytes(length, number)).unwrap();
            model.extend(bytes(length, number));
        }
        file.set_len(file.metadata().unwrap().len().min(4096 + cut)).unwrap();
        let left = open(&file);
        prop_assert!(model.starts_with(&all(&left, &file)));
        let mut shortened = records;
        shortened.refresh(&file).unwrap();
        prop_assert_eq!(shortened.length_bytes(), left.length_bytes());
    }

    #[test]
    fn any_bytes_are_refused_or_read(damage in proptest::collection::vec((0_u64..20_000, any::<u8>()), 1..40)) {
        let file = tempfile::tempfile().unwrap();
        let mut records = Records::create(&file, 1024).unwrap();
        (0..30).for_each(|number| records.append(&file, &bytes(500, number)).unwrap());
        for (at, byte) in damage {
            file.write_all_at(&[byte], at).unwrap();
        }
        match Records::open(&file) {
            Ok(Some(left)) => drop(all(&left, &file)),
            Ok(None) => {}
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidData),
        }
    }
}

proptest! {
    /// Heads with right sums, and nothing else that is right.
    #[test]
    fn any_heads_are_refused_or_read(
        heads in proptest::collection::vec((any::<u16>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>()), 1..6),
        appended in 1_usize..2000,
    ) {
        let file = tempfile::tempfile().unwrap();
        Records::create(&file, 512).unwrap();
        file.set_len(4096 + 512 * heads.len() as u64).unwrap();
        let mut begin = 0;
        for (page, &(used, other, durable, shortened, follows)) in heads.iter().enumerate() {
            let head = PageHead {
                used_bytes: u64::from(used) % 600,
                begin: if follows { begin } else { other },
                durable,
                shortened,
                used_sum: sum(&vec![0; usize::from(used) % 600]),
            };
            begin += head.used_bytes;
            file.write_all_at(&head.encode(page as u64), 4096 + 512 * page as u64).unwrap();
        }
        match Records::open(&file) {
            Ok(records) => {
                let mut records = records.unwrap();
                let before = all(&records, &file);
                records.append(&file, &bytes(appended, 1)).unwrap();
                let after = all(&open(&file), &file);
                prop_assert!(after.starts_with(&before) && after.len() == before.len() + appended);
            }
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidData),
        }
    }
}

/// A file with a record in each of its flash pages of 512 bytes, all durable and said to be, and its length.
fn a_record_in_each_page(pages: usize) -> (File, u64) {
    let file = tempfile::tempfile().unwrap();
    let mut records = Records::create(&file, 512).unwrap();
    (0..pages).for_each(|page| records.append(&file, &bytes(400, page)).unwrap());
    records.sync(&file).unwrap();
    records.finish(&file).unwrap();
    let length = file.metadata().unwrap().len();
    (file, length)
}

fn assert_damaged(file: &File, at: u64) {
    let error = Records::open(file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains(&format!("at byte {at} is damaged")), "{error}");
    assert!(error.to_string().contains(&format!("truncate --size {at}")), "{error}");
}

#[test]
fn a_damaged_head_of_a_durable_page_is_an_error_with_its_offset() {
    let (file, length) = a_record_in_each_page(4);
    let mut known = open(&file);
    for page in 0..3 {
        let at = 4096 + page * 512;
        for bit in 0..28 * 8 {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at + bit / 8).unwrap();
            file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], at + bit / 8).unwrap();
            assert_damaged(&file, at);
            // Another process has shortened the file, and this one looks.
            file.set_len(length - 1).unwrap();
            known.refresh(&file).unwrap_err();
            assert_eq!(known.length_bytes(), 1600, "what is known stays");
            file.set_len(length).unwrap();
            file.write_all_at(&byte, at + bit / 8).unwrap();
        }
    }
    assert_eq!(open(&file).length_bytes(), 1600);
}

#[test]
fn pages_that_were_not_durable_end_the_file_and_durable_ones_do_not() {
    let (file, length) = a_record_in_each_page(3);
    let mut records = open(&file);
    (3..5).for_each(|page| records.append(&file, &bytes(400, page)).unwrap());
    let zero = |page: u64| file.write_all_at(&[0; 400], 4096 + page * 512);
    zero(3).unwrap();
    assert_eq!(open(&file).length_bytes(), 1200);
    // What lies behind is never taken for a record again.
    let mut records = open(&file);
    records.append(&file, &bytes(400, 7)).unwrap();
    assert_eq!(open(&file).length_bytes(), 1600);
    zero(1).unwrap();
    assert_damaged(&file, 4096 + 512);
    // As the error says.
    file.set_len(4096 + 512).unwrap();
    assert_eq!(all(&open(&file), &file), bytes(400, 0));
    assert!(length > 4096);
}

#[test]
fn a_file_may_be_cut_off_at_any_byte() {
    let (file, length) = a_record_in_each_page(3);
    let whole = all(&open(&file), &file);
    for cut in (4096..=length).rev() {
        file.set_len(cut).unwrap();
        let left = open(&file);
        assert!(whole.starts_with(&all(&left, &file)), "{cut}");
        // The durable offset goes with the pages that are cut off, and a part of a page has no sum.
        assert!(left.length_bytes() + 512 + 28 * 3 + 84 * 2 >= cut - 4096, "{cut}");
    }
}

#[test]
fn a_plain_file_and_sizes_without_sense_are_refused() {
    let file = tempfile::tempfile().unwrap();
    assert!(Records::open(&file).unwrap().is_none());
    assert_eq!(Records::create(&file, 5000).unwrap_err().kind(), ErrorKind::InvalidInput);
    file.write_all_at(&[0xfe, b'b', b'i', b'n'], 0).unwrap();
    assert!(Records::open(&file).unwrap().is_none());
}
