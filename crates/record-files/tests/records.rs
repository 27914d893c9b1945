//! Files of records beside plain vectors of bytes.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs::File;
use std::io::ErrorKind;

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
    /// Another process appends, and this one looks.
    AppendedByOther(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_usize..3000).prop_map(Step::Append),
        2 => (0_usize..20_000, 1_usize..3000).prop_map(|(at, length)| Step::Write { at, length }),
        1 => (0_usize..20_000).prop_map(Step::SetLength),
        1 => Just(Step::OpenAgain),
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
        use std::os::unix::fs::FileExt;
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

#[test]
fn a_plain_file_and_sizes_without_sense_are_refused() {
    let file = tempfile::tempfile().unwrap();
    assert!(Records::open(&file).unwrap().is_none());
    assert_eq!(Records::create(&file, 5000).unwrap_err().kind(), ErrorKind::InvalidInput);
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xfe, b'b', b'i', b'n'], 0).unwrap();
    assert!(Records::open(&file).unwrap().is_none());
}
