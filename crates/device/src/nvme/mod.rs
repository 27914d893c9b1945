//! NVMe commands past the kernel's block layer: namespaces by their character devices, `/dev/ngXnY`.

pub(crate) mod command;
mod identify;
pub(crate) mod namespace;
pub(crate) mod node;
mod status;
