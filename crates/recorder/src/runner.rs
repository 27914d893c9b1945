//! A program while it is recorded: how it is started, how it has ended, how it is asked to end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use flashgrain_device::interrupt_process;

use crate::Error;
use crate::program::Program;

/// A program, or the `strace` that watches it.
pub enum Runner {
    /// A program that was started.
    Program(Child),
    /// A program that was started, and the list of its threads and children that are followed.
    Followed(Child, PathBuf),
    /// The `strace` that has started one.
    StraceOfChild(Child),
    /// The `strace` that watches one that ran before.
    StraceOfOther(Child),
    /// A process that is not traced; whether it was let go.
    Other(u32, bool),
}

impl Runner {
    /// Starts a program, or finds a process, without tracing its calls.
    pub fn begin(program: &Program) -> Result<Self, Error> {
        match program {
            Program::Attach(process) => Ok(Self::Other(*process, false)),
            Program::Start(words) => {
                let (name, arguments) =
                    words.split_first().ok_or_else(|| no_command(io::ErrorKind::NotFound.into()))?;
                let child = Command::new(name).args::<_, &OsString>(arguments).spawn();
                child
                    .map(Self::Program)
                    .map_err(|error| Error::os(format!("start {}", Path::new(name).display()))(error))
            }
        }
    }

    /// How it has ended, if it has. `strace` ends as the program does that it started.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        match self {
            Self::Program(child) | Self::StraceOfChild(child) | Self::StraceOfOther(child) => {
                child.try_wait().map_err(Error::os("wait for the command"))
            }
            Self::Followed(child, followed) => {
                let status = child.try_wait().map_err(Error::os("wait for the command"))?;
                // As strace does, the recording waits for what the program has left behind.
                Ok(status.filter(|_| threads(followed).is_empty()))
            }
            // Only its parent learns how it has ended.
            Self::Other(process, is_let_go) => {
                let is_gone = *is_let_go || !Path::new(&format!("/proc/{process}")).exists();
                Ok(is_gone.then(|| ExitStatus::from_raw(0)))
            }
        }
    }

    /// Asks a program that was started to end, and lets go of one that ran before.
    pub fn interrupt(&mut self) {
        match self {
            // `strace` lets go of a process that ran before.
            Self::StraceOfOther(strace) => ask(strace.id()),
            Self::Followed(_, followed) => threads(followed).into_iter().for_each(ask),
            Self::Program(child) => {
                descendants(child.id()).into_iter().for_each(ask);
                ask(child.id());
            }
            Self::StraceOfChild(strace) => descendants(strace.id()).into_iter().for_each(ask),
            Self::Other(_, is_let_go) => *is_let_go = true,
        }
    }
}

/// The threads in a list of tracefs.
fn threads(list: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn ask(process: u32) {
    // A process that has just ended needs no signal.
    let _ = interrupt_process(process);
}

/// The children of a process, their children, and so on, the deepest first: a shell waits for its children
/// before it ends.
fn descendants(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    let texts: Vec<String> = threads.filter_map(of_thread).collect();
    let mut found = Vec::new();
    for child in
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|child| child.parse().ok())
    {
        found.extend(descendants(child));
        found.push(child);
    }
    found
}

fn no_command(error: io::Error) -> Error {
    Error::os("start the command")(error)
}
