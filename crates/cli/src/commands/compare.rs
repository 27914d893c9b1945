//! `flashgrain compare`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use flashgrain_model::{Comparison, FitOptions, Models, OneThreadRow, compare, fit, one_thread, read_csv};
use flashgrain_profile::file;
use serde::Serialize;

use crate::output::{Context, print, print_json};
use crate::{results, summary};

/// Put the four cost models side by side on points that their fits have not seen, and print their constants.
///
/// Prints the errors of each model on held-out points, and then the constants of fits to all points with
/// their 95 % intervals. It takes a folder of results, a profile with its `samples.csv` next to it, or a CSV
/// file of measurements made with any other tool (docs/samples-csv.md tells the form), which may be a pipe:
/// `/dev/stdin`, or `<(...)` in a shell.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// A folder of results, a `profile.json`, or samples as CSV.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Also give DAM, PDAM and affine the costs of one thread, as in Figure 2 of the MQSSD paper, and show
    /// how much they err at each concurrency next to the models that are fitted to all.
    #[arg(long)]
    one_thread: bool,
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Compared {
    #[serde(flatten)]
    comparison: Comparison,
    /// With `--one-thread`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_thread: Vec<OneThreadRow>,
    /// Fits to all samples, as in a profile; a profile without samples next to it may have none.
    models: Option<Models>,
}

pub fn run(arguments: &CompareArguments, context: &Context) -> anyhow::Result<()> {
    let path = results::profile_at(&arguments.file);
    // Read once: pipes cannot be read again.
    let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let compared = if is_json(&path, &bytes) {
        of_profile(arguments, &path, &bytes, context)?
    } else {
        of_samples(arguments, &path, &bytes, 1)?
    };
    if arguments.json {
        return print_json(&compared);
    }
    Ok(print(&summary::comparison(&compared.comparison, &compared.one_thread, compared.models.as_ref()))?)
}

/// Samples are text in columns; everything that is, or means to be, JSON is a profile.
fn is_json(path: &Path, bytes: &[u8]) -> bool {
    let named = path.extension().is_some_and(|extension| extension == "json");
    named || bytes.trim_ascii_start().starts_with(b"{")
}

/// Fits again from the samples next to the profile, or shows the results from when it was made.
fn of_profile(
    arguments: &CompareArguments,
    path: &Path,
    bytes: &[u8],
    context: &Context,
) -> anyhow::Result<Compared> {
    let profile = file::parse(path, bytes)?;
    // A pipe has no samples next to it.
    if !path.is_file() && arguments.one_thread {
        bail!(
            "{}: the costs of one thread come from samples: name the samples.csv of the profile",
            path.display()
        );
    }
    if path.is_file() {
        let samples = results::samples_beside(path);
        match fs::read(&samples) {
            Ok(bytes) => return of_samples(arguments, &samples, &bytes, profile.provenance.seed),
            Err(error) if arguments.one_thread => {
                return Err(error)
                    .with_context(|| format!("read {}, for the costs of one thread", samples.display()));
            }
            Err(error) => context.note(&format!(
                "{}: {error}: this is the comparison stored in the profile",
                samples.display()
            )),
        }
    }
    let comparison = profile
        .comparison
        .with_context(|| format!("{}: too little was measured to compare the models", path.display()))?;
    Ok(Compared { comparison, one_thread: Vec::new(), models: profile.models })
}

fn of_samples(
    arguments: &CompareArguments,
    path: &Path,
    bytes: &[u8],
    seed: u64,
) -> anyhow::Result<Compared> {
    let named = || path.display().to_string();
    let samples = read_csv(bytes).with_context(named)?;
    let options = FitOptions { seed, ..FitOptions::default() };
    let comparison = compare(&samples, &options).with_context(named)?;
    let models = fit(&samples, &options).with_context(named)?;
    let one_thread = match arguments.one_thread {
        true => one_thread(&samples, &models, &options).with_context(named)?,
        false => Vec::new(),
    };
    Ok(Compared { comparison, one_thread, models: Some(models) })
}
