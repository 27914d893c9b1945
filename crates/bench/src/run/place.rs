//! Where an engine keeps its files, and what is in them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::workload::Records;

/// A directory of one engine. Beside it stands a note of what it was filled with, so that later runs need not fill it again.
#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    note: PathBuf,
}

impl Place {
    /// Of the engine of this name, below `parent`.
    pub fn new(parent: &Path, engine: &str) -> Self {
        let directory = parent.join(engine);
        let note = parent.join(format!("{engine}.json"));
        Self { directory, note }
    }

    /// For the engine's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the directory was filled with these records, and as many are there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn holds(&self, records: &Records) -> anyhow::Result<bool> {
        let text = match std::fs::read_to_string(&self.note) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            text => text.with_context(|| format!("read {}", self.note.display()))?,
        };
        // What cannot be understood is another version's.
        Ok(serde_json::from_str::<Records>(&text).is_ok_and(|found| found == *records))
    }

    /// Notes that it was filled.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn keep(&self, records: &Records) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        std::fs::write(&self.note, serde_json::to_string(records)?)
            .with_context(|| format!("write {}", self.note.display()))
    }

    /// Notes that there are other records by now: the next run that wants the first ones fills it again.
    ///
    /// # Errors
    /// As [`Place::keep`].
    pub fn changed(&self, records: &Records) -> anyhow::Result<()> {
        self.keep(records)
    }

    /// An empty directory.
    ///
    /// # Errors
    /// If what is there cannot be removed.
    pub fn remove(&self) -> anyhow::Result<()> {
        self.clear()?;
        std::fs::create_dir_all(&self.directory).with_context(|| format!("make {}", self.directory.display()))
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// If what is there cannot be removed.
    pub fn clear(&self) -> anyhow::Result<()> {
        for result in [std::fs::remove_file(&self.note), std::fs::remove_dir_all(&self.directory)] {
            match result {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("remove {}", self.directory.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_is_known_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), "engine");
        let records = Records { count: 10, key_bytes: 8, value_bytes: 100 };
        assert!(!place.holds(&records).unwrap());
        place.remove().unwrap();
        place.keep(&records).unwrap();
        assert!(place.holds(&records).unwrap());
        let more = Records { count: 11, ..records };
        place.changed(&more).unwrap();
        assert!(!place.holds(&records).unwrap() && place.holds(&more).unwrap());
        place.remove().unwrap();
        assert!(!place.holds(&more).unwrap() && place.directory().is_dir());
    }
}
