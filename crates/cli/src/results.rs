//! The folder that results go to.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flashgrain_profile::{DeviceProfile, Profiled, file};

use crate::exit::Usage;

/// Names of the files that are written.
const PROFILE: &str = "profile.json";
const REPORT: &str = "report.html";
const SAMPLES: &str = "samples.csv";
const OTHER_SAMPLES: &str = "samples.jsonl";

/// A folder that is known to take files before the first measurement is made. If nothing came of it and it
/// was made for this, it goes again.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    made: bool,
}

impl ResultsFolder {
    /// Makes the folder if needed, and refuses one where a result would replace a file that is not
    /// Flashgrain's.
    pub fn prepare(path: &Path) -> anyhow::Result<Self> {
        let made = !path.exists();
        fs::create_dir_all(path)
            .with_context(|| format!("make the folder {} for the results", path.display()))?;
        let folder = Self { path: path.to_owned(), made };
        let profile = path.join(PROFILE);
        if profile.is_file() && !is_profile(&profile) {
            return Err(Usage(format!(
                "{} exists and is not a Flashgrain profile: choose another folder with --out",
                profile.display()
            ))
            .into());
        }
        for name in [PROFILE, REPORT, SAMPLES, OTHER_SAMPLES] {
            file::check_writable(&path.join(name))?;
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn profile(&self) -> PathBuf {
        self.path.join(PROFILE)
    }

    pub fn report(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Stores the profile with its samples next to it.
    pub fn store(&self, profiled: &Profiled) -> anyhow::Result<()> {
        let Profiled { profile, samples } = profiled;
        file::write(&self.profile(), profile)?;
        file::write_atomically(&self.path.join(SAMPLES), |writer| samples.write_csv(writer))?;
        file::write_atomically(&self.path.join(OTHER_SAMPLES), |writer| samples.write_json_lines(writer))?;
        Ok(())
    }
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        if self.made {
            // Fails, as it should, if there is something in it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The profile that a command was given: the file itself, or the folder of results that it lies in.
pub fn profile_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(PROFILE) } else { path.to_owned() }
}

/// The profile itself, named as for [`profile_at`].
pub fn read_profile(path: &Path) -> anyhow::Result<DeviceProfile> {
    Ok(file::read(&profile_at(path))?)
}

/// The samples that belong to a profile file.
pub fn samples_beside(profile: &Path) -> PathBuf {
    profile.with_file_name(SAMPLES)
}

/// Writes the report of a profile.
pub fn write_report(profile: &DeviceProfile, path: &Path) -> anyhow::Result<()> {
    let page = flashgrain_report::html(profile)?;
    Ok(file::write_atomically(path, |writer| writer.write_all(page.as_bytes()))?)
}

/// Whether a file says that it is a profile, of whatever version and in whatever state.
fn is_profile(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| {
        let start = String::from_utf8_lossy(bytes.get(..256).unwrap_or(&bytes)).into_owned();
        start.contains(flashgrain_profile::schema::FORMAT)
    })
}
