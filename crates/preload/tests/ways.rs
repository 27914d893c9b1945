//! Each way in which a program can reach a file: with records it works as `write` and `read` do, or is
//! refused and leaves them as they were; without a layout it is as if the library were not there.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libc::{EBADF, EINVAL, ENODEV, ENOTTY, EOPNOTSUPP, EXDEV};

const LOG: &str = "host-bin.000001";

/// Ways that append a record of three bytes, with the error that a file of records has.
const WRITES: &[(&str, c_int)] = &[
    ("by_write", 0),
    ("by_pwrite", 0),
    ("by_writev", 0),
    ("by_pwritev", 0),
    ("by_pwritev2", 0),
    ("by_pwritev2_position", 0),
    ("by_pwritev2_append", 0),
    ("by_pwritev2_unknown", EOPNOTSUPP),
    ("by_aio_write", EBADF),
    ("by_lio_listio", EBADF),
    ("by_io_submit", EBADF),
    ("by_io_uring", EBADF),
    ("by_fdopen", EOPNOTSUPP),
    ("by_fopen", EOPNOTSUPP),
    ("by_freopen", EOPNOTSUPP),
    ("by_dprintf", EBADF),
    ("by_sendfile", EINVAL),
    ("by_copy_file_range", EXDEV),
    ("by_splice", EINVAL),
    ("by_syscall_sendfile", EBADF),
    ("by_syscall_copy_file_range", EBADF),
    ("by_syscall_splice", EBADF),
    ("by_syscall_write", EBADF),
    ("by_syscall_pwritev2", EBADF),
    ("by_mmap", ENODEV),
    ("by_syscall_mmap", EBADF),
    ("by_fork", 0),
    ("by_fork_and_parent", 0),
    ("by_execve", EBADF),
    ("by_posix_spawn", EBADF),
    ("by_spawn_adddup2", EBADF),
    ("by_spawn_addopen", EOPNOTSUPP),
    ("by_scm_rights", EBADF),
    ("by_dup", 0),
    ("by_dup2", 0),
    ("by_dup3", 0),
    ("by_dupfd", 0),
    ("by_dup2_to_output", EINVAL),
    ("by_dup_to_input", EINVAL),
    ("by_syscall_dup", EBADF),
    ("by_dup2_over_all", 0),
    ("by_proc", 0),
    ("by_dev_fd", 0),
    ("by_symlink", 0),
    ("by_link", EXDEV),
    ("by_linkat_empty", EXDEV),
    ("by_rename", EXDEV),
    ("by_exchange", EXDEV),
    ("by_open", 0),
    ("by_openat", 0),
    ("by_syscall_open", 0),
    ("by_openat2", 0),
    ("by_openat2_beneath", EOPNOTSUPP),
    ("by_handle", EOPNOTSUPP),
    ("by_setfl", 0),
    ("by_ftruncate", 0),
    ("by_truncate", 0),
    ("by_syscall_truncate", 0),
    ("by_syscall_ftruncate", EBADF),
    ("by_fallocate", EOPNOTSUPP),
    ("by_posix_fallocate", EOPNOTSUPP),
    ("by_syscall_fallocate", EBADF),
    ("after_vfork", 0),
    ("after_a_closed_duplicate", 0),
    ("after_close_of_others", 0),
    ("after_close_range_of_others", 0),
    ("after_closefrom_of_others", 0),
    ("after_the_private_is_closed", EBADF),
];

/// Ways that leave the content as it is.
const OTHERS: &[(&str, c_int)] = &[
    ("by_clone_to", EOPNOTSUPP),
    ("by_clone_from", EOPNOTSUPP),
    ("by_read", 0),
    ("by_checked_read", 0),
    ("by_checked_pread", 0),
    ("by_pread", 0),
    ("by_readv", 0),
    ("by_preadv", 0),
    ("by_preadv2", 0),
    ("by_aio_read", EBADF),
    ("by_io_uring_read", EBADF),
    ("by_stream_read", EOPNOTSUPP),
    ("by_fdopen_read", EOPNOTSUPP),
    ("by_mmap_read", ENODEV),
    ("by_sendfile_read", EINVAL),
    ("by_splice_read", EINVAL),
    ("by_proc_read", 0),
    ("read_of_write_only", EBADF),
    ("write_of_read_only", EBADF),
    ("truncation_of_read_only", EINVAL),
    ("by_stat", 0),
    ("by_lstat", 0),
    ("by_fstat", 0),
    ("by_fstatat", 0),
    ("by_fstatat_empty", 0),
    ("by_old_stat", 0),
    ("by_old_lstat", 0),
    ("by_old_fstat", 0),
    ("by_stat_when_closed", 0),
    ("by_statx", 0),
    ("by_seek", 0),
    ("by_fsync", 0),
    ("by_advice", 0),
    ("by_owner", 0),
    ("by_attributes", 0),
    ("by_fcntl_lock", 0),
    ("by_lockf", 0),
    ("by_ofd_lock", 0),
    ("by_flock", 0),
    ("locks_stay", 0),
    ("syscall_locks_stay", EBADF),
    ("lockf_stays", 0),
    ("by_ioctl", ENOTTY),
    ("by_poll", EBADF),
    ("by_epoll", EBADF),
    ("closed", 0),
    ("closed_by_range", 0),
    ("closed_by_closefrom", 0),
    ("closed_by_syscall", 0),
    ("closed_by_syscall_range", 0),
    ("replaced_by_dup2", 0),
    ("replaced_by_dup3", 0),
    ("replaced_by_syscall", 0),
    ("replaced_by_freopen", 0),
    ("many_in_turn", 0),
    ("parent_and_children", 0),
    ("threads_and_forks", 0),
    ("read_before_written", 0),
    ("truncated_when_opened", 0),
    ("truncated_and_opened_again", 0),
    ("truncated_by_stream", EOPNOTSUPP),
    ("by_mkostemp", 0),
    ("flags_of_new_files", 0),
];

/// A way that only says how files without a layout are opened.
const FLAGS: &str = "flags";

/// The program of `ways.c`, built in a folder.
fn program(folder: &Path) -> PathBuf {
    let entries = WRITES.iter().chain(OTHERS).map(|(way, _)| *way).chain([FLAGS]);
    let list: String = entries.map(|way| format!("ENTRY({way})\n")).collect();
    fs::write(folder.join("ways.list"), list).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways.c");
    let program = folder.join("ways");
    // With checks of buffers, as distributions build their packages.
    let built = Command::new("cc")
        .args(["-w", "-O2", "-D_FORTIFY_SOURCE=2", "-I"])
        .arg(folder)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status();
    assert!(built.unwrap().success(), "a C compiler builds ways.c");
    program
}

struct Said {
    output: Vec<u8>,
    error: c_int,
}

fn run(program: &Path, folder: &Path, way: &str, with_library: bool) -> Said {
    let mut command = Command::new(program);
    command.args([LOG, way]).current_dir(folder);
    if with_library {
        let library = std::env::current_exe().unwrap().with_file_name("libflashgrain_preload.so");
        command.env("LD_PRELOAD", library);
        command.env("FLASHGRAIN_RECORD_FILES", "*-bin.[0-9]*").env("FLASHGRAIN_FLASH_PAGE", "4096");
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{way}: {:?}, {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().next_back().and_then(|line| line.parse().ok()).unwrap_or(-1);
    Said { output: output.stdout, error }
}

fn base() -> Vec<u8> {
    b"0123456789".repeat(100)
}

/// A folder with a file to write from.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("other"), b"LOG").unwrap();
    folder
}

#[test]
fn a_file_of_records_is_reached_in_known_ways_only() {
    let built = tempfile::tempdir().unwrap();
    let program = program(built.path());
    let mut wrong = Vec::new();
    let writes = WRITES.iter().map(|way| (way, true)).chain(OTHERS.iter().map(|way| (way, false)));
    for (&(way, error), writes) in writes {
        let folder = folder();
        run(&program, folder.path(), "written_base", true);
        let said = run(&program, folder.path(), way, true);
        let mut wanted = base();
        wanted.extend(if writes && error == 0 { &b"LOG"[..] } else { b"" });
        let found = run(&program, folder.path(), "dump", true).output;
        let is_laid_out = fs::read(folder.path().join(LOG)).unwrap().starts_with(b"Flashgrain file\0");
        if said.error != error || found != wanted || !is_laid_out {
            wrong.push(format!("{way}: error {} for {error}, {} bytes", said.error, found.len()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_without_a_layout_is_as_without_the_library() {
    let built = tempfile::tempdir().unwrap();
    let program = program(built.path());
    for (way, _) in WRITES.iter().chain(OTHERS).chain([&(FLAGS, 0)]) {
        let [with, without] = [true, false].map(|with_library| {
            let folder = folder();
            fs::write(folder.path().join(LOG), base()).unwrap();
            let said = run(&program, folder.path(), way, with_library);
            let mut files: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap())
                .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
                .collect();
            files.sort();
            (String::from_utf8(said.output).unwrap(), said.error, files)
        });
        assert_eq!(with.0, without.0, "{way}");
        assert!(with == without, "{way}: error {} for {}", with.1, without.1);
    }
}

/// A file that is being made plain is not opened, and it is one of records before and after.
#[test]
fn a_file_that_is_unpacked_is_busy() {
    let built = tempfile::tempdir().unwrap();
    let program = program(built.path());
    let folder = folder();
    run(&program, folder.path(), "written_base", true);
    let path = folder.path().join(LOG);
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    flashgrain_record_files::lock::have_alone(&file).unwrap();
    assert_eq!(run(&program, folder.path(), "dump", true).output, format!("{}\n", libc::EBUSY).into_bytes());
    drop(file);
    // A process that another test starts has this one's descriptors until it runs its own program.
    let busy = format!("{}\n", libc::EBUSY).into_bytes();
    let mut dumps = (0..100).map(|_| run(&program, folder.path(), "dump", true).output);
    assert_eq!(dumps.find(|dump| *dump != busy).unwrap(), base());
    assert_eq!(flashgrain_record_files::unpack(&path).unwrap(), Some(1000));
    assert_eq!(fs::read(&path).unwrap(), base());
    assert_eq!(run(&program, folder.path(), "dump", true).output, base());
}

#[test]
fn all_ways_are_tried() {
    let source = include_str!("ways.c");
    let entries: Vec<_> = WRITES.iter().chain(OTHERS).map(|(way, _)| *way).collect();
    let own = [FLAGS, "written_base", "dump", "child_writes_to", "child_receives_from", "name"];
    for macro_name in ["\nWAY(", "\nLENGTH("] {
        for way in source.split(macro_name).skip(1).filter_map(|rest| rest.split([')', ',']).next()) {
            assert!(entries.contains(&way) || own.contains(&way), "{way}");
        }
    }
}
