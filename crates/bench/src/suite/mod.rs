//! Runs of all engines, in rounds: each round asks every question to every engine in turn, so that a slow hour of the machine is one for all. Every run is a process of its own.

mod plan;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use flashgrain_device::clock;

pub use plan::{Planned, Suite};

use crate::engine::EngineName;
use crate::measure::{Raw, RawLimit};
use crate::run::RunResult;
use crate::workload::Records;

/// What is run.
#[derive(Clone, Debug)]
pub struct Suites {
    /// Which.
    pub suites: Vec<Suite>,
    /// On which engines.
    pub engines: Vec<EngineName>,
    /// How often.
    pub rounds: u32,
    /// Records of the table.
    pub records: Records,
    /// Counted seconds of each run.
    pub seconds: f64,
    /// Seconds before.
    pub warmup_s: f64,
    /// Of everything random.
    pub seed: u64,
    /// Where engines keep their files.
    pub directory: PathBuf,
    /// Where results are appended, a line each. Runs that are there already are left out.
    pub results: PathBuf,
    /// Processors of this machine.
    pub cores: usize,
}

/// What tells runs apart: workload, engine, clients, cores, durability, share of the rate, round.
type Identity = (String, String, usize, usize, String, Option<u64>, u32);

/// Bytes of the file for raw requests.
const RAW_BYTES: u64 = 2 << 30;

/// Seconds that the drive is measured alone, beside each question of each round.
const RAW_SECONDS: f64 = 3.0;

/// A run of the plan.
struct Step {
    planned: Planned,
    engine: EngineName,
    round: u32,
}

impl Suites {
    /// Does all runs that are missing. `note` hears how far it is. `false` if it was interrupted; what has ended is kept.
    ///
    /// # Errors
    /// A run that fails; those before it are kept.
    pub fn run(&self, interrupt: &AtomicBool, note: &dyn Fn(&str)) -> anyhow::Result<bool> {
        let mut known = self.known()?;
        let done: BTreeSet<Identity> = known.iter().map(identity_of).collect();
        let steps: Vec<Step> =
            self.steps().into_iter().filter(|step| !done.contains(&self.identity(step))).collect();
        note(&format!("{} runs, {} of them done before", steps.len() + done.len(), done.len()));
        let raw = Raw::new(&self.directory, RAW_BYTES, interrupt)?;
        let mut out = OpenOptions::new().create(true).append(true).open(&self.results)?;
        let began = clock::now();
        let mut limit = None;
        for (number, step) in steps.iter().enumerate() {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let is_new_question = number == 0 || steps[number - 1].planned != step.planned;
            if is_new_question {
                limit = Some(self.raw(&raw, &step.planned, interrupt)?);
            }
            let passed_s = clock::now().since(began).seconds();
            let left_min = passed_s / number.max(1) as f64 * (steps.len() - number) as f64 / 60.0;
            let left = if number > 0 { format!(", {left_min:.0} min left") } else { String::new() };
            note(&format!("[{} of {}{left}] {}", number + 1, steps.len(), self.describe(step)));
            let Some(result) = self.run_one(step, limit, &known)? else { return Ok(false) };
            writeln!(out, "{}", serde_json::to_string(&result)?)?;
            out.sync_data()?;
            note(&format!(
                "    {:.0}/s, {:.1} us of CPU",
                result.operations_per_s, result.cpu_us_per_operation
            ));
            known.push(result);
        }
        Ok(true)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for round in 0..self.rounds {
            for planned in self.suites.iter().flat_map(|suite| suite.runs()) {
                for engine in &self.engines {
                    steps.push(Step { planned: planned.clone(), engine: *engine, round });
                }
            }
        }
        steps
    }

    /// Results that are there already.
    fn known(&self) -> anyhow::Result<Vec<RunResult>> {
        match File::open(&self.results) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            file => read_results(BufReader::new(file?), &self.results.display().to_string()),
        }
    }

    fn identity(&self, step: &Step) -> Identity {
        let Step { planned, engine, round } = step;
        let cores = planned.cores.unwrap_or(self.cores);
        let load = planned.load.map(f64::to_bits);
        let durability = format!("{:?}", planned.durability);
        (planned.workload.to_owned(), engine.to_string(), planned.clients, cores, durability, load, *round)
    }

    fn describe(&self, step: &Step) -> String {
        let Step { planned, engine, round } = step;
        let cores = planned.cores.unwrap_or(self.cores);
        format!(
            "round {}: {engine}, {}, {} clients on {cores} cores",
            round + 1,
            planned.workload,
            planned.clients
        )
    }

    fn raw(&self, raw: &Raw, planned: &Planned, interrupt: &AtomicBool) -> anyhow::Result<RawLimit> {
        let cores = planned.cores.unwrap_or(self.cores);
        raw.measure(planned.clients as u32, cores as u32, RAW_SECONDS, self.seed, interrupt)
    }

    /// `None` if it was interrupted.
    fn run_one(
        &self,
        step: &Step,
        raw: Option<RawLimit>,
        known: &[RunResult],
    ) -> anyhow::Result<Option<RunResult>> {
        let Step { planned, engine, round } = step;
        let Records { count, key_bytes, value_bytes } = self.records;
        let data_bytes = count * (key_bytes + value_bytes) as u64;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", &engine.to_string(), planned.workload])
            .arg(&self.directory)
            .args(["--json", "--keep"])
            .args(["--records", &count.to_string()])
            .args(["--key-bytes", &key_bytes.to_string(), "--value-bytes", &value_bytes.to_string()])
            .args(["--cache", &((data_bytes as f64 * planned.cache_share) as u64).to_string()])
            .args(["--clients", &planned.clients.to_string()])
            .args(["--cores", &planned.cores.unwrap_or(self.cores).to_string()])
            .args(["--durability", &format!("{:?}", planned.durability).to_lowercase()])
            .args(["--seconds", &self.seconds.to_string(), "--warmup", &self.warmup_s.to_string()])
            .args(["--round", &round.to_string(), "--seed", &self.seed.to_string()]);
        if let Some(load) = planned.load {
            let rate = load * closed_rate(known, planned, *engine)?;
            command.args(["--rate", &rate.to_string(), "--load", &load.to_string()]);
        }
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => {}
            Some(130) | None => return Ok(None),
            Some(code) => bail!("{} ended with code {code}", self.describe(step)),
        }
        let mut result: RunResult =
            serde_json::from_str(text.trim()).with_context(|| format!("read the result {text:?}"))?;
        result.raw = raw;
        Ok(Some(result))
    }
}

/// What the engine does in a closed loop: the median of what is known.
fn closed_rate(known: &[RunResult], planned: &Planned, engine: EngineName) -> anyhow::Result<f64> {
    let mut rates: Vec<f64> = known
        .iter()
        .filter(|run| run.engine == engine.to_string() && run.workload == planned.workload)
        .filter(|run| run.load.is_none() && run.rate_per_s.is_none())
        .map(|run| run.operations_per_s)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().with_context(|| {
        format!(
            "no closed-loop run of {engine} with {} is known: run the suite db-bench first",
            planned.workload
        )
    })
}

fn identity_of(run: &RunResult) -> Identity {
    let load = run.load.map(f64::to_bits);
    let durability = format!("{:?}", run.durability);
    (run.workload.clone(), run.engine.clone(), run.clients, run.cores, durability, load, run.round)
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
