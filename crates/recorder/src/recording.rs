//! A recording, from its sources to the trace.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use flashgrain_device::{Nanos, clock};
use flashgrain_trace::{Loss, Losses, Reader};

use crate::Error;
use crate::blocks::{Blocks, Completed};
use crate::calls::{self, CallSource, Calls};
use crate::drives::{Counters, Drive, all_counters, drive_of};
use crate::place::place;
use crate::places::Places;
use crate::program::Program;
use crate::runner::Runner;
use crate::sink::Sink;

/// How often the recorder looks whether it is to end.
const LOOK: Nanos = Nanos(20_000_000);

/// Interval at which recorded requests are handed on to the file.
const KEEP: Nanos = Nanos(200_000_000);

/// How long a program may take to end after Ctrl-C, which it gets, too, before it is asked again.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// The sources to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace.
    pub output: PathBuf,
    /// The program.
    pub program: Option<Program>,
    /// The drive whose block requests are recorded, by a name of /dev or of a file on it; of all if there is
    /// none.
    pub drive: Option<PathBuf>,
    /// What records system calls; whatever can be had, if nothing is said.
    pub calls_by: Option<CallSource>,
    /// Whether system calls are left out.
    pub leaves_calls_out: bool,
    /// Whether block requests are left out.
    pub leaves_blocks_out: bool,
    /// The longest time, in seconds.
    pub seconds: Option<f64>,
}

/// Why a recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program has.
    Program(ExitStatus),
    /// The user wanted it.
    Interrupted,
    /// The time is over.
    Time,
    /// The drive is gone.
    Gone(Drive),
}

/// A recording under way.
pub struct Recording {
    options: Options,
    partial: PathBuf,
    sink: Sink,
    blocks: Option<Blocks>,
    runner: Option<Runner>,
    calls: Option<Calls>,
    drive: Option<Drive>,
    counters: BTreeMap<Drive, Counters>,
    begin: Nanos,
    calls_offset_ns: i64,
    notes: Vec<String>,
}

/// The result of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// Requests in the trace.
    pub requests: u64,
    /// Requests to files whose address on a drive is known.
    pub mapped: u64,
    /// The recorder's own writes, which were left out.
    pub own: u64,
    /// Requests that are missing.
    pub losses: Losses,
    /// Notes for people.
    pub notes: Vec<String>,
    end: End,
    /// Whether the program was one of `strace`, which may itself have failed.
    is_of_strace: bool,
}

impl Recorded {
    /// Whether the user wanted the recording to end.
    pub fn is_interrupted(&self) -> bool {
        self.end == End::Interrupted
    }

    /// The failure of the recording, though the trace is there.
    pub fn failure(&self) -> Option<Error> {
        match self.end {
            End::Program(status) if status.success() => None,
            End::Program(status) if self.requests == 0 && self.is_of_strace => Some(Error::Strace(status)),
            End::Program(status) => Some(Error::Command(status)),
            End::Gone(drive) => Some(Error::Gone(drive.to_string())),
            End::Interrupted | End::Time => None,
        }
    }
}

/// The file of the recorded requests until the trace is complete.
fn partial(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    output.with_file_name(name)
}

impl Recording {
    /// Opens the sources; the program begins to run.
    ///
    /// # Errors
    /// If no source can be had, or the trace cannot be written.
    pub fn begin(options: Options) -> Result<Self, Error> {
        let drive = options.drive.as_deref().map(drive_of).transpose()?;
        let mut notes = Vec::new();
        let wants_calls = options.program.is_some() && !options.leaves_calls_out;
        let blocks = match options.leaves_blocks_out {
            true => None,
            false => match Blocks::begin(drive) {
                Ok(blocks) => Some(blocks),
                Err(error) if wants_calls => {
                    notes.push(format!("{error}; system calls alone are recorded"));
                    None
                }
                Err(error) => return Err(error),
            },
        };
        // Between these counters and those at the end, every request is recorded.
        let counters = all_counters();
        let partial = partial(&options.output);
        let file = File::create_new(&partial).map_err(Error::os(format!(
            "make {}, which holds the recorded requests (if an earlier recording has left it, read it or remove it)",
            partial.display()
        )))?;
        let sink = Sink::new(file).map_err(Error::os("write the trace"))?;
        sink.with(|inside| {
            if let Some(program) = &options.program {
                inside.note(&program.to_string());
            }
            // However soon this process is killed, the file is a trace.
            inside.flush();
        });
        let begin = clock::now();
        let calendar_ns = i64::try_from(clock::calendar().0).unwrap_or(i64::MAX);
        let offset_ns = calendar_ns.saturating_sub(i64::try_from(begin.0).unwrap_or(i64::MAX));
        let started = match &options.program {
            None => Ok((None, None)),
            Some(program) if wants_calls => calls::begin(program, options.calls_by, offset_ns, &mut notes)
                .map(|(runner, calls)| (Some(runner), Some(calls))),
            Some(program) => Runner::begin(program).map(|runner| (Some(runner), None)),
        };
        let begun = |runner, calls| Self {
            options: options.clone(),
            partial: partial.clone(),
            sink,
            blocks,
            runner,
            calls,
            drive,
            counters,
            begin,
            calls_offset_ns: -calendar_ns,
            notes,
        };
        match started {
            Ok((runner, calls)) => Ok(begun(runner, calls)),
            Err(error) => {
                // Nothing was recorded, so that nothing is lost with the file.
                let _ = fs::remove_file(&partial);
                Err(error)
            }
        }
    }

    /// The file of the requests recorded so far.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Sources that could not be recorded, as notes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Records until the program has ended, the time is over, the drive is gone, or `interrupt` is set, and
    /// writes the trace.
    ///
    /// # Errors
    /// If the trace cannot be written; the recorded requests are then in [`Recording::partial`].
    pub fn run(self, interrupt: &AtomicBool) -> Result<Recorded, Error> {
        let Self {
            options,
            partial,
            sink,
            blocks,
            mut runner,
            calls,
            drive,
            counters,
            begin,
            calls_offset_ns,
            mut notes,
        } = self;
        let is_of_strace = matches!(calls, Some(Calls::Strace(_)));
        let (is_over, is_ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (end, places, completed, counted) = thread::scope(|scope| {
            let blocks = blocks.map(|blocks| scope.spawn(|| blocks.run(&sink, begin, &is_over)));
            let calls = calls.map(|calls| scope.spawn(|| calls.run(&sink, calls_offset_ns, &is_ended)));
            let end = watch(runner.as_mut(), &options, drive, &sink, interrupt);
            is_ended.store(true, Ordering::Relaxed);
            let places = calls.map_or_else(|| Ok(Places::default()), joined);
            let counted = all_counters();
            is_over.store(true, Ordering::Relaxed);
            let completed = blocks.map(joined).transpose();
            (end, places, completed, counted)
        });
        let (end, mut places, completed) = (end?, places?, completed?);
        let mut missing = 0;
        if let Some(completed) = &completed {
            for (text, lacking) in compare(&counters, &counted, completed, drive) {
                notes.push(text);
                missing += lacking;
            }
        }
        sink.with(|inside| {
            for note in &notes {
                inside.note(note);
            }
            inside.lose(Loss::Missing, missing);
        });
        let mut losses = sink.finish().map_err(Error::os("write the trace"))?;
        let placed = write_placed(&options.output, &partial, &mut places, &mut losses)?;
        let crate::place::Placed { requests, mapped, own } = placed;
        Ok(Recorded { requests, mapped, own, losses, notes, end, is_of_strace })
    }
}

/// The value that a thread has returned. Its panic is a panic of this one.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits for the end of the recording.
fn watch(
    mut runner: Option<&mut Runner>,
    options: &Options,
    drive: Option<Drive>,
    sink: &Sink,
    interrupt: &AtomicBool,
) -> Result<End, Error> {
    let begin = clock::now();
    let until = options.seconds.map(|seconds| begin + Nanos::from_seconds(seconds));
    let mut kept = begin;
    // When and why the program is to end that does not end by itself.
    let mut wanted: Option<(Nanos, End)> = None;
    loop {
        let now = clock::now();
        if let Some(status) = runner.as_mut().map(|runner| runner.ended()).transpose()?.flatten() {
            return Ok(wanted.map_or(End::Program(status), |(_, end)| end));
        }
        let is_gone = drive.filter(|drive| drive.counters().is_none());
        let end = if interrupt.load(Ordering::Relaxed) {
            Some(End::Interrupted)
        } else if until.is_some_and(|until| now >= until) || sink.with(|inside| inside.has_failed()) {
            Some(End::Time)
        } else {
            is_gone.map(End::Gone)
        };
        match (&mut runner, end, wanted) {
            (None, Some(end), _) => return Ok(end),
            (Some(_), Some(end @ End::Interrupted), None) => wanted = Some((now + PATIENCE, end)),
            (Some(_), Some(end), None) => wanted = Some((now, end)),
            (Some(runner), _, Some((when, end))) if now >= when => {
                runner.interrupt();
                wanted = Some((now + PATIENCE, end));
            }
            _ => {}
        }
        if now >= kept + KEEP {
            sink.with(|inside| inside.flush());
            kept = now;
        }
        clock::sleep_until(now + LOOK);
    }
}

/// The kernel's counts and the recorded ones of each drive, in words, and how many requests are missing.
fn compare(
    before: &BTreeMap<Drive, Counters>,
    after: &BTreeMap<Drive, Counters>,
    completed: &Completed,
    drive: Option<Drive>,
) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for (of, now) in after.iter().filter(|(of, _)| drive.is_none_or(|drive| drive == **of)) {
        let counted = now.since(before.get(of).unwrap_or(now)).requests;
        let recorded = completed.get(of).copied().unwrap_or_default();
        if counted == [0, 0] && recorded == [0, 0] {
            continue;
        }
        let missing =
            counted.iter().zip(recorded).map(|(counted, recorded)| counted.saturating_sub(recorded)).sum();
        let text = format!(
            "{} ({of}): its counters have {} reads and {} writes, {} and {} were recorded, with those under way at its begin and end",
            of.name(),
            counted[0],
            counted[1],
            recorded[0],
            recorded[1]
        );
        found.push((text, missing));
    }
    if let Some(gone) = drive.filter(|drive| !after.contains_key(drive)) {
        found.push((format!("{gone}: the drive is gone, and its counters with it"), 0));
    }
    found
}

/// Makes the trace of the recorded requests in `partial`, and removes that file.
fn write_placed(
    output: &Path,
    partial: &Path,
    places: &mut Places,
    losses: &mut Losses,
) -> Result<crate::place::Placed, Error> {
    let reading = || Error::os(format!("read {}", partial.display()));
    let reader = Reader::new(File::open(partial).map_err(reading())?)?;
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = output.with_file_name(name);
    let writing = || Error::os(format!("write {}", new.display()));
    let file = File::create(&new).map_err(writing())?;
    let placed = place(reader, BufWriter::with_capacity(1 << 20, file), partial, places, losses)?;
    fs::rename(&new, output).map_err(writing())?;
    fs::remove_file(partial).map_err(reading())?;
    Ok(placed)
}
