//! A private instance of the kernel's tracefs: no other tracing is disturbed, and nothing of it remains.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use super::event::Layouts;
use crate::Error;
use crate::drives::Drive;

/// Where tracefs is mounted, the newer place first.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

const EVENTS: [&str; 2] = ["block_rq_issue", "block_rq_complete"];

/// The kernel's buffer for each processor, in KiB: half a second of 100,000 requests.
const BUFFER_KIB: &str = "8192";

/// An instance, which is removed when it is dropped.
pub struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// Makes an instance that sees the requests of one drive, or of all.
    pub fn new(drive: Option<Drive>) -> Result<Self, Error> {
        let mount = mount()?;
        remove_abandoned(&mount.join("instances"));
        let folder = mount.join("instances").join(format!("flashgrain-{}", process::id()));
        fs::create_dir(&folder).map_err(|error| refused(&folder, &error))?;
        let instance = Self { folder };
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", BUFFER_KIB)?;
        for event in EVENTS {
            let of_event = |file: &str| format!("events/block/{event}/{file}");
            if let Some(drive) = drive {
                instance.set(&of_event("filter"), &format!("dev == {}", drive.kernel_number()))?;
            }
            instance.set(&of_event("enable"), "1")?;
        }
        Ok(instance)
    }

    /// The buffer of each processor. A page is taken out by reading it; a read of an empty buffer fails.
    pub fn rings(&self) -> Result<Vec<File>, Error> {
        let folder = self.folder.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|error| refused(&folder, &error))?;
        let paths = entries.flatten().map(|entry| entry.path().join("trace_pipe_raw"));
        let open = |path: PathBuf| {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            opened.map_err(|error| refused(&path, &error))
        };
        paths.map(open).collect()
    }

    /// The layouts of the events, and so of their bytes.
    pub fn layouts(&self) -> Result<Layouts, Error> {
        let [issue, complete] = EVENTS.map(|event| {
            let path = self.folder.join(format!("events/block/{event}/format"));
            fs::read_to_string(&path).map_err(|error| refused(&path, &error))
        });
        Layouts::of(&issue?, &complete?).ok_or_else(|| Error::Blocks {
            problem: "this kernel's events of block requests have other fields than those that are known"
                .into(),
        })
    }

    /// Ends the recording of events; those that were recorded can still be read.
    pub fn stop(&self) -> Result<(), Error> {
        self.set("tracing_on", "0")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
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
        let process = name.to_str().and_then(|name| name.strip_prefix("flashgrain-")?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another recorder may have been faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn mount() -> Result<PathBuf, Error> {
    for mount in MOUNTS {
        match fs::metadata(Path::new(mount).join("instances")) {
            Ok(_) => return Ok(mount.into()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(refused(Path::new(mount), &error));
            }
            Err(_) => {}
        }
    }
    let problem = format!(
        "no tracefs is mounted at {}: as root, mount it with `mount -t tracefs nodev {}`",
        MOUNTS[0], MOUNTS[0]
    );
    Err(Error::Blocks { problem })
}

fn refused(path: &Path, error: &io::Error) -> Error {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => ": only root may trace the kernel; run this as root",
        io::ErrorKind::NotFound => {
            ": this kernel has no trace events for block requests (CONFIG_BLK_DEV_IO_TRACE)"
        }
        _ => "",
    };
    Error::Blocks { problem: format!("{}: {error}{remedy}", path.display()) }
}
