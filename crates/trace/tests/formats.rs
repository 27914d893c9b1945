//! Each format, from its first bytes to requests.

use flashgrain_trace::{Address, Error, Format, Operation, Reader};

/// Time, operation, device, file, offset, length and process.
type Row = (u64, Operation, Option<String>, Option<String>, u64, u64, Option<u32>);

fn rows(trace: &[u8], format: Format) -> Result<Vec<Row>, Error> {
    let mut reader = Reader::new(trace)?;
    assert_eq!(reader.format(), format);
    let mut rows = Vec::new();
    while let Some(request) = reader.next() {
        let request = request?;
        let name = |address: Address| reader.names().text(address.name).to_owned();
        rows.push((
            request.time_ns,
            request.operation,
            request.on_device.map(name),
            request.in_file.map(name),
            request.judged_address().map_or(u64::MAX, |address| address.offset_bytes),
            request.length_bytes,
            request.process,
        ));
    }
    Ok(rows)
}

fn on(device: &str) -> Option<String> {
    Some(device.to_owned())
}

#[test]
fn blkparse_requests_are_those_issued_to_the_driver() {
    let trace = "
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     1.000000250   697  D   W 223490 + 8 [kjournald]
  8,0    3        3     1.000000300   698  D  RA 16 + 64 [cat]
  8,0    3        4     1.000000400   698  D  FN [kworker/1:1H]
  8,0    3        5     1.000000500   698  D FWFS 8 + 8 [kworker/1:1H]
  8,0    3        6     1.000000600   698  D  DS 2048 + 2048 [fstrim]
  8,0    3        7     1.000000700     0  C   W 223490 + 8 [0]
CPU3 (8,0):
 Reads Queued:           1,       32KiB
";
    let row = |time, operation, sector: u64, sectors: u64, process| {
        (time, operation, on("8,0"), None, sector * 512, sectors * 512, Some(process))
    };
    assert_eq!(
        rows(trace.as_bytes(), Format::Blkparse).unwrap(),
        [
            row(1_000_000_250, Operation::Write, 223_490, 8, 697),
            row(1_000_000_300, Operation::Read, 16, 64, 698),
            row(1_000_000_400, Operation::Flush, 0, 0, 698),
            row(1_000_000_500, Operation::Write, 8, 8, 698),
            row(1_000_000_600, Operation::Discard, 2048, 2048, 698),
        ]
    );
}

/// A record in the byte order of `bytes`: action with categories, sector, length.
fn record(is_big_endian: bool, action: u32, sector: u64, length_bytes: u32, extra: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let mut push = |mut little_endian: Vec<u8>| {
        if is_big_endian {
            little_endian.reverse();
        }
        record.extend(little_endian);
    };
    for number in [0x6561_7407u32, 1] {
        push(number.to_le_bytes().to_vec());
    }
    push(5_000u64.to_le_bytes().to_vec());
    push(sector.to_le_bytes().to_vec());
    for number in [length_bytes, action, 42, 259 << 20 | 3, 0] {
        push(number.to_le_bytes().to_vec());
    }
    push(0u16.to_le_bytes().to_vec());
    push((extra.len() as u16).to_le_bytes().to_vec());
    record.extend(extra);
    record
}

#[test]
fn blktrace_records_have_either_byte_order() {
    for is_big_endian in [false, true] {
        let issue = 7 | 1 << 22;
        let trace = [
            record(is_big_endian, 1 << 26, 0, 0, b"fio\0"),
            record(is_big_endian, 1 | 1 << 20 | 1 << 17, 9, 512, &[]),
            record(is_big_endian, issue | 1 << 17, 9, 512, &[]),
            record(is_big_endian, issue | 1 << 16, 16, 4096, &[1, 2, 3]),
            record(is_big_endian, issue | 1 << 18, u64::MAX, 0, &[]),
            record(is_big_endian, issue | 1 << 29 | 1 << 17, 8, 4096, &[]),
            record(is_big_endian, issue | 1 << 25, 8, 4096, &[]),
        ]
        .concat();
        let row = |operation, sector: u64, length| {
            (5_000, operation, on("259,3"), None, sector * 512, length, Some(42))
        };
        assert_eq!(
            rows(&trace, Format::Blktrace).unwrap(),
            [
                row(Operation::Write, 9, 512),
                row(Operation::Read, 16, 4096),
                row(Operation::Flush, 0, 0),
                row(Operation::Discard, 8, 4096),
            ]
        );
    }
}

#[test]
fn fio_logs_have_waits_or_times() {
    let second = "fio version 2 iolog\nf add\nf open\nf write 4096 512\nf wait 7 0\nf sync 0 0\n/dev/sda trim 8 16\nf close\n";
    assert_eq!(
        rows(second.as_bytes(), Format::Fio2).unwrap(),
        [
            (0, Operation::Write, None, on("f"), 4096, 512, None),
            (7_000, Operation::Flush, None, on("f"), 0, 0, None),
            (7_000, Operation::Discard, on("/dev/sda"), None, 8, 16, None),
        ]
    );
    let third = "fio version 3 iolog\n0 f add\n0 f open\n12 f read 4096 512\n13 f close\n";
    assert_eq!(
        rows(third.as_bytes(), Format::Fio3).unwrap(),
        [(12_000_000, Operation::Read, None, on("f"), 4096, 512, None)]
    );
}

#[test]
fn msr_times_count_from_the_first_request_on() {
    let trace = "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,1,Write,2657792,512,1963\n";
    assert_eq!(
        rows(trace.as_bytes(), Format::MsrCambridge).unwrap(),
        [
            (0, Operation::Read, on("usr.0"), None, 7_014_609_920, 24_576, None),
            (1_332_052_600, Operation::Write, on("usr.1"), None, 2_657_792, 512, None),
        ]
    );
}

#[test]
fn strace_calls_move_the_offsets_of_their_files() {
    let trace = r#"
697 10.000001 execve("/bin/sqlite3", ["sqlite3"], 0x7ffd /* 20 vars */) = 0
697 10.000002 openat(AT_FDCWD, "a.db", O_RDWR|O_CREAT, 0644) = 3
697 10.000003 pwrite64(3, "x) = 9, \"y"..., 4096, 8192) = 4096
697 10.000004 write(3</tmp/a.db>, "abc", 3) = 3
697 10.000005 write(3, "abc", 3 <unfinished ...>
698 10.000006 lseek(3, 100, SEEK_SET) = 100
697 10.000007 <... write resumed>) = 3
697 10.000008 pread64(3, 0x7f, 4096, 0) = -1 EIO (Input/output error)
697 10.000009 fsync(3)                = 0
697 10.000010 close(3)                = 0
697 10.000011 write(3, "abc", 3)      = 3
697 10.000012 +++ exited with 0 +++
"#;
    let row = |time: u64, operation, offset, length| {
        (10_000_000_000 + time * 1000, operation, None, on("a.db"), offset, length, Some(697))
    };
    assert_eq!(
        rows(trace.as_bytes(), Format::Strace).unwrap(),
        [
            row(3, Operation::Write, 8192, 4096),
            row(4, Operation::Write, 0, 3),
            row(5, Operation::Write, 100, 3),
            row(9, Operation::Flush, 0, 0),
        ]
    );
}
