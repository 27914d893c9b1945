//! The directory that everything of a verification lies in.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use flashgrain_advisor::Workload;
use flashgrain_device::free_bytes;
use flashgrain_profile::{Error, bytes_text};
use tempfile::TempDir;

/// A new directory that is removed with the value, whatever happened.
#[derive(Debug)]
pub(super) struct Scratch(TempDir);

impl Scratch {
    /// Below a directory that exists.
    pub fn below(directory: &Path) -> anyhow::Result<Self> {
        let made = tempfile::Builder::new().prefix("flashgrain-verify-").tempdir_in(directory);
        let made = made.with_context(|| format!("make a directory in {}", directory.display()))?;
        Ok(Self(made))
    }

    /// Path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Removes it, and says so if that fails.
    pub fn remove(self) -> anyhow::Result<()> {
        let path = self.0.path().to_owned();
        self.0.close().with_context(|| format!("remove {}", path.display()))
    }
}

/// Refuses a workload that does not fit, and names one that does.
pub(super) fn make_sure_of_room(
    directory: &Path,
    workload: &Workload,
    space_factor: f64,
) -> anyhow::Result<()> {
    let free = room(directory)?;
    match shortage(workload, free, space_factor) {
        Some(problem) => bail!("{}: {problem}", directory.display()),
        None => Ok(()),
    }
}

/// Bytes that are free in a directory.
pub(super) fn room(directory: &Path) -> anyhow::Result<u64> {
    if !directory.is_dir() {
        return Err(Error::Argument(format!("{}: this is no directory", directory.display())).into());
    }
    Ok(free_bytes(directory)?)
}

/// To one digit.
pub(super) fn rounded_down(value: f64) -> u64 {
    let unit = 10_f64.powf(value.max(1.0).log10().floor());
    ((value / unit).floor() * unit).max(1.0) as u64
}

/// The problem, and a workload with the same ratio of records to memory that has room.
fn shortage(workload: &Workload, free_bytes: u64, space_factor: f64) -> Option<String> {
    let needed = workload.records.data_bytes() * 2.0 * space_factor;
    let share = free_bytes as f64 / needed;
    if share >= 1.0 {
        return None;
    }
    let records = rounded_down(workload.records.count as f64 * share * 0.9);
    let memory = workload.memory_bytes as f64 * records as f64 / workload.records.count as f64;
    Some(format!(
        "both sides with {} records of {} bytes may take {}, and {} are free; with the same share of memory \
         there is room for --records {records} --memory {}MiB",
        workload.records.count,
        workload.records.record_bytes(),
        bytes_text(needed as u64),
        bytes_text(free_bytes),
        (memory / f64::from(1 << 20)).ceil().max(1.0),
    ))
}

#[cfg(test)]
mod tests {
    use flashgrain_advisor::workload;

    use super::*;

    #[test]
    fn a_scratch_directory_goes_with_its_value_and_takes_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("other"), "1").unwrap();
        let scratch = Scratch::below(parent.path()).unwrap();
        std::fs::create_dir(scratch.join("db")).unwrap();
        std::fs::write(scratch.join("db").join("file"), "2").unwrap();
        drop(scratch);
        let another = Scratch::below(parent.path()).unwrap();
        std::fs::write(another.join("file"), "3").unwrap();
        another.remove().unwrap();
        let left: Vec<_> =
            std::fs::read_dir(parent.path()).unwrap().map(|at| at.unwrap().file_name()).collect();
        assert_eq!(left, ["other"]);
        assert!(Scratch::below(&parent.path().join("none")).is_err());
    }

    #[test]
    fn a_workload_without_room_is_refused_with_one_that_has() {
        let mut workload = workload::preset("ycsb-a").unwrap();
        let said = shortage(&workload, 30 << 30, 3.0).unwrap();
        assert!(said.contains("--records 4000000 --memory 328MiB"), "{said}");
        workload.records.count = 4_000_000;
        assert_eq!(shortage(&workload, 30 << 30, 3.0), None);
        let said = shortage(&workload, 0, 3.0).unwrap();
        assert!(said.contains("--records 1 --memory 1MiB"), "{said}");
    }
}
