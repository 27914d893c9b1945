//! `flashgrain trace record`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use flashgrain_profile::Error as ProfileError;
use flashgrain_recorder::{CallSource, Options, Program, Recorded, Recording};
use flashgrain_report::unit;
use flashgrain_trace::Format;

use crate::exit::Usage;
use crate::output::Context;
use crate::units::parse_seconds;

/// Record the I/O of a command, of a process that runs, or of a drive.
///
/// System calls say which files. As root they are recorded by the kernel's trace events, else through strace,
/// which must be installed and stops the command at each call. Block requests are recorded by the kernel's
/// trace events, which needs root; they show the requests that reach the drive.
/// Of a command or process both are recorded, as far as they can be had. The trace so far is kept on Ctrl-C.
/// docs/trace.md tells the cost of recording.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// File for the trace.
    #[arg(short, long, value_name = "FILE", default_value = "flashgrain.trace")]
    output: PathBuf,
    /// A process that runs, and its threads.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// Record block requests of this drive only: a block device, or a file or folder on it.
    #[arg(long, value_name = "DEV")]
    device: Option<PathBuf>,
    /// What records system calls; the kernel where it may be traced, else strace, unless this is given.
    #[arg(long, value_name = "SOURCE", conflicts_with = "no_calls")]
    calls_by: Option<CallsBy>,
    /// Leave system calls out: the rest costs the command little.
    #[arg(long)]
    no_calls: bool,
    /// Leave block requests out.
    #[arg(long, conflicts_with = "no_calls")]
    no_blocks: bool,
    /// End after this time; the command is asked to end, too.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// The command with its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What records system calls.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CallsBy {
    /// The kernel's trace events: root only.
    Kernel,
    /// strace, which must be installed.
    Strace,
}

pub fn run(arguments: &RecordArguments, context: &Context) -> anyhow::Result<()> {
    let options = options(arguments)?;
    let is_of_drive = options.program.is_none();
    let interrupt = context.interrupt.watch()?;
    let output = arguments.output.display();
    let recording = Recording::begin(options)?;
    for note in recording.notes() {
        context.note(&format!("note: {note}"));
    }
    let partial = recording.partial().display().to_string();
    context.interrupt.leaves(format!("the requests recorded until then are in {output}"));
    if is_of_drive {
        context.note("recording; Ctrl-C ends it");
    }
    let recorded = recording
        .run(interrupt)
        .with_context(|| format!("the requests recorded until then are in {partial}"))?;
    context.note(&said(&recorded, &output.to_string()));
    if let Some(failure) = recorded.failure() {
        return Err(failure).with_context(|| format!("the requests recorded until then are in {output}"));
    }
    // Of a drive, Ctrl-C is how a recording ends.
    if recorded.is_interrupted() && !is_of_drive { Err(ProfileError::Interrupted.into()) } else { Ok(()) }
}

fn options(arguments: &RecordArguments) -> anyhow::Result<Options> {
    let program = match (&arguments.pid, arguments.command.as_slice()) {
        (Some(pid), _) => Some(Program::Attach(*pid)),
        (None, []) => None,
        (None, words) => Some(Program::Start(words.to_vec())),
    };
    if program.is_none() && arguments.device.is_none() {
        return Err(Usage("give -- COMMAND, --pid PID or --device DEV to record".into()).into());
    }
    if program.is_none() && arguments.no_blocks {
        return Err(Usage("--device without block requests has nothing to record".into()).into());
    }
    if let Some(Program::Attach(pid)) = program
        && !Path::new(&format!("/proc/{pid}")).exists()
    {
        return Err(Usage(format!("--pid {pid}: there is no such process")).into());
    }
    if let Some(Program::Start(words)) = &program
        && let Some(name) = words.first().filter(|name| !is_command(name))
    {
        return Err(Usage(format!("there is no command {}", name.display())).into());
    }
    check_output(&arguments.output)?;
    Ok(Options {
        output: arguments.output.clone(),
        program,
        drive: arguments.device.clone(),
        calls_by: arguments.calls_by.map(|by| match by {
            CallsBy::Kernel => CallSource::Kernel,
            CallsBy::Strace => CallSource::Strace,
        }),
        leaves_calls_out: arguments.no_calls,
        leaves_blocks_out: arguments.no_blocks,
        seconds: arguments.seconds,
    })
}

/// Whether a shell would find the command: else an older trace would be replaced by one of nothing.
fn is_command(name: &OsStr) -> bool {
    let path = Path::new(name);
    let folders = env::var_os("PATH").unwrap_or_default();
    match path.components().count() {
        1 => env::split_paths(&folders).any(|folder| folder.join(path).is_file()),
        _ => path.is_file(),
    }
}

/// Refuses to replace a file that is no trace.
fn check_output(output: &Path) -> anyhow::Result<()> {
    if !output.exists() {
        return Ok(());
    }
    let mut head = Vec::new();
    let read = File::open(output).and_then(|file| file.take(4096).read_to_end(&mut head));
    read.with_context(|| format!("read {}", output.display()))?;
    if Format::recognise(&head) == Some(Format::Own) {
        return Ok(());
    }
    Err(Usage(format!(
        "{} exists and is no trace of Flashgrain: name another file with --output",
        output.display()
    ))
    .into())
}

/// The recorded trace, in sentences.
fn said(recorded: &Recorded, output: &str) -> String {
    let mut said = format!("wrote {output}: {}", unit::things(recorded.requests, "request"));
    if recorded.mapped > 0 {
        said += &format!(
            ", {} of them to files whose place on the drive is known",
            unit::count(recorded.mapped as f64)
        );
    }
    if recorded.own > 0 {
        said += &format!("; {} of the recorder's own were left out", unit::count(recorded.own as f64));
    }
    for (loss, count) in recorded.losses.iter() {
        said += &format!("\nnote: {}: {}", unit::count(count as f64), loss.meaning());
    }
    for note in &recorded.notes {
        said += &format!("\nnote: {note}");
    }
    said
}
