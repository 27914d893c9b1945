//! System calls of a program, through `strace`: it starts or watches the program and prints into a pipe.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::process::{self, Child, Command};

use flashgrain_device::{Nanos, clock};

use crate::Error;
use crate::program::Program;
use crate::runner::Runner;

/// The calls that move bytes, that say where, and that say which file.
const CALLS: &str = "open,openat,openat2,creat,close,close_range,dup,dup2,dup3,fcntl,chdir,fchdir,execve,execveat,unshare,fork,vfork,clone,clone3,lseek,fstat,newfstatat,ftruncate,\
    fallocate,read,readv,pread64,preadv,preadv2,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,mmap,io_submit,io_uring_enter,\
    sendfile,copy_file_range,splice";

/// How long the recorder waits before it looks again whether `strace` has begun.
const PAUSE: Nanos = Nanos(1_000_000);

/// The output of `strace`.
pub struct Printed(pub PipeReader);

/// Starts `strace` with a program, or on one that runs.
pub fn begin(program: &Program) -> Result<(Runner, Printed), Error> {
    let (reader, writer) = io::pipe().map_err(Error::os("make a pipe"))?;
    let mut command = Command::new("strace");
    // Threads and children, times, durations, paths; no contents, and no signals.
    command.args(["--quiet=all", "-f", "-ttt", "-T", "-y", "-s", "0", "-a", "0", "-e", "signal=none"]);
    command.arg("-e").arg(format!("trace={CALLS}"));
    // `strace` opens this end by its name in /proc, so that no descriptor is handed to the program.
    command.arg("-o").arg(format!("/proc/{}/fd/{}", process::id(), writer.as_raw_fd()));
    match program {
        Program::Start(words) => {
            // Only the calls above stop the program.
            command.arg("--seccomp-bpf").arg("--").args::<_, &OsString>(words);
        }
        Program::Attach(pid) => {
            command.arg("-p").arg(pid.to_string());
        }
    }
    let strace = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoStrace,
        _ => Error::os("start strace")(error),
    })?;
    // Until strace has opened it, this process must keep the writing end.
    wait_for_opening(&strace, &writer)?;
    drop(writer);
    let runner = match program {
        Program::Start(_) => Runner::StraceOfChild(strace),
        Program::Attach(_) => Runner::StraceOfOther(strace),
    };
    Ok((runner, Printed(reader)))
}

/// Waits until `strace` has the pipe open, or has ended.
fn wait_for_opening(strace: &Child, writer: &io::PipeWriter) -> Result<(), Error> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", writer.as_raw_fd()))
        .map_err(Error::os("look at a pipe"))?;
    let folder = format!("/proc/{}/fd", strace.id());
    loop {
        let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(()) };
        let mut links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        if links.any(|link| link == name) || is_ended(strace.id()) {
            return Ok(());
        }
        clock::sleep_until(clock::now() + PAUSE);
    }
}

/// Whether a child of this process has ended without having been waited for.
fn is_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
}
