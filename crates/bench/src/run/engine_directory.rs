//! Directory of an engine's files, and a note of their contents.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::benchmark::Contents;

/// A directory of one engine. Next to it is a note of its contents, so that later runs need not fill it
/// again.
#[derive(Clone, Debug)]
pub struct EngineDirectory {
    directory: PathBuf,
    note: PathBuf,
}

impl EngineDirectory {
    /// Of the engine of this name, below `parent`.
    pub fn new(parent: &Path, engine: &str) -> Self {
        let directory = parent.join(engine);
        let note = parent.join(format!("{engine}.json"));
        Self { directory, note }
    }

    /// The directory for the engine's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the directory was filled with this, and nothing has changed it since.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn holds(&self, contents: &Contents) -> anyhow::Result<bool> {
        let text = match std::fs::read_to_string(&self.note) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            text => text.with_context(|| format!("read {}", self.note.display()))?,
        };
        // A note that cannot be parsed was written by another version.
        Ok(serde_json::from_str::<Contents>(&text).is_ok_and(|found| found == *contents))
    }

    /// Notes that it was filled.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn keep(&self, contents: &Contents) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        std::fs::write(&self.note, serde_json::to_string(contents)?)
            .with_context(|| format!("write {}", self.note.display()))
    }

    /// Notes nothing any more: the next run fills it again.
    ///
    /// # Errors
    /// If the note cannot be removed.
    pub fn forget(&self) -> anyhow::Result<()> {
        removed(std::fs::remove_file(&self.note)).with_context(|| format!("remove {}", self.note.display()))
    }

    /// An empty directory.
    ///
    /// # Errors
    /// If the present files cannot be removed.
    pub fn empty(&self) -> anyhow::Result<()> {
        self.clear()?;
        std::fs::create_dir_all(&self.directory).with_context(|| format!("make {}", self.directory.display()))
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// If the present files cannot be removed.
    pub fn clear(&self) -> anyhow::Result<()> {
        self.forget()?;
        removed(std::fs::remove_dir_all(&self.directory))
            .with_context(|| format!("remove {}", self.directory.display()))
    }
}

/// It is as well if there was nothing.
fn removed(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_is_known_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = EngineDirectory::new(folder.path(), "engine");
        let contents = Contents::Tpcc { warehouses: 2, seed: 1 };
        assert!(!place.holds(&contents).unwrap());
        place.empty().unwrap();
        place.keep(&contents).unwrap();
        assert!(place.holds(&contents).unwrap());
        assert!(!place.holds(&Contents::Tpcc { warehouses: 3, seed: 1 }).unwrap());
        place.forget().unwrap();
        assert!(!place.holds(&contents).unwrap());
        place.empty().unwrap();
        assert!(place.directory().is_dir());
    }
}
