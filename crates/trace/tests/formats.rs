//! Each format, from its first bytes to requests.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use flashgrain_trace::{
    Address, Error, Format, Layer, Loss, Losses, Names, Operation, Reader, Request, TraceWriter,
};

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
            request.on_device.or(request.in_file).map_or(u64::MAX, |address| address.offset_bytes),
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
697 1700000010.000001 execve("/bin/sqlite3", ["sqlite3"], 0x7ffd /* 20 vars */) = 0
697 1700000010.000002 openat(AT_FDCWD, "a.db", O_RDWR|O_CREAT, 0644) = 3
697 1700000010.000003 pwrite64(3, "x) = 9, \"y"..., 4096, 8192) = 4096
697 1700000010.000004 write(3</tmp/a.db>, "abc", 3) = 3
697 1700000010.000004 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 698
697 1700000010.000005 write(3, "abc", 3 <unfinished ...>
698 1700000010.000006 lseek(3, 100, SEEK_SET) = 100
697 1700000010.000007 <... write resumed>) = 3
697 1700000010.000008 pread64(3, 0x7f, 4096, 0) = -1 EIO (Input/output error)
697 1700000010.000009 fsync(3)                = 0
697 1700000010.000010 close(3)                = 0
697 1700000010.000011 write(3, "abc", 3)      = 3
697 1700000010.000012 +++ exited with 0 +++
"#;
    let row = |time: u64, operation, offset, length| {
        (1_700_000_010_000_000_000 + time * 1000, operation, None, on("a.db"), offset, length, Some(697))
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

/// The requests of strace's text as operation, file, offset and length, and what is missing.
fn calls(trace: &str) -> (Vec<(Operation, String, u64, u64)>, Losses) {
    let mut reader = Reader::new(trace.as_bytes()).unwrap();
    let mut calls = Vec::new();
    while let Some(request) = reader.next() {
        let request = request.unwrap();
        let address = request.in_file.unwrap();
        let name = reader.names().text(address.name).to_owned();
        calls.push((request.operation, name, address.offset_bytes, request.length_bytes));
    }
    (calls, reader.losses())
}

fn write(file: &str, offset: u64, length: u64) -> (Operation, String, u64, u64) {
    (Operation::Write, file.to_owned(), offset, length)
}

#[test]
fn appended_bytes_are_where_the_file_ends_if_that_is_known() {
    let (requests, losses) = calls(
        r#"openat(AT_FDCWD, "new", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, 0644) = 3
write(3, "ab", 2) = 2
pwrite64(3, "ab", 2, 0) = 2
openat(AT_FDCWD, "old", O_WRONLY|O_APPEND) = 4
write(4, "ab", 2) = 2
fstat(4, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0
write(4, "ab", 2) = 2
"#,
    );
    assert_eq!(requests, [write("new", 0, 2), write("new", 2, 2), write("old", 100, 2)]);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::UnknownEnd, 1)]);
}

#[test]
fn duplicates_children_and_threads_share_offsets() {
    let (requests, losses) = calls(
        r#"10 openat(AT_FDCWD, "f", O_RDWR) = 3
10 dup2(3, 7) = 7
10 write(7, "ab", 2) = 2
10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 11
11 write(3, "ab", 2) = 2
11 close(3) = 0
11 write(3, "ab", 2) = 2
10 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 12
12 close(7) = 0
10 write(7, "ab", 2) = 2
10 write(3, "ab", 2) = 2
"#,
    );
    assert_eq!(requests, [write("f", 0, 2), write("f", 2, 2), write("f", 4, 2)]);
    assert_eq!(losses.count(Loss::UnknownDescriptor), 2);
}

/// Without the paths of `-y`, what a number means is known only as long as all that changes it is followed.
#[test]
fn new_programs_and_closed_ranges_leave_no_descriptors() {
    let (requests, losses) = calls(
        r#"10 openat(AT_FDCWD, "/d/f", O_RDWR|O_CLOEXEC) = 3
10 openat(AT_FDCWD, "/d/g", O_RDWR) = 4
10 dup(3) = 5
10 fcntl(4, F_SETFD, FD_CLOEXEC) = 0
10 clone3({flags=CLONE_VM|CLONE_VFORK}, 88) = 11
11 execve("/bin/x", ["x"], 0x7ffd /* 20 vars */) = 0
11 write(3, "ab", 2) = 2
11 write(4, "ab", 2) = 2
11 write(5, "ab", 2) = 2
10 write(4, "ab", 2) = 2
10 close_range(4, 4294967295, 0) = 0
10 write(4, "ab", 2) = 2
10 write(3, "ab", 2) = 2
10 pipe2([4, 5], O_CLOEXEC) = 0
10 write(4, "ab", 2) = 2
10 socket(AF_UNIX, SOCK_STREAM, 0) = 6
10 write(6, "ab", 2) = 2
"#,
    );
    assert_eq!(requests, [write("/d/f", 0, 2), write("/d/g", 0, 2), write("/d/f", 2, 2)]);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::UnknownDescriptor, 3)]);
}

#[test]
fn relative_paths_begin_at_the_folder_if_that_is_known() {
    let (requests, _) = calls(
        r#"10 openat(AT_FDCWD, "f", O_RDWR) = 3
10 write(3, "ab", 2) = 2
10 chdir("/d") = 0
10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 11
11 chdir("e") = 0
11 openat(AT_FDCWD, "./f", O_RDWR) = 3
11 write(3, "ab", 2) = 2
10 openat(AT_FDCWD, "e", O_RDONLY|O_DIRECTORY) = 4
10 openat(4, "a\"\12\\b", O_RDWR) = 5
10 write(5, "ab", 2) = 2
10 chdir("") = 0
10 openat(AT_FDCWD, "f", O_RDWR) = 6
10 write(6, "ab", 2) = 2
"#,
    );
    let names = ["f", "/d/e/f", "/d/e/a\"\n\\b", "f"];
    assert_eq!(requests, names.map(|name| write(name, 0, 2)));
}

#[test]
fn flags_of_a_single_write_count() {
    let (requests, losses) = calls(
        r#"openat(AT_FDCWD, "/f", O_RDWR|O_TRUNC) = 3
pwritev2(3, [{iov_base="RWF_APPEND", iov_len=10}], 1, 8192, 0) = 10
pwritev2(3, [{iov_base="ab", iov_len=2}], 1, 0, RWF_APPEND|RWF_DSYNC) = 2
"#,
    );
    let flush = (Operation::Flush, "/f".to_owned(), 0, 0);
    assert_eq!(requests, [write("/f", 8192, 10), write("/f", 8202, 2), flush]);
    assert_eq!(losses, Losses::default());
}

#[test]
fn vectors_and_asynchronous_requests_have_their_offsets() {
    let (requests, losses) = calls(
        r#"openat(AT_FDCWD, "f", O_RDWR|O_DSYNC) = 3</d/f>
pwritev(3</d/f>, [{iov_base="a", iov_len=1}], 1, 100) = 1
pwritev2(3</d/f>, [{iov_base="a", iov_len=1}], 1, -1, 0) = 1
io_submit(0x7f, 2, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</d/f>, aio_buf="", aio_nbytes=4096, aio_offset=8192}, {aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=3</d/f>, aio_buf=[{iov_base="", iov_len=5}, {iov_base="", iov_len=6}], aio_offset=0}]) = 2
io_uring_enter(4<anon_inode:[io_uring]>, 3, 0, 0, NULL, 8) = 3
mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3</d/f>, 0) = 0x7f
sendfile(5<socket:[1]>, 3</d/f>, NULL, 100) = 100
write(1</dev/pts/0>, "a", 1) = 1
write(6<pipe:[7]>, "a", 1) = 1
write(9</d/g>, "a", 1) = 1
"#,
    );
    let flush = (Operation::Flush, "/d/f".to_owned(), 0, 0);
    assert_eq!(
        requests,
        [
            write("/d/f", 100, 1),
            flush.clone(),
            write("/d/f", 0, 1),
            flush,
            write("/d/f", 8192, 4096),
            write("/d/f", 0, 11),
            write("/d/g", 0, 1),
        ]
    );
    let losses: Vec<_> = losses.iter().collect();
    assert_eq!(losses, [(Loss::InsideKernel, 1), (Loss::IoUring, 3), (Loss::Mapped, 1)]);
}

#[test]
fn recordings_read_back_as_they_were_written() {
    let mut names = Names::default();
    let (file, device) = (names.id("/tmp/a\\\n b "), names.id("254:0"));
    let request = Request {
        time_ns: 5,
        layer: Layer::File,
        operation: Operation::Write,
        on_device: Some(Address { name: device, offset_bytes: u64::MAX }),
        in_file: Some(Address { name: file, offset_bytes: 7 }),
        length_bytes: 4096,
        process: Some(1),
        latency_ns: Some(9),
    };
    let bare = Request { layer: Layer::Drive, in_file: None, process: None, latency_ns: None, ..request };
    let mut writer = TraceWriter::new(Vec::new()).unwrap();
    writer.note("made\nup").unwrap();
    for request in [request, bare] {
        writer.request(&request, &names).unwrap();
    }
    let mut losses = Losses::default();
    losses.add(Loss::Overrun, 3);
    let trace = writer.finish(&losses).unwrap();
    let mut reader = Reader::new(&trace[..]).unwrap();
    let read: Vec<_> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(read.len(), 2);
    let texts = |request: &Request| {
        [request.in_file, request.on_device]
            .map(|address| address.map(|address| reader.names().text(address.name)))
    };
    assert_eq!(texts(&read[0]), [Some("/tmp/a\\\n b "), Some("254:0")]);
    assert_eq!(texts(&read[1]), [None, Some("254:0")]);
    assert_eq!(read.iter().map(|request| request.layer).collect::<Vec<_>>(), [Layer::File, Layer::Drive]);
    assert_eq!((read[0].latency_ns, read[0].process, read[0].length_bytes), (Some(9), Some(1), 4096));
    assert_eq!((reader.losses(), reader.notes()), (losses, &["made\nup".to_owned()][..]));
}

#[test]
fn lines_may_end_as_on_windows() {
    for (trace, format) in [
        ("flashgrain trace 1\nname 0 f\nW 1 - 0:0 - 512 -\nend\n", Format::Own),
        ("fio version 3 iolog\n1 f write 4096 512\n", Format::Fio3),
        ("0 1 2 8 0\n", Format::Mqsim),
        ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::MsrCambridge),
        ("pwrite64(3</f>, \"\", 512, 0) = 512\n", Format::Strace),
        ("8,0 3 1 0.000000000 697 D W 8 + 8 [a]\n", Format::Blkparse),
    ] {
        let rows_of = |trace: &str| rows(trace.as_bytes(), format).unwrap();
        assert_eq!(rows_of(&trace.replace('\n', "\r\n")), rows_of(trace), "{format}");
        assert_eq!(rows_of(trace).len(), 1, "{format}");
    }
}

#[test]
fn a_loss_of_an_unknown_kind_is_noted() {
    let trace = |loss: &str| format!("flashgrain trace 1\nname 0 f\nloss {loss}\nW 1 - 0:0 - 512 -\nend\n");
    let text = trace("moonshine 3");
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 1);
    let [note] = reader.notes() else { panic!("{:?}", reader.notes()) };
    assert!(note.contains("3 losses") && note.contains("moonshine"), "{note}");
    for count in ["-3", "y", "99999999999999999999999"] {
        assert!(rows(trace(&format!("moonshine {count}")).as_bytes(), Format::Own).is_err(), "{count}");
    }
}

#[test]
fn lengths_that_no_kernel_takes_are_refused() {
    for (before, after, format) in [
        ("flashgrain trace 1\nname 0 f\nW 1 - 0:0 - ", " -\nend\n", Format::Own),
        ("fio version 3 iolog\n1 f write 4096 ", "\n", Format::Fio3),
        ("128166372003061629,usr,0,Read,7014609920,", ",41286\n", Format::MsrCambridge),
    ] {
        let rows_of = |length: u64| rows(format!("{before}{length}{after}").as_bytes(), format);
        assert_eq!(rows_of((1 << 32) - 1).unwrap().len(), 1, "{format}");
        for length in [1 << 32, u64::MAX] {
            let error = rows_of(length).unwrap_err().to_string();
            assert!(error.contains("less than 4 GiB"), "{error}");
        }
    }
}

/// As of `--absolute-timestamps=format:unix,precision:ns` and the like.
#[test]
fn strace_times_have_one_to_nine_digits_of_a_second() {
    for (time, ns) in [("5", 500_000_000), ("123", 123_000_000), ("123456789", 123_456_789)] {
        let trace = format!("12 1700000007.{time} pwrite64(3</f>, \"\", 512, 0) = 512 <0.5>\n");
        let mut reader = Reader::new(trace.as_bytes()).unwrap();
        let request = reader.next().unwrap().unwrap();
        assert_eq!((request.time_ns, request.process), (1_700_000_007_000_000_000 + ns, Some(12)));
        assert_eq!(request.latency_ns, Some(500_000_000));
    }
}

/// Four writes, each after `before`; their times in milliseconds after the first one's, and the processes.
fn strace_with(before: [&str; 4]) -> Vec<(u64, Option<u32>)> {
    let write = |before: &str| format!("{before}pwrite64(3</data/x>, \"a\"..., 4096, 0) = 4096\n");
    let trace: String = before.map(write).concat();
    let all: Vec<Request> = Reader::new(trace.as_bytes()).unwrap().map(Result::unwrap).collect();
    let first_ns = all.first().unwrap().time_ns;
    all.iter().map(|one| ((one.time_ns - first_ns) / 1_000_000, one.process)).collect()
}

#[test]
fn whatever_strace_prints_before_a_call_is_read() {
    let at = |times: [u64; 4], process| times.map(|time| (time, process)).to_vec();
    let same = |before| [before; 4];
    assert_eq!(strace_with(same("")), at([0; 4], None));
    assert_eq!(strace_with(same("11:59:59 ")), at([0; 4], None));
    let of_day = ["23:59:59.5 ", "23:59:59.750000 ", "00:00:00.250000 ", "00:00:01 "];
    assert_eq!(strace_with(of_day), at([0, 250, 750, 1500], None));
    assert_eq!(strace_with(same("     0.500000 ")), at([0, 500, 1000, 1500], None));
    assert_eq!(strace_with(same("[pid  4711]      0.250000 ")), at([0, 250, 500, 750], Some(4711)));
    let both = [
        "10:00:00 (+     0.000000) ",
        "10:00:01 (+     1.000000) ",
        "10:00:01 (+ 0.1) ",
        "10:00:02 (+ 1.0) ",
    ];
    assert_eq!(strace_with(both), at([0, 1000, 1000, 2000], None));
    let whole = ["1700000000 ", "1700000001 ", "1700000001 ", "1700000003 "];
    assert_eq!(strace_with(whole), at([0, 1000, 1000, 3000], None));
    for instruction in ["[00007f2a1c0e5a37] ", "[????????????????] ", "[  18] [00007f2a1c0e5a37] "] {
        assert_eq!(strace_with(same(instruction)), at([0; 4], None), "{instruction}");
    }
    assert_eq!(strace_with(same("4711<prog> 1700000000.0 [000000000000beef] ")), at([0; 4], Some(4711)));
}

/// To standard error, with children: its messages come where they come.
#[test]
fn what_strace_itself_says_is_no_call_and_may_divide_one() {
    let trace = r#"strace: Process 4711 attached
[pid  4710] vfork(strace: Process 4712 attached
strace: Process 4713 attached
 <unfinished ...>
[ Process PID=4712 runs in 32 bit mode. ]
[pid  4712] pwrite64(3</data/x>, "strace: Process 1 attached", 26, 0) = 26
 > /usr/lib/libc.so.6(write+0x1) [0x1000]
[pid  4710] <... vfork resumed>)        = 4712
[pid  4712] pwrite64(3</data/x>, "a", 1, 100) = 1
[pid  4712] read(0,  <detached ...>
% time     seconds  usecs/call     calls    errors syscall
100.00    0.000010          10         1           write
"#;
    let (requests, losses) = calls(trace);
    assert_eq!(requests, [write("/data/x", 0, 26), write("/data/x", 100, 1)]);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Unfinished, 1)]);
}

#[test]
fn mqsim_times_count_from_the_first_request_on() {
    let on_device = |device: &str| Some(device.to_owned());
    assert_eq!(
        rows(b"100 0 2 8 0\n350.5 1 4 1 1\n", Format::Mqsim).unwrap(),
        [
            (0, Operation::Write, on_device("device 0"), None, 1024, 4096, None),
            (250, Operation::Read, on_device("device 1"), None, 2048, 512, None),
        ]
    );
}

#[test]
fn cloudphysics_records_have_either_version() {
    let first = |command: u16, time: u64| {
        let numbers = [1u32, 4096, 1].map(u32::to_le_bytes).concat();
        [
            &numbers[..],
            &command.to_le_bytes(),
            &0x100u16.to_le_bytes(),
            &8u64.to_le_bytes(),
            &time.to_le_bytes(),
        ]
        .concat()
    };
    let second = |command: u16, time: u64| {
        let numbers = [1u32, 4096, 1].map(u32::to_le_bytes).concat();
        let times = [8, time, 30].map(u64::to_le_bytes).concat();
        [&command.to_le_bytes()[..], &0x200u16.to_le_bytes(), &numbers, &times].concat()
    };
    for record in [&first as &dyn Fn(u16, u64) -> Vec<u8>, &second] {
        let trace = [record(0x28, 1000), record(0x12, 1001), record(0x8a, 1007)].concat();
        let row = |time, operation| (time, operation, on("vscsi"), None, 4096, 4096, None);
        assert_eq!(
            rows(&trace, Format::CloudPhysics).unwrap(),
            [row(0, Operation::Read), row(7000, Operation::Write)]
        );
        let damaged = rows(&trace[..trace.len() - 3], Format::CloudPhysics).unwrap_err();
        assert_eq!(damaged.kind(), "record");
    }
}
