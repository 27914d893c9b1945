//! Disk space and memory that an engine takes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that all files below `directory` take on the disk, holes left out.
///
/// # Errors
/// Those of reading directories; files that vanish meanwhile count nothing.
pub fn space_bytes(directory: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        sum += if about.is_dir() { space_bytes(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(sum)
}

/// The most memory that this process had since [`forget_peak_memory`], pages of mapped files included; 0
/// where the kernel does not say.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Makes [`peak_memory_bytes`] count from now on. If the kernel refuses that, it counts from the start of the
/// process as before.
pub fn forget_peak_memory() {
    let _refused = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_that_of_all_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("inner/file"), vec![1; 1 << 20]).unwrap();
        std::fs::File::create(folder.path().join("hole")).unwrap().set_len(1 << 30).unwrap();
        let found = space_bytes(folder.path()).unwrap();
        // Some file systems put the data down later, and all need a little more than that.
        assert!(found < 2 << 20, "{found}");
    }

    #[test]
    fn this_process_uses_memory() {
        const MUCH: u64 = 256 << 20;
        drop(std::hint::black_box(vec![1_u8; MUCH as usize]));
        let peak = peak_memory_bytes();
        assert!(peak > MUCH, "{peak}");
        forget_peak_memory();
        // Other tests use memory meanwhile, but not that much more.
        assert!(peak_memory_bytes() < peak - MUCH / 2);
    }
}
