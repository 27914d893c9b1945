//! `flashgrain study run`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use flashgrain_bench::study::comparison::{Comparison, over_repeats};
use flashgrain_bench::study::{About, Sheet};
use flashgrain_device::clock;
use flashgrain_profile::file;
use serde::{Deserialize, Serialize};

use super::entries::{self, Entry};
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::count_within;

/// Run studies, and show the papers' numbers next to ours with their ratio.
///
/// Each question is kept in the folder when it is answered. The same command goes on where it was
/// interrupted.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The studies, or all.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Run smaller studies, all of them in minutes. They may be too small to show an effect.
    #[arg(long)]
    quick: bool,
    /// Runs of each study, with the seeds that follow --seed: medians and ranges are shown.
    #[arg(long, value_parser = count_within::<u64>(1..=100), default_value_t = 1)]
    repeats: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for results and pages.
    #[arg(long, value_name = "FOLDER", default_value = "flashgrain-out/studies")]
    to: PathBuf,
    /// Only these questions of the studies, as `flashgrain study show NAME` lists them.
    #[arg(long, value_name = "QUESTION", value_delimiter = ',')]
    only: Vec<String>,
    /// Run also those studies again whose results are in the folder.
    #[arg(long)]
    again: bool,
    /// Print the numbers as JSON.
    #[arg(long)]
    json: bool,
    /// Further arguments of the studies; they take the place of those of --quick.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// The answer to a question, as the folder keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    flashgrain_version: String,
    /// Arguments of the study.
    arguments: Vec<String>,
    /// Time that it took.
    seconds: f64,
    comparisons: Vec<Comparison>,
    result: serde_json::Value,
}

/// A study that was run.
#[derive(Serialize)]
struct Ran {
    study: &'static str,
    paper: &'static str,
    numbers: Vec<Comparison>,
}

pub fn run(arguments: &RunArguments, context: &Context) -> anyhow::Result<()> {
    let studies = asked(studies(&arguments.names)?, &arguments.only)?;
    check_further(&arguments.arguments)?;
    let last = arguments.seed.checked_add(arguments.repeats - 1).ok_or_else(|| {
        Usage(format!("--seed: there are no {} seeds from {} on", arguments.repeats, arguments.seed))
    })?;
    fs::create_dir_all(&arguments.to)
        .with_context(|| format!("make the folder {} for results", arguments.to.display()))?;
    // Before hours of work, not after them.
    let probe = arguments.to.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, []).and_then(|()| fs::remove_file(&probe)).with_context(|| {
        format!("write into the folder {} for results (another one: --to)", arguments.to.display())
    })?;
    let folder = arguments.to.display();
    context.interrupt.leaves(format!("{folder} has the answers so far, and the same command goes on"));
    let mut all: Vec<(&About, Vec<Comparison>)> = Vec::new();
    for entry in &studies {
        let repeats = (arguments.seed..=last).map(|seed| once(entry, seed, arguments, context));
        all.push((entry.about, over_repeats(&repeats.collect::<anyhow::Result<Vec<_>>>()?)));
    }
    let page = Sheet::of_studies(&all);
    if arguments.json {
        let ran = |(about, numbers): &(&'static About, Vec<Comparison>)| Ran {
            study: about.name,
            paper: about.paper,
            numbers: numbers.clone(),
        };
        print_json(&all.iter().map(ran).collect::<Vec<_>>())?;
    } else {
        print(&page.markdown())?;
    }
    let path = arguments.to.join("studies.html");
    write_page(&path, page, &format!("flashgrain study run {}", arguments.names.join(" ")))?;
    context.note(&format!(
        "pages with charts are in {}, {} has all numbers",
        arguments.to.display(),
        path.display()
    ));
    Ok(())
}

/// Arguments that `study run` gives itself, and the place to name them in.
const OWN: &[(&str, &str)] = &[
    ("--only", "give --only before --"),
    ("--seed", "give --seed before --"),
    ("--json", "give --json before --"),
    ("--report", "pages are in the folder of --to"),
];

/// Whether further arguments are those of studies alone.
fn check_further(further: &[String]) -> Result<(), Usage> {
    let name = |argument: &str| argument.split('=').next().map(str::to_owned);
    let own = further
        .iter()
        .find_map(|argument| OWN.iter().find(|(own, _)| name(argument).as_deref() == Some(own)));
    own.map_or(Ok(()), |(own, instead)| Err(Usage(format!("{own} is not for arguments after --: {instead}"))))
}

/// The studies with the questions that are asked: of all if none is named.
fn asked(mut studies: Vec<Entry>, only: &[String]) -> Result<Vec<Entry>, Usage> {
    if only.is_empty() {
        return Ok(studies);
    }
    let all: Vec<String> = studies.iter().flat_map(|entry| entry.questions.clone()).collect();
    if let Some(unknown) = only.iter().find(|question| !all.contains(question)) {
        let known = if all.is_empty() { "none".into() } else { all.join(", ") };
        return Err(Usage(format!("--only: these studies have no question {unknown}; they have {known}")));
    }
    studies.iter_mut().for_each(|entry| entry.questions.retain(|question| only.contains(question)));
    studies.retain(|entry| !entry.questions.is_empty());
    Ok(studies)
}

/// The studies of these names, each once.
fn studies(names: &[String]) -> anyhow::Result<Vec<Entry>> {
    if names.iter().any(|name| name == "all") {
        return Ok(entries::all());
    }
    let mut found: Vec<Entry> = Vec::new();
    for name in names {
        let entry = entries::named(name)?;
        if found.iter().all(|other| other.about.name != entry.about.name) {
            found.push(entry);
        }
    }
    Ok(found)
}

/// All questions of a study with one seed.
fn once(
    entry: &Entry,
    seed: u64,
    asked: &RunArguments,
    context: &Context,
) -> anyhow::Result<Vec<Comparison>> {
    let questions =
        if entry.questions.is_empty() { vec![None] } else { entry.questions.iter().map(Some).collect() };
    let mut numbers: Vec<Comparison> = Vec::new();
    for question in questions {
        let of_question = answer(entry, question.map(String::as_str), seed, asked, context)?;
        if numbers.is_empty() {
            numbers = of_question;
            continue;
        }
        // Each question has its own numbers, and those of the others without ours.
        for (number, other) in numbers.iter_mut().zip(of_question) {
            if number.ours.is_none() {
                *number = other;
            }
        }
    }
    Ok(numbers)
}

/// The numbers of a question, from the folder or from a run.
fn answer(
    entry: &Entry,
    question: Option<&str>,
    seed: u64,
    asked: &RunArguments,
    context: &Context,
) -> anyhow::Result<Vec<Comparison>> {
    let quick = entry.quick.iter().filter(|_| asked.quick).map(|argument| (*argument).to_owned());
    let only = question.map(|question| format!("--only={question}"));
    let given = only.into_iter().chain(quick).chain([format!("--seed={seed}")]);
    let arguments: Vec<String> = given.chain(asked.arguments.iter().cloned()).collect();
    let name: Vec<&str> = [Some(entry.about.name), question].into_iter().flatten().collect();
    let name = format!("{}-seed-{seed}", name.join("-"));
    let path = asked.to.join(format!("{name}.json"));
    if let Some(kept) = kept(&path).filter(|kept| kept.arguments == arguments && !asked.again) {
        context.note(&format!("{name}: kept in {}", path.display()));
        return Ok(kept.comparisons);
    }
    let began = clock::now();
    let outcome = entry.run(&arguments, context).map_err(|error| match error.is::<Usage>() {
        true => error,
        false => error.context(format!(
            "{name}; earlier answers are in {}, and the same command goes on",
            asked.to.display()
        )),
    })?;
    let comparisons = outcome.sheet.comparisons.clone();
    let command = format!("flashgrain study {} {}", entry.about.name, arguments.join(" "));
    write_page(&asked.to.join(format!("{name}.html")), outcome.sheet, &command)?;
    let kept = Kept {
        flashgrain_version: env!("CARGO_PKG_VERSION").into(),
        arguments,
        seconds: clock::now().since(began).seconds(),
        comparisons,
        result: outcome.json,
    };
    let text = serde_json::to_string_pretty(&kept)?;
    file::write_atomically(&path, |writer| writer.write_all(text.as_bytes()))?;
    Ok(kept.comparisons)
}

/// An answer of this version that the folder has.
fn kept(path: &Path) -> Option<Kept> {
    let kept: Kept = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (kept.flashgrain_version == env!("CARGO_PKG_VERSION")).then_some(kept)
}

fn write_page(path: &Path, sheet: Sheet, command: &str) -> anyhow::Result<()> {
    let page = sheet.html(command)?;
    Ok(file::write_atomically(path, |writer| writer.write_all(page.as_bytes()))?)
}
