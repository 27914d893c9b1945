//! Runs of all engines, in rounds: each round asks every question to every engine in turn, so that a slow
//! hour of the machine is one for all. Every run is a process of its own.

mod plan;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use flashgrain_device::{Nanos, clock};
use flashgrain_profile::schema::Latency;
use signal_hook::consts::SIGKILL;

pub use plan::{Planned, Suite};

use crate::benchmark::Contents;
use crate::engine::EngineName;
use crate::measure::{RawFile, RawLimit};
use crate::records::Records;
use crate::run::{EngineDirectory, RunResult, Sizes};

/// Runs to make, and their settings.
#[derive(Debug)]
pub struct Suites {
    /// Suites to run.
    pub suites: Vec<Suite>,
    /// The engines.
    pub engines: Vec<EngineName>,
    /// Number of rounds.
    pub rounds: u32,
    /// Sizes of the data.
    pub sizes: Sizes,
    /// Counted seconds of each run.
    pub seconds: f64,
    /// Seconds before.
    pub warmup_s: f64,
    /// Directory of the engines' files.
    pub directory: PathBuf,
    /// File to which results are appended, a line each. Runs that the file already has are left out.
    pub results: PathBuf,
    /// Processors of this machine.
    pub cores: usize,
    /// How long a run may take, filling included; then its engine is taken to hang.
    pub patience: Duration,
}

/// How a suite ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// It ended before all runs were done.
    pub is_interrupted: bool,
    /// Runs that failed, or whose check failed.
    pub failures: usize,
}

/// Text that distinguishes runs.
type Identity = String;

/// Bytes of the file for raw requests: as many as the data, within these.
const RAW_BYTES: (u64, u64) = (64 << 20, 2 << 30);

/// Seconds that the drive is measured alone, for each question of each round; less if runs are short.
const RAW_SECONDS: f64 = 3.0;

/// Between two looks whether a run has ended.
const TICK: Duration = Duration::from_millis(50);

/// A run of the plan.
struct Step {
    planned: Planned,
    contents: Contents,
    data_bytes: u64,
    engine: EngineName,
    round: u32,
}

impl Suites {
    /// Does all runs that are missing. `note` gets messages on the progress. Results of completed runs are
    /// kept, also when it is interrupted or a run fails.
    ///
    /// # Errors
    /// If the drive cannot be measured, or results not be read or written.
    pub fn run(&self, interrupt: &AtomicBool, note: &dyn Fn(&str)) -> anyhow::Result<Ended> {
        let mut known = self.known()?;
        let done: BTreeSet<Identity> = known.iter().map(identity_of).collect();
        let planned = self.steps()?;
        let all = planned.len();
        let steps: Vec<Step> =
            planned.into_iter().filter(|step| !done.contains(&self.identity(step))).collect();
        note(&format!("{all} runs, {} of them done before", all - steps.len()));
        let mut ended = Ended { is_interrupted: false, failures: 0 };
        if steps.is_empty() {
            return Ok(ended);
        }
        let raw = RawFile::new(&self.directory, raw_bytes(&steps), interrupt)?;
        let mut out = OpenOptions::new().create(true).append(true).open(&self.results)?;
        let began = clock::now();
        let mut limit = None;
        for (number, step) in steps.iter().enumerate() {
            if interrupt.load(Ordering::Relaxed) {
                break;
            }
            let before = number.checked_sub(1).and_then(|number| steps.get(number));
            if before.is_none_or(|before| before.round != step.round || before.planned != step.planned) {
                limit = Some(self.raw(&raw, &step.planned, interrupt)?);
            }
            let remaining = remaining(clock::now().since(began).seconds(), number, steps.len());
            note(&format!("[{} of {}{remaining}] {}", number + 1, steps.len(), self.describe(step)));
            match self.run_one(step, limit, &known) {
                Ok(None) => break,
                Ok(Some(mut result)) => {
                    // The run is kept, whatever becomes of this.
                    match self.raw_latency(&raw, &result, interrupt) {
                        Ok(latency) => result.raw_latency = latency,
                        Err(error) => note(&format!("    the drive alone: {error:#}")),
                    }
                    writeln!(out, "{}", serde_json::to_string(&result)?)?;
                    out.sync_data()?;
                    let (rate, cpu) = (result.operations_per_s, result.cpu_us_per_operation);
                    note(&format!("    {rate:.0}/s, {cpu:.1} us of CPU each"));
                    ended.failures += usize::from(!result.is_sound());
                    known.push(result);
                }
                Err(error) => {
                    note(&format!("    {error:#}"));
                    ended.failures += 1;
                }
            }
        }
        ended.is_interrupted = interrupt.load(Ordering::Relaxed);
        Ok(ended)
    }

    /// Removes the engines' files.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn clear(&self) -> anyhow::Result<()> {
        self.engines
            .iter()
            .try_for_each(|engine| EngineDirectory::new(&self.directory, &engine.to_string()).clear())
    }

    fn steps(&self) -> anyhow::Result<Vec<Step>> {
        let mut steps = Vec::new();
        for round in 0..self.rounds {
            for planned in self.suites.iter().flat_map(|suite| suite.runs()) {
                let benchmark = self.sizes.benchmark(planned.workload)?;
                let (contents, data_bytes) = (benchmark.contents(), benchmark.data_bytes());
                // No engine is always the first after the drive was measured.
                let mut engines = self.engines.clone();
                let first = round as usize % engines.len().max(1);
                engines.rotate_left(first);
                for engine in engines {
                    steps.push(Step { planned: planned.clone(), contents, data_bytes, engine, round });
                }
            }
        }
        Ok(steps)
    }

    /// Results that are there already.
    fn known(&self) -> anyhow::Result<Vec<RunResult>> {
        match File::open(&self.results) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            file => read_results(BufReader::new(file?), &self.results.display().to_string()),
        }
    }

    fn identity(&self, step: &Step) -> Identity {
        let Step { planned, contents, engine, round, .. } = step;
        format!(
            "{engine} {} {contents:?} {} {} {} {:?} {:?} {round} {}",
            planned.workload,
            step.cache_bytes(),
            planned.clients,
            planned.cores.unwrap_or(self.cores),
            planned.durability,
            planned.load,
            self.sizes.seed,
        )
    }

    fn describe(&self, step: &Step) -> String {
        let Step { planned, engine, round, .. } = step;
        let cores = planned.cores.unwrap_or(self.cores);
        let load = planned.load.map(|load| format!(", at {:.0} % of its rate", load * 100.0));
        format!(
            "round {}: {engine}, {}, {} clients on {cores} cores{}",
            round + 1,
            planned.workload,
            planned.clients,
            load.unwrap_or_default()
        )
    }

    fn raw(&self, raw: &RawFile, planned: &Planned, interrupt: &AtomicBool) -> anyhow::Result<RawLimit> {
        let cores = planned.cores.unwrap_or(self.cores);
        let seconds = RAW_SECONDS.min(self.seconds);
        let (depth, seed) = (planned.clients as u32, self.sizes.seed);
        Ok(RawLimit::measure(raw, depth, cores as u32, seconds, seed, interrupt)?)
    }

    /// Latency of the drive alone at the rate of reads that an open-loop run caused.
    fn raw_latency(
        &self,
        raw: &RawFile,
        run: &RunResult,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Option<Latency>> {
        let (Some(_), Some(device)) = (run.rate_per_s, run.device) else { return Ok(None) };
        let reads_per_s = device.reads * run.operations_per_s;
        if reads_per_s < 1.0 {
            return Ok(None);
        }
        let (clients, cores) = (run.clients as u32, run.cores as u32);
        let seed = self.sizes.seed;
        Ok(RawLimit::latency_at(raw, reads_per_s, clients, cores, self.seconds, seed, interrupt)?)
    }

    fn command(&self, step: &Step, known: &[RunResult]) -> anyhow::Result<Command> {
        let Step { planned, engine, round, .. } = step;
        let Sizes { records, warehouses, seed } = self.sizes;
        let Records { count, key_bytes, value_bytes } = records;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", &engine.to_string(), planned.workload])
            .arg(&self.directory)
            .args(["--json", "--keep"])
            .args(["--records", &count.to_string(), "--warehouses", &warehouses.to_string()])
            .args(["--key-bytes", &key_bytes.to_string(), "--value-bytes", &value_bytes.to_string()])
            .args(["--cache", &step.cache_bytes().to_string()])
            .args(["--clients", &planned.clients.to_string()])
            .args(["--cores", &planned.cores.unwrap_or(self.cores).to_string()])
            .args(["--durability", &format!("{:?}", planned.durability).to_lowercase()])
            .args(["--seconds", &self.seconds.to_string(), "--warmup", &self.warmup_s.to_string()])
            .args(["--round", &round.to_string(), "--seed", &seed.to_string()]);
        if let Some(load) = planned.load {
            let rate = load * closed_rate(known, step)?;
            command.args(["--rate", &rate.to_string(), "--load", &load.to_string()]);
        }
        Ok(command)
    }

    /// `None` if it was interrupted.
    fn run_one(
        &self,
        step: &Step,
        raw: Option<RawLimit>,
        known: &[RunResult],
    ) -> anyhow::Result<Option<RunResult>> {
        let child = self
            .command(step, known)?
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let Finished { status, text, is_hanging } = finish(child, self.patience)?;
        match status.code() {
            Some(INTERRUPTED) => return Ok(None),
            // It has said why.
            _ if text.trim().is_empty() => {
                let why = match status.signal() {
                    _ if is_hanging => " as it took longer than `--patience`",
                    Some(SIGKILL) => " (by the kernel, if it needed more memory than it may use)",
                    _ => "",
                };
                bail!("{} failed: {status}{why}", self.describe(step))
            }
            _ => {}
        }
        let mut result: RunResult =
            serde_json::from_str(text.trim()).with_context(|| format!("read the result {text:?}"))?;
        result.raw = raw;
        Ok(Some(result))
    }
}

/// A run that has ended.
struct Finished {
    status: ExitStatus,
    /// Its standard output.
    text: String,
    /// It had to be ended.
    is_hanging: bool,
}

/// Waits for a run, but not longer than `patience`.
fn finish(mut child: Child, patience: Duration) -> anyhow::Result<Finished> {
    let mut out = child.stdout.take().context("a run has no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let (began, mut is_hanging) = (clock::now(), false);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if !is_hanging && Duration::from(clock::now().since(began)) > patience {
            is_hanging = true;
            child.kill()?;
        }
        clock::sleep_until(clock::now() + Nanos::from(TICK));
    };
    let text = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(Finished { status, text, is_hanging })
}

impl Step {
    fn cache_bytes(&self) -> u64 {
        (self.data_bytes as f64 * self.planned.cache_share) as u64
    }
}

fn raw_bytes(steps: &[Step]) -> u64 {
    steps.iter().map(|step| step.data_bytes).max().unwrap_or(0).clamp(RAW_BYTES.0, RAW_BYTES.1)
}

/// Exit code after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Expected time of the rest, from the time of the first `done` of `all`.
fn remaining(passed_s: f64, done: usize, all: usize) -> String {
    if done == 0 {
        return String::new();
    }
    format!(", {:.0} min left", (passed_s / done as f64 * (all - done) as f64 / 60.0).ceil())
}

/// Rate of the engine in a closed loop: the median of the known runs with the same clients.
fn closed_rate(known: &[RunResult], step: &Step) -> anyhow::Result<f64> {
    let Step { planned, contents, engine, .. } = step;
    let mut rates: Vec<f64> = known
        .iter()
        .filter(|run| run.engine == engine.to_string() && run.workload == planned.workload)
        .filter(|run| run.contents == *contents && run.cache_bytes == step.cache_bytes())
        .filter(|run| run.clients == planned.clients && run.durability == planned.durability)
        .filter(|run| run.rate_per_s.is_none())
        .map(|run| run.operations_per_s)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().with_context(|| {
        format!(
            "no run of {engine} with {} in a closed loop is known that the rate could follow from",
            planned.workload
        )
    })
}

fn identity_of(run: &RunResult) -> Identity {
    let RunResult {
        engine,
        workload,
        contents,
        cache_bytes,
        clients,
        cores,
        durability,
        load,
        round,
        seed,
        ..
    } = run;
    format!(
        "{engine} {workload} {contents:?} {cache_bytes} {clients} {cores} {durability:?} {load:?} {round} {seed}"
    )
}

/// Reads lines of JSON.
///
/// # Errors
/// Naming the line that is none.
pub fn read_results(lines: impl BufRead, name: &str) -> anyhow::Result<Vec<RunResult>> {
    let mut results = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            let result = serde_json::from_str(&line);
            results.push(result.with_context(|| format!("{name}, line {}: no result of a run", number + 1))?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, patience: Duration) -> Finished {
        let mut command = Command::new("sh");
        finish(command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap(), patience).unwrap()
    }

    #[test]
    fn what_hangs_is_ended_and_what_does_not_is_heard() {
        let long = run("yes 123456789 | head -100000; exit 3", Duration::from_secs(600));
        assert!(long.text.len() == 1_000_000 && long.status.code() == Some(3) && !long.is_hanging);
        let hanging = run("exec sleep 600", Duration::ZERO);
        assert!(hanging.is_hanging && hanging.status.signal() == Some(SIGKILL));
    }
}
