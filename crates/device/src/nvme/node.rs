//! The block device of a namespace's character device: `/dev/nvme0n1` for `/dev/ng0n1`.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A namespace's block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockNode {
    /// Its node under /dev.
    pub path: PathBuf,
    /// Its directory under /sys.
    pub facts: PathBuf,
}

impl BlockNode {
    /// The block device of the namespace whose character device `path` is; `None` if it is no such device.
    /// The kernel numbers both alike.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_char_device())?;
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        let generic = fs::canonicalize(format!("/sys/dev/char/{major}:{minor}")).ok()?;
        let name = block_name(generic.file_name()?.to_str()?)?;
        let facts = fs::canonicalize(Path::new("/sys/class/block").join(&name)).ok()?;
        let node = Self { path: Path::new("/dev").join(&name), facts };
        let block = fs::metadata(&node.path).ok().filter(|block| block.file_type().is_block_device())?;
        let number = format!("{}:{}", libc::major(block.rdev()), libc::minor(block.rdev()));
        (node.fact("dev")? == number).then_some(node)
    }

    /// A file of its directory under /sys.
    pub fn fact(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.facts.join(name)).ok()?.trim().to_owned())
    }

    /// The same, a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.fact(name)?.parse().ok()
    }
}

/// Whether `path` is the character device of an NVMe namespace, such as /dev/ng0n1.
pub fn is_namespace(path: &Path) -> bool {
    let generic = || {
        let metadata = fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_char_device())?;
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        fs::canonicalize(format!("/sys/dev/char/{major}:{minor}")).ok()
    };
    generic().is_some_and(|generic| {
        generic.file_name().and_then(|name| name.to_str()).is_some_and(|name| block_name(name).is_some())
    })
}

/// The character devices of the namespaces here, by name.
pub(crate) fn namespaces() -> Vec<PathBuf> {
    let names = fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = names.map(|entry| entry.path()).filter(|path| is_namespace(path)).collect();
    found.sort();
    found
}

/// The character device of the namespace whose block device is called `name`, such as `ng0n1` for `nvme0n1`.
pub(crate) fn generic_name(name: &str) -> Option<String> {
    let numbers = name.strip_prefix("nvme")?;
    are_numbers(numbers).then(|| format!("ng{numbers}"))
}

fn block_name(generic: &str) -> Option<String> {
    let numbers = generic.strip_prefix("ng")?;
    are_numbers(numbers).then(|| format!("nvme{numbers}"))
}

/// Whether a text is the number of a drive and that of a namespace, such as `0n1`.
fn are_numbers(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('n').is_some_and(|(drive, namespace)| is_number(drive) && is_number(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_namespace_differ_in_their_first_letters() {
        assert_eq!(block_name("ng0n1").as_deref(), Some("nvme0n1"));
        assert_eq!(block_name("ng12n34").as_deref(), Some("nvme12n34"));
        assert_eq!(generic_name("nvme12n34").as_deref(), Some("ng12n34"));
        for other in ["null", "ng0", "ng0n", "ngn1", "ng0n1p1", "nvme0n1", "ng0c0n1"] {
            assert_eq!(block_name(other), None, "{other}");
        }
        for other in ["nvme0n1p1", "sda", "nvme0c0n1", "nvme0"] {
            assert_eq!(generic_name(other), None, "{other}");
        }
    }

    #[test]
    fn other_files_and_devices_have_no_block_device() {
        for path in ["/dev/null", "/dev", "/nowhere"] {
            assert_eq!(BlockNode::of(Path::new(path)), None);
            assert!(!is_namespace(Path::new(path)));
        }
    }
}
