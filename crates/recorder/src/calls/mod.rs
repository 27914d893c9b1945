//! System calls of a program, by the kernel's trace events where that may be, else through `strace`.

mod kernel;
mod strace;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use flashgrain_trace::{Address, Loss, NameId, Operation, Reader};

use crate::Error;
use crate::places::Places;
use crate::precedence::let_programs_go_first;
use crate::program::Program;
use crate::runner::Runner;
use crate::sink::Sink;
use kernel::Followed;
use strace::Printed;

/// What records system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSource {
    /// Trace events of the kernel, which need root.
    Kernel,
    /// `strace`, which stops the program at each call.
    Strace,
}

/// A program whose calls are being recorded.
pub enum Calls {
    Kernel(Box<Followed>, Program),
    Strace(Printed),
}

/// Starts a program, or finds one, with its calls recorded. Without a `wanted` source, it is the kernel, and
/// `strace` if the kernel refuses. `offset_ns` is the calendar's time less that of the clock. `note` gets the
/// source that was taken.
pub fn begin(
    program: &Program,
    wanted: Option<CallSource>,
    offset_ns: i64,
    note: &mut Vec<String>,
) -> Result<(Runner, Calls), Error> {
    if wanted != Some(CallSource::Strace) {
        match Followed::new(offset_ns) {
            Ok(followed) => {
                let (runner, followed) = followed.begin(program)?;
                note.push("system calls are recorded by the kernel's trace events".into());
                return Ok((runner, Calls::Kernel(Box::new(followed), program.clone())));
            }
            Err(problem) if wanted.is_some() => return Err(Error::Calls { problem }),
            Err(problem) => {
                note.push(format!(
                    "system calls are recorded through strace, which stops the program: {problem}"
                ));
            }
        }
    }
    let (runner, printed) = strace::begin(program)?;
    Ok((runner, Calls::Strace(printed)))
}

impl Calls {
    /// Writes the requests to `sink` until the program has ended, or, of the kernel's events, until
    /// `is_over`. `offset_ns` is added to times, which are those of the calendar.
    pub fn run(self, sink: &Sink, offset_ns: i64, is_over: &AtomicBool) -> Result<Places, Error> {
        match self {
            Self::Strace(printed) => requests(BufReader::with_capacity(1 << 20, printed.0), sink, offset_ns),
            Self::Kernel(followed, program) => {
                let_programs_go_first();
                let lines = followed.lines(&program, is_over);
                let losses = lines.losses();
                let places = requests(BufReader::with_capacity(1 << 20, lines), sink, offset_ns)?;
                let losses = losses.lock().unwrap_or_else(PoisonError::into_inner);
                sink.with(|inside| inside.lose_all(&losses));
                Ok(places)
            }
        }
    }
}

/// Writes the requests of strace's text to `sink`.
fn requests(text: impl BufRead, sink: &Sink, offset_ns: i64) -> Result<Places, Error> {
    let mut places = Places::default();
    let mut paths: HashMap<NameId, String> = HashMap::new();
    let mut reader = Reader::of_strace(text);
    reader.count_wrong_lines();
    while let Some(request) = reader.next() {
        let mut request = request?;
        request.time_ns = request.time_ns.saturating_add_signed(offset_ns);
        let Some(file) = request.in_file else { continue };
        let name = paths.entry(file.name).or_insert_with(|| followed(reader.names().text(file.name)));
        let requests = sink.with(|inside| {
            let name = inside.names.id(name);
            request.in_file = Some(Address { name, ..file });
            inside.request(&request);
            inside.requests()
        });
        if request.operation == Operation::Flush {
            places.look(name, requests);
        }
    }
    // Block requests are to these files, too, even if no system call shows it.
    for (_, name) in reader.names().iter() {
        places.look(name, u64::MAX);
    }
    let losses = reader.losses();
    sink.with(|inside| inside.lose_all(&losses));
    if losses.count(Loss::IoUring) > 0 {
        sink.with(|inside| inside.note("the program uses io_uring, whose requests no system call shows"));
    }
    Ok(places)
}

/// A path without symbolic links; of a file that is gone, its folder's. A file has one name so, whichever
/// path it was opened by.
fn followed(path: &str) -> String {
    let whole = Path::new(path);
    let found = whole.canonicalize().ok().or_else(|| {
        let folder = whole.parent().filter(|_| whole.is_absolute())?.canonicalize().ok()?;
        Some(folder.join(whole.file_name()?))
    });
    found.map_or_else(|| path.to_owned(), |found| found.to_string_lossy().into_owned())
}
