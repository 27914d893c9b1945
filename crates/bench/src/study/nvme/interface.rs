//! Ways from a program to a drive, and the processor time of a request by each.

use flashgrain_device::{BackendKind, Identity};
use serde::Serialize;

/// A way: section 2.4, Figure 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Interface {
    /// `pread` and `pwrite`: a thread waits for each request.
    Pread,
    Libaio,
    IoUring,
    /// `io_uring` that polls for completions.
    IoUringPolled,
    /// A driver in the program, as SPDK's.
    Bypass,
}

impl Interface {
    pub const ALL: [Self; 5] = [Self::Pread, Self::Libaio, Self::IoUring, Self::IoUringPolled, Self::Bypass];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pread => "pread",
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
            Self::IoUringPolled => "io_uring, polled",
            Self::Bypass => "kernel bypass",
        }
    }

    /// Whether a thread waits for each of its requests.
    pub fn blocks(self) -> bool {
        self == Self::Pread
    }

    /// The first through the kernel that works here, of those that do not block if there is one.
    pub fn best_here() -> Self {
        let works = |interface: &Self| interface.backend().is_some_and(|backend| backend.ample().is_ok());
        [Self::IoUring, Self::Libaio].into_iter().find(works).unwrap_or(Self::Pread)
    }

    /// Its backend on a directory; none if there is none.
    pub fn backend(self) -> Option<BackendKind> {
        match self {
            Self::Pread => Some(BackendKind::Sync),
            Self::Libaio => Some(BackendKind::Libaio),
            Self::IoUring | Self::IoUringPolled => Some(BackendKind::IoUring),
            Self::Bypass => None,
        }
    }

    /// Whether completions are polled for.
    pub fn polls(self) -> bool {
        self == Self::IoUringPolled
    }

    /// Why a directory on this drive cannot have it, if it cannot.
    pub fn why_not_on(self, drive: &Identity) -> Option<String> {
        let why = match self.backend() {
            None => "a file system is above the drive of a directory (past the block layer goes `flashgrain io /dev/ngXnY`)".into(),
            Some(_) if self.polls() && drive.poll_queues != Some(true) => {
                "the drive has no poll queues (`flashgrain backends`)".into()
            }
            Some(backend) => backend.ample().err()?,
        };
        Some(format!("{}: {why}", self.name()))
    }
}

/// Processor time of a request by each interface, submission and completion together, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceCosts {
    /// `pread`, with the switch to another thread and back.
    pub pread_ns: u64,
    /// `libaio`.
    pub libaio_ns: u64,
    /// `io_uring` with interrupts.
    pub io_uring_ns: u64,
    /// `io_uring` that polls.
    pub polled_ns: u64,
    /// A driver in the program.
    pub bypass_ns: u64,
}

impl InterfaceCosts {
    pub(super) fn of(&self, interface: Interface) -> u64 {
        match interface {
            Interface::Pread => self.pread_ns,
            Interface::Libaio => self.libaio_ns,
            Interface::IoUring => self.io_uring_ns,
            Interface::IoUringPolled => self.polled_ns,
            Interface::Bypass => self.bypass_ns,
        }
    }
}

impl Default for InterfaceCosts {
    /// The paper's machine: a thread makes 630 k requests a second with `libaio` or `io_uring`, 820 k if it
    /// polls (section 3.4), and three make 12.5 M with SPDK (section 2.5). `pread` takes a switch of 5,000
    /// cycles at 2.5 GHz more ("several thousand": section 3.2).
    fn default() -> Self {
        Self { pread_ns: 3587, libaio_ns: 1587, io_uring_ns: 1587, polled_ns: 1220, bypass_ns: 240 }
    }
}

impl std::str::FromStr for InterfaceCosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[pread_ns, libaio_ns, io_uring_ns, polled_ns, bypass_ns]) => {
                Ok(Self { pread_ns, libaio_ns, io_uring_ns, polled_ns, bypass_ns })
            }
            _ => Err("expected times in nanoseconds: PREAD,LIBAIO,IO_URING,POLLED,BYPASS".into()),
        }
    }
}

impl std::fmt::Display for InterfaceCosts {
    /// Writes it as it is typed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pread_ns, libaio_ns, io_uring_ns, polled_ns, bypass_ns } = self;
        write!(formatter, "{pread_ns},{libaio_ns},{io_uring_ns},{polled_ns},{bypass_ns}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_typed_as_they_are_shown() {
        let costs = InterfaceCosts::default();
        assert_eq!(costs.to_string().parse(), Ok(costs));
        assert_eq!("1,2,3,4,5".parse::<InterfaceCosts>().unwrap().of(Interface::IoUringPolled), 4);
        for nonsense in ["", "1,2,3,4", "1,2,3,4,5,6", "1,2,3,4,x"] {
            assert!(nonsense.parse::<InterfaceCosts>().is_err(), "{nonsense}");
        }
    }
}
