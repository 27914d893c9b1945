//! A private instance of the kernel's tracefs: no other tracing is disturbed, and nothing of it remains.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// Where tracefs is mounted, the newer place first.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The memory for buffers of all processors.
const BUFFERS_KIB_MAX: usize = 256 << 10;
/// The buffer of each processor: half a second of 100,000 events of a request.
const BUFFER_KIB_MAX: usize = 8 << 10;
const BUFFER_KIB_MIN: usize = 1 << 10;

/// An instance, which is removed when it is dropped.
pub struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// Makes an instance without events. `source` says what it is for, as a word.
    ///
    /// # Errors
    /// The problem and its remedy, as of all functions here.
    pub fn new(source: &str) -> Result<Self, String> {
        let mount = mount()?;
        remove_abandoned(&mount.join("instances"));
        let folder = mount.join("instances").join(format!("flashgrain-{}-{source}", process::id()));
        fs::create_dir(&folder).map_err(|error| refused(&folder, &error))?;
        let instance = Self { folder };
        instance.set("trace_clock", "mono")?;
        let processors = fs::read_dir(instance.folder.join("per_cpu")).map_or(1, Iterator::count).max(1);
        let buffer_kib = (BUFFERS_KIB_MAX / processors).clamp(BUFFER_KIB_MIN, BUFFER_KIB_MAX);
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        Ok(instance)
    }

    /// Records an event, such as `block/block_rq_issue`, where `filter` holds.
    pub fn enable(&self, event: &str, filter: Option<&str>) -> Result<(), String> {
        if let Some(filter) = filter {
            self.set(&format!("events/{event}/filter"), filter)?;
        }
        self.set(&format!("events/{event}/enable"), "1")
    }

    /// Whether the kernel has an event.
    pub fn has(&self, event: &str) -> bool {
        self.path(&format!("events/{event}")).exists()
    }

    /// The layout of an event, as text.
    pub fn format(&self, event: &str) -> Result<String, String> {
        let path = self.path(&format!("events/{event}/format"));
        fs::read_to_string(&path).map_err(|error| refused(&path, &error))
    }

    /// The path of a file of the instance.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// The buffer of each processor. A page is taken out by reading it; a read of an empty buffer fails.
    pub fn rings(&self) -> Result<Vec<File>, String> {
        let folder = self.folder.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|error| refused(&folder, &error))?;
        let paths = entries.flatten().map(|entry| entry.path().join("trace_pipe_raw"));
        let open = |path: PathBuf| {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            opened.map_err(|error| refused(&path, &error))
        };
        paths.map(open).collect()
    }

    /// Ends the recording of events; those that were recorded can still be read.
    pub fn stop(&self) -> Result<(), String> {
        self.set("tracing_on", "0")
    }

    /// Writes into a file of the instance.
    pub fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.path(file);
        fs::write(&path, value).map_err(|error| refused(&path, &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Without its folder the instance is gone, events and buffers included. It fails only if another
        // process reads in it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the instances of recorders that were killed.
fn remove_abandoned(instances: &Path) {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix("flashgrain-")?.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another recorder may have been faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn mount() -> Result<PathBuf, String> {
    for mount in MOUNTS {
        match fs::metadata(Path::new(mount).join("instances")) {
            Ok(_) => return Ok(mount.into()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(refused(Path::new(mount), &error));
            }
            Err(_) => {}
        }
    }
    Err(format!(
        "no tracefs is mounted at {}: as root, mount it with `mount -t tracefs nodev {}`",
        MOUNTS[0], MOUNTS[0]
    ))
}

fn refused(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => ": only root may trace the kernel; run this as root",
        io::ErrorKind::NotFound => {
            ": this kernel has no such trace events (CONFIG_BLK_DEV_IO_TRACE, CONFIG_FTRACE_SYSCALLS)"
        }
        _ => "",
    };
    format!("{}: {error}{remedy}", path.display())
}
