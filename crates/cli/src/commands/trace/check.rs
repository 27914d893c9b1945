//! `flashgrain trace check`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use flashgrain_advisor::Advice;
use flashgrain_advisor::engine::EngineName;
use flashgrain_profile::{DeviceProfile, file};
use flashgrain_report::trace::{JudgedTrace, page};
use flashgrain_trace::Reader;
use flashgrain_trace::check::{Advised, Check, Drive, Endurance, JudgedBy, Report};
use serde::Serialize;

use crate::commands::advise::{DEFAULT_WORKLOAD, named};
use crate::output::{Context, print, print_json};
use crate::units::{parse_bytes, parse_positive_bytes};
use crate::{results, summary};

/// Say which requests of a trace go against the grain of a drive, and their cost there.
///
/// Applies the five rules of the hidden-parameters paper to each file, prices the requests that break them
/// with the models of the profile, counts flash pages and wear, and names settings and layouts that would
/// mend it. A rule whose parameter the profile does not know is skipped. The format of the trace is
/// recognised: that of `flashgrain trace record`, blkparse, blktrace, strace, fio, MQSim, MSR Cambridge or
/// CloudPhysics.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The trace; it may be a pipe, such as /dev/stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A folder of results, or a `profile.json`, of the drive.
    #[arg(long, value_name = "FILE", default_value = "flashgrain-out")]
    profile: PathBuf,
    /// The workload whose advised settings remedies name, as `advise --workload` takes it.
    #[arg(long, value_name = "FILE|PRESET", default_value = DEFAULT_WORKLOAD)]
    workload: String,
    /// Bytes that the drive may be made to write in its life, such as 600TB: how long it lasts.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    endurance: Option<u64>,
    /// Judge offsets in files even where the trace has addresses on the drive: the layout that the program
    /// chose, as the paper does.
    #[arg(long)]
    by_file: bool,
    /// Judge offsets in files as if each file began so far after a stripe does, as on a partition that begins
    /// there.
    #[arg(long, value_name = "SIZE", requires = "by_file", value_parser = parse_bytes, default_value = "0")]
    begin: u64,
    /// Write a page with figures, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Output<'a> {
    flashgrain_version: &'static str,
    trace: String,
    format: String,
    /// Why the trace could not be read to its end.
    damage: Option<String>,
    #[serde(flatten)]
    report: &'a Report,
    endurance: Option<Endurance>,
}

/// Whether a page may be written there: not over the trace, nor over anything else that is no page.
fn check_is_free(path: &Path) -> anyhow::Result<()> {
    let mut beginning = Vec::new();
    if let Ok(file) = File::open(path) {
        file.take(14).read_to_end(&mut beginning)?;
    }
    let is_page = beginning.eq_ignore_ascii_case(b"<!doctype html");
    ensure!(
        beginning.is_empty() || is_page,
        "{} exists and is no page: name another file with --html",
        path.display()
    );
    Ok(())
}

pub fn run(arguments: &CheckArguments, context: &Context) -> anyhow::Result<()> {
    arguments.html.as_deref().map_or(Ok(()), check_is_free)?;
    let profile = results::read_profile(&arguments.profile)?;
    let judged_by = if arguments.by_file { JudgedBy::File } else { JudgedBy::Drive };
    let drive = Drive::of(&profile).with_advice(advised(&arguments.workload, &profile)?);
    let mut check = Check::new(drive, judged_by).with_files_at(arguments.begin);
    let mut reader = open(&arguments.trace)?;
    let named = arguments.trace.display().to_string();
    let damage = reader.by_ref().find_map(|request| request.map(|request| check.take(&request)).err());
    let report = check.finish(reader.names(), &reader.losses(), reader.notes());
    let endurance = arguments.endurance.and_then(|bytes| report.endurance(bytes));
    let judged = JudgedTrace {
        source: &named,
        format: format!("{} trace", reader.format()),
        report: &report,
        endurance,
        damage: damage.as_ref().map(ToString::to_string),
    };
    if let Some(path) = &arguments.html {
        let page = page(&judged)?;
        file::write_atomically(path, |writer| writer.write_all(page.as_bytes()))?;
        context.note(&format!("wrote {}", path.display()));
    }
    if arguments.json {
        print_json(&Output {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            trace: named.clone(),
            format: reader.format().to_string(),
            damage: judged.damage.clone(),
            report: &report,
            endurance,
        })?;
    } else {
        print(&summary::trace(&judged))?;
    }
    // The requests before the damage are worth showing, but they are not the whole trace.
    damage.map_or(Ok(()), |error| Err(error).context(named))
}

/// The settings that `flashgrain advise` has for the workload.
fn advised(workload: &str, profile: &DeviceProfile) -> anyhow::Result<Advised> {
    let workload = named(workload)?;
    let engines = [EngineName::Sqlite, EngineName::Mariadb, EngineName::Wiredtiger];
    let advice = Advice::new(&workload, profile, &engines);
    let value = |setting| advice.engines.iter().find_map(|engine| engine.value(setting)).map(str::to_owned);
    Ok(Advised {
        sqlite_page_size: value("page_size"),
        sqlite_journal_mode: value("journal_mode"),
        innodb_page_size: value("innodb_page_size"),
        wiredtiger_leaf_page_max: value("leaf_page_max"),
        workload: workload.name,
    })
}

/// A reader of the trace at `path`.
pub fn open(path: &Path) -> anyhow::Result<Reader<impl std::io::BufRead + use<>>> {
    let named = || path.display().to_string();
    let file = File::open(path).with_context(|| format!("read {}", path.display()))?;
    // A folder opens like a file and fails at the first byte.
    Reader::new(file.take(u64::MAX)).with_context(named)
}
