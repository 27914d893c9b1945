//! The limits that a process runs under, and their remedies.

use std::io;

use crate::Error;

/// A resource that the system limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Memory that may be locked, or pinned by the kernel for I/O; all processes of a user share it.
    LockedMemory,
    /// Addresses of a process.
    AddressSpace,
    /// Open files of a process.
    Files,
    /// Processes and threads of a user.
    Threads,
}

impl Limit {
    /// The kernel's error when this limit is reached.
    fn errno(self) -> i32 {
        match self {
            Self::LockedMemory | Self::AddressSpace => libc::ENOMEM,
            Self::Files => libc::EMFILE,
            Self::Threads => libc::EAGAIN,
        }
    }

    /// The limit in force; `None` if there is none.
    fn in_force(self) -> Option<u64> {
        let resource = match self {
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::AddressSpace => libc::RLIMIT_AS,
            Self::Files => libc::RLIMIT_NOFILE,
            Self::Threads => libc::RLIMIT_NPROC,
        };
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel writes one `rlimit`.
        let result = unsafe { libc::getrlimit(resource, &raw mut limit) };
        (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    }

    /// Text that names the limit and its value, and how to raise it. `None` if there is no limit.
    pub fn remedy(self) -> Option<String> {
        let limit = self.in_force()?;
        let kib = limit >> 10;
        Some(match self {
            Self::LockedMemory => format!(
                "all processes of this user together may lock {kib} KiB of memory: raise that with `ulimit -l`, LimitMEMLOCK= of a \
                 systemd unit, or memlock in /etc/security/limits.conf"
            ),
            Self::AddressSpace => format!(
                "this process may have {kib} KiB of addresses: raise that with `ulimit -v`, or LimitAS= of a systemd unit"
            ),
            Self::Files => format!(
                "this process may have {limit} files open: raise that with `ulimit -n`, or LimitNOFILE= of a systemd unit"
            ),
            Self::Threads => format!(
                "this user may have {limit} threads: raise that with `ulimit -u`, or LimitNPROC= and TasksMax= of a systemd unit"
            ),
        })
    }
}

/// The remedies for all of `limits` that may have led to `source`, in words; `None` if none of them has.
fn remedies(source: &io::Error, limits: &[Limit]) -> Option<String> {
    let errno = source.raw_os_error()?;
    let of: Vec<String> =
        limits.iter().filter(|limit| limit.errno() == errno).filter_map(|limit| limit.remedy()).collect();
    (!of.is_empty()).then(|| of.join("; or "))
}

/// The error of a system call that one of `limits` may have kept from succeeding.
pub fn limited(doing: String, source: io::Error, limits: &[Limit]) -> Error {
    match remedies(&source, limits) {
        Some(remedy) => Error::Limit { doing, source, remedy },
        None => Error::Os { doing, source },
    }
}

/// Remedy for an error of the system that by itself says that a limit was reached: no more open files.
pub fn remedy_for(source: &io::Error) -> Option<String> {
    remedies(source, &[Limit::Files])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_was_reached_is_named_with_its_remedy() {
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        assert!(remedy_for(&full).unwrap().contains("ulimit -n"));
        let error = limited("open".into(), full, &[Limit::LockedMemory, Limit::Files]).to_string();
        assert!(error.contains("ulimit -n") && !error.contains("ulimit -l"), "{error}");
        let other = io::Error::from_raw_os_error(libc::EIO);
        assert_eq!(remedy_for(&other), None);
        assert!(matches!(limited("open".into(), other, &[Limit::Files]), Error::Os { .. }));
    }
}
