//! `flashgrain sim export`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgGroup, Args};
use flashgrain_profile::file;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::mqsim::export_drive;

use crate::exit::Usage;
use crate::learned::{Facts, LearnedDrive, Overhead};
use crate::output::{Context, print};

/// Make a simulator's configuration of a learned profile: for MQSim, or for Flashgrain's own.
///
/// Next to every value it says whether that was learned or assumed. A simulated drive can be exported, too.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("form").required(true).multiple(true).args(["mqsim", "toml"]))]
pub struct ExportArguments {
    /// A `profile.json`; or a preset, a FILE.toml or an ssdconfig.xml.
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// As MQSim's ssdconfig.xml.
    #[arg(long)]
    mqsim: bool,
    /// As drive.toml, for `sim:drive.toml`.
    #[arg(long)]
    toml: bool,
    /// Folder for the files; it is made if it is missing. By default a single one is printed.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Names of the files that are written.
const MQSIM_FILE: &str = "ssdconfig.xml";
const TOML_FILE: &str = "drive.toml";

pub fn run(arguments: &ExportArguments, context: &Context) -> anyhow::Result<()> {
    if arguments.mqsim && arguments.toml && arguments.output.is_none() {
        return Err(
            Usage("two files cannot both be printed: name a folder for them with --output".into()).into()
        );
    }
    let path = Path::new(&arguments.profile);
    let is_profile = path.extension().is_some_and(|extension| extension == "json");
    let facts = match is_profile {
        true => Some(Facts::of(&file::read(path)?).with_context(|| path.display().to_string())?),
        false => None,
    };
    let mut files = Vec::new();
    if arguments.mqsim {
        files.push((MQSIM_FILE, mqsim(&arguments.profile, facts.as_ref())?));
    }
    if arguments.toml {
        files.push((TOML_FILE, toml(&arguments.profile, facts.as_ref())?));
    }
    for (name, text) in files {
        let Some(folder) = &arguments.output else { return Ok(print(&text)?) };
        std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
        let path = folder.join(name);
        file::write_atomically(&path, |writer| writer.write_all(text.as_bytes()))?;
        context.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn mqsim(name: &str, facts: Option<&Facts>) -> anyhow::Result<String> {
    Ok(match facts {
        Some(facts) => {
            let drive = LearnedDrive::new(facts, Overhead::Flash);
            drive.config.check()?;
            export_drive(&drive.config, &|path| drive.origin(path))?
        }
        None => export_drive(&SimConfig::named(name)?, &|_| None)?,
    })
}

fn toml(name: &str, facts: Option<&Facts>) -> anyhow::Result<String> {
    let config = match facts {
        Some(facts) => LearnedDrive::new(facts, Overhead::Host).config,
        None => SimConfig::named(name)?,
    };
    config.check()?;
    Ok(config.to_toml()?)
}
