//! The kernel's trace events and `strace` record the same requests of one program.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use flashgrain_recorder::{CallSource, Error, Options, Program, Recording};
use flashgrain_trace::{Loss, Losses, Operation, Reader};

/// The folder of the recorded program's files.
const FOLDER: &str = "FLASHGRAIN_TEST_FOLDER";

/// The recorded program: this test, begun by the others.
#[test]
#[ignore = "it is the program that the other tests record"]
fn program() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let all = folder.join("all");
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(true).open(&all).unwrap();
    for page in 0..20 {
        file.write_all_at(&[1; 4096], page * 4096).unwrap();
    }
    file.write_all(b"abc").unwrap();
    file.write_all(b"defg").unwrap();
    file.sync_all().unwrap();
    // A duplicate shares the offset, and a thread the descriptors.
    let mut copy = file.try_clone().unwrap();
    copy.seek(SeekFrom::Start(100)).unwrap();
    file.read_exact(&mut [0; 10]).unwrap();
    let path = all.clone();
    let thread = std::thread::spawn(move || {
        let mut again = File::open(path).unwrap();
        let (mut first, mut second) = ([0; 100], [0; 50]);
        let read = again.read_vectored(&mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)]);
        assert_eq!(read.unwrap(), 150);
        again.read_exact(&mut [0; 7]).unwrap();
        copy.read_exact(&mut [0; 20]).unwrap();
    });
    thread.join().unwrap();
    // Appended bytes of a file that is new, in a folder that paths begin at.
    env::set_current_dir(&folder).unwrap();
    let mut appended = OpenOptions::new().append(true).create_new(true).open("log").unwrap();
    appended.write_all(b"0123456789").unwrap();
    appended.sync_data().unwrap();
    appended.write_all(b"0123456789").unwrap();
    drop(appended);
    std::os::unix::fs::symlink("log", "link").unwrap();
    let mut linked = File::open("link").unwrap();
    linked.read_exact(&mut [0; 5]).unwrap();
    drop(linked);
    // A shell begins with the descriptors of this program that are not closed, and redirects its own.
    let script = "echo hello > out; read line < out; exec 9< out; read -r line <&9";
    let mut shell =
        Command::new("sh").args(["-c", script]).current_dir(&folder).stdin(Stdio::null()).spawn().unwrap();
    assert!(shell.wait().unwrap().code().is_some());
}

/// A request to a file of the folder: operation, file, offset and length.
type Row = (Operation, String, u64, u64);

fn recorded(source: CallSource, folder: &Path, output: &Path) -> Result<(Vec<Row>, Losses), Error> {
    let test = env::current_exe().unwrap();
    let words = ["--exact", "program", "--ignored", "--test-threads=1", "--quiet"].map(Into::into);
    let setting = format!("{FOLDER}={}", folder.display());
    let command = ["env".into(), setting.into(), test.into_os_string()].into_iter().chain(words);
    let recording = Recording::begin(Options {
        output: output.to_owned(),
        program: Some(Program::Start(command.collect())),
        drive: None,
        calls_by: Some(source),
        leaves_calls_out: false,
        leaves_blocks_out: true,
        seconds: None,
    })?;
    let recorded = recording.run(&AtomicBool::new(false))?;
    assert!(recorded.failure().is_none(), "{recorded:?}");
    let mut reader = Reader::new(File::open(output).unwrap()).unwrap();
    let mut rows = Vec::new();
    while let Some(request) = reader.next() {
        let request = request?;
        let address = request.in_file.unwrap();
        let name = Path::new(reader.names().text(address.name));
        if let Ok(name) = name.strip_prefix(folder) {
            let name = name.to_str().unwrap().to_owned();
            rows.push((request.operation, name, address.offset_bytes, request.length_bytes));
        }
    }
    Ok((rows, recorded.losses))
}

fn has_strace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|output| output.status.success())
}

#[test]
fn the_kernel_tells_the_same_requests_as_strace() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder.canonicalize().unwrap()
    };
    let output = |name: &str| scratch.path().join(name);
    let (kernel, losses) = match recorded(CallSource::Kernel, &folder("kernel"), &output("kernel.trace")) {
        Ok(recorded) => recorded,
        Err(Error::Calls { problem }) => {
            eprintln!("skipped: system calls cannot be recorded by the kernel here: {problem}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // Buffers may be full on a busy machine, which is counted.
    let lost = losses.count(Loss::Overrun);
    println!("{} requests, {lost} events lost", kernel.len());
    let write = |file: &str, offset, length| (Operation::Write, file.to_owned(), offset, length);
    let read = |file: &str, offset, length| (Operation::Read, file.to_owned(), offset, length);
    let expected = [
        write("all", 0, 3),
        write("all", 3, 4),
        (Operation::Flush, "all".to_owned(), 0, 0),
        read("all", 100, 10),
        read("all", 0, 150),
        read("all", 150, 7),
        read("all", 110, 20),
        write("log", 0, 10),
        (Operation::Flush, "log".to_owned(), 0, 0),
        write("log", 10, 10),
    ];
    if lost == 0 {
        assert_eq!(kernel[20..30], expected, "{kernel:?}");
        assert!(kernel.contains(&write("out", 0, 6)), "{kernel:?}");
    }
    if !has_strace() {
        eprintln!("the comparison is skipped: strace cannot be run here");
        return;
    }
    let (strace, _) = recorded(CallSource::Strace, &folder("strace"), &output("strace.trace")).unwrap();
    if lost == 0 {
        assert_eq!(kernel, strace);
    }
    // Nothing is invented or moved.
    let mut rest = strace.iter();
    let is_there = |row: &Row| rest.any(|other| other == row);
    assert!(kernel.iter().all(is_there), "{kernel:?} is not in {strace:?}");
}
