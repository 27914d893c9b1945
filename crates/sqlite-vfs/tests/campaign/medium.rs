//! Where a life's databases are: in files, or on a volume.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_sqlite_vfs::{DEVICE_VFS_NAME, VFS_NAME, Volume, VolumeOptions, mount, unmount};
use rusqlite::{Connection, OpenFlags};

use crate::device::Recorded;
use crate::files;
use crate::tape::{Event, Image};

/// Bytes of a volume.
const VOLUME_BYTES: usize = 18 << 20;

/// The kind of a medium, and the name by which it is found: SQLite's journals name each other by full paths.
#[derive(Clone)]
pub struct Place {
    members: u32,
    name: String,
}

/// See the module.
pub enum Medium {
    /// The calling thread's, through this VFS.
    Files {
        vfs: &'static str,
        name: String,
    },
    Volume {
        device: Arc<Recorded>,
        name: String,
    },
}

impl Drop for Medium {
    fn drop(&mut self) {
        if let Self::Volume { name, .. } = self {
            unmount(name);
        }
    }
}

impl Place {
    /// Files, or a volume if it has members.
    pub fn new(members: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { members, name: format!("volume{}", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// An empty medium, from which recording begins.
    pub fn empty(&self) -> Image {
        if self.members == 0 {
            return Image::default();
        }
        let device = Recorded::new(vec![0; VOLUME_BYTES], self.members);
        drop(Volume::create(Arc::clone(&device) as _, VolumeOptions::default()).unwrap());
        let medium = self.on(Arc::clone(&device));
        // A directory of several sectors, which a cut may tear.
        for number in 0..5 {
            let long = format!("other-{number}-{}", "x".repeat(150));
            open(&medium, &long, "plain").execute_batch("PRAGMA user_version = 1").unwrap();
        }
        drop(medium);
        Image { files: [(0, device.rewind())].into(), ..Image::default() }
    }

    /// The calling thread's files as they are, through this VFS.
    pub fn files(&self, vfs: &'static str) -> Medium {
        Medium::Files { vfs, name: self.name.clone() }
    }

    /// A medium with this content.
    pub fn holding(&self, image: Image) -> Medium {
        if self.members == 0 {
            files::load(image);
            return self.files(VFS_NAME);
        }
        self.on(Recorded::new(image.files.into_values().next().unwrap(), self.members))
    }

    /// The volume on a device.
    fn on(&self, device: Arc<Recorded>) -> Medium {
        let volume = Volume::open(Arc::clone(&device) as _, VolumeOptions::default()).unwrap();
        mount(&self.name, volume).unwrap();
        Medium::Volume { device, name: self.name.clone() }
    }
}

impl Medium {
    pub fn note(&self, event: Event) {
        match self {
            Self::Files { .. } => files::note(event),
            Self::Volume { device, .. } => device.note(event),
        }
    }

    /// What has reached it so far.
    pub fn tape(&self) -> Vec<Event> {
        match self {
            Self::Files { .. } => files::tape(),
            Self::Volume { device, .. } => device.tape(),
        }
    }

    pub fn uri(&self, database: &str, layout: &str) -> String {
        // Databases are told apart by their paths in the whole process.
        let (Self::Files { name, .. } | Self::Volume { name, .. }) = self;
        format!("file:/{name}/{database}?layout={layout}")
    }
}

/// Opens a database there.
pub fn open(medium: &Medium, database: &str, layout: &str) -> Connection {
    let vfs = match medium {
        Medium::Files { vfs, .. } => vfs,
        Medium::Volume { .. } => DEVICE_VFS_NAME,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags_and_vfs(medium.uri(database, layout), flags, vfs).unwrap()
}
