//! The files of a device, as its channels hold them.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::nvme::namespace::Namespace;
use crate::target::Target;

/// The descriptors of a device's targets, kept open as long as a channel uses them.
#[derive(Clone)]
pub(crate) struct Files {
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

    /// The namespace of a member, if it is one.
    pub fn namespace(&self, member: u32) -> Option<&Namespace> {
        self.targets.get(member as usize)?.namespace.as_ref()
    }

    /// All namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.targets.iter().filter_map(|target| target.namespace.as_ref())
    }

    /// All descriptors, by member.
    pub fn fds(&self) -> &[RawFd] {
        &self.fds
    }
}
