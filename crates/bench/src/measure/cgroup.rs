//! A bound on the memory of this process, page cache included: the limit of an engine that leaves caching to
//! the kernel.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use flashgrain_device::clock;

/// Mount points of control groups: the memory controller of version 1, or everything of version 2.
const ROOTS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// Files that make a group give up its pages, in both versions, and the text to write there.
const EMPTYING: [(&str, &str); 2] = [("memory.force_empty", "0"), ("memory.reclaim", "1T")];

/// A group with this process in it, until it is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    root: PathBuf,
    group: PathBuf,
}

impl MemoryLimit {
    /// Puts this process into a group of its own that may use `bytes` bytes.
    ///
    /// # Errors
    /// Without the right to make groups, which usually only root has, or where the kernel has no memory
    /// controller.
    pub fn new(bytes: u64) -> anyhow::Result<Self> {
        let Some((root, file)) = ROOTS.iter().find(|(root, file)| is_controller(Path::new(root), file))
        else {
            bail!("there is no memory controller below /sys/fs/cgroup");
        };
        let root = PathBuf::from(root);
        let group = root.join(format!("flashgrain-bench-{}-{}", std::process::id(), clock::now().0));
        std::fs::create_dir(&group).with_context(|| format!("make the control group {}", group.display()))?;
        // Dropped if anything fails from here on.
        let limit = Self { root, group };
        let write = |name: &str, text: String| {
            let path = limit.group.join(name);
            std::fs::write(&path, text).with_context(|| format!("write to {}", path.display()))
        };
        write(file, bytes.to_string())?;
        write("cgroup.procs", std::process::id().to_string())?;
        Ok(limit)
    }
}

/// Whether groups below `root` have a memory limit in a file of this name.
fn is_controller(root: &Path, file: &str) -> bool {
    match file {
        "memory.max" => {
            let enabled = std::fs::read_to_string(root.join("cgroup.subtree_control"));
            enabled.is_ok_and(|enabled| enabled.split_whitespace().any(|name| name == "memory"))
        }
        _ => root.join(file).exists(),
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        for (file, text) in EMPTYING {
            // Pages that stay in the cache would be a present to the next run, which is not charged for pages
            // that it finds there. The kernel says when some cannot be given up, such as this process's own.
            let path = self.group.join(file);
            let _refused = if path.exists() { std::fs::write(path, text) } else { Ok(()) };
        }
        // A group that remains is empty, and does no harm.
        let _left = std::fs::write(self.root.join("cgroup.procs"), std::process::id().to_string());
        let _removed = std::fs::remove_dir(&self.group);
    }
}
