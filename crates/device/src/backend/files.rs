//! The files of a device, as its channels hold them.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::target::Target;

/// The descriptors of a device's targets, kept open as long as a channel uses them.
pub(crate) struct Files {
    #[expect(dead_code, reason = "held so that the descriptors stay open")]
    targets: Arc<Vec<Target>>,
    fds: Vec<RawFd>,
}

impl Files {
    pub fn of(targets: &Arc<Vec<Target>>) -> Self {
        Self { targets: Arc::clone(targets), fds: targets.iter().map(Target::fd).collect() }
    }

    /// The descriptor of a member.
    pub fn fd(&self, member: u32) -> RawFd {
        self.fds[member as usize]
    }

    /// All descriptors, by member.
    pub fn fds(&self) -> &[RawFd] {
        &self.fds
    }
}
