//! Parts as commands to namespaces of NVMe drives, past the kernel's block layer (`IORING_OP_URING_CMD`).
//!
//! Each entry takes 128 bytes, to hold the command, and each completion 32. Source: Joshi et al., "I/O
//! Passthru: Upstreaming a flexible and efficient I/O Path in Linux", FAST 2024.

use std::cell::Cell;
use std::os::fd::RawFd;

use io_uring::types::Fixed;
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use super::files::Files;
use super::uring::{self, ARENA_INDEX, Encoding};
use super::{Part, PartOp};
use crate::nvme::command::{Command, Range, URING_IO};
use crate::nvme::namespace::Namespace;
use crate::nvme::node::namespaces;

/// See the module.
pub(crate) struct Passthrough {
    files: Files,
    /// Ranges of discards under way, by token.
    ranges: Box<[Range]>,
    /// The part of each token.
    parts: Box<[Sent]>,
    /// Whether the kernel takes commands with registered memory. Linux 6.1 refuses them (`EINVAL`)
    /// where the registered range has more segments than a request may, however short the request is.
    takes_registered: Cell<bool>,
    part_bytes_max: u32,
}

/// A part as it was sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    member: u32,
    length_bytes: u32,
    /// Whether its memory was named as registered.
    registered: bool,
}

/// The first release of Linux whose driver polls for requests. Those before poll for the memory of requests,
/// by a pointer that shares its place with a function's: Linux 6.1 crashes in `bio_poll` when processes are
/// killed with polled commands in flight.
const POLLS_SINCE: (u32, u32) = (6, 6);

/// Whether commands can be polled for safely by a kernel of this release, such as `6.12.9-amd64`.
pub(crate) fn polls_safely(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    next().zip(next()).is_some_and(|release| release >= POLLS_SINCE)
}

/// Whether the kernel takes commands by `io_uring` from this process, and there is a namespace to send them
/// to.
pub(crate) fn available() -> Result<(), String> {
    supported()?;
    let all = namespaces();
    if all.is_empty() {
        return Err("no NVMe drive here: there is no namespace /dev/ngXnY".into());
    }
    let opened = |path: &std::path::PathBuf| std::fs::File::open(path);
    match all.iter().map(opened).find(|opened| opened.is_ok()).or_else(|| all.first().map(opened)) {
        Some(Err(error)) => Err(format!(
            "/dev/ngXnY cannot be opened ({error}): run this as root, or allow the user to read and write the device"
        )),
        _ => Ok(()),
    }
}

/// Whether the kernel has such commands.
pub(crate) fn supported() -> Result<(), String> {
    uring::available()?;
    let ring = IoUring::<squeue::Entry128, cqueue::Entry32>::builder()
        .build(2)
        .map_err(|error| format!("the kernel has no rings with large entries (needs Linux 5.19): {error}"))?;
    let mut probe = Probe::new();
    let known = ring.submitter().register_probe(&mut probe).is_ok();
    match known && probe.is_supported(opcode::UringCmd80::CODE) {
        true => Ok(()),
        false => Err("the kernel has no passthrough by io_uring (needs Linux 5.19)".into()),
    }
}

impl Passthrough {
    /// For up to `capacity` parts to the namespaces of `files`.
    pub fn new(files: Files, capacity: u32) -> Self {
        let part_bytes_max = files.namespaces().map(|namespace| namespace.part_bytes_max).min();
        Self {
            ranges: vec![Range::default(); capacity as usize].into(),
            parts: vec![Sent::default(); capacity as usize].into(),
            takes_registered: Cell::new(true),
            part_bytes_max: part_bytes_max.unwrap_or(u32::MAX),
            files,
        }
    }

    /// The command of a part.
    fn command(&mut self, token: u32, part: &Part) -> Option<(&Namespace, RawFd, Command)> {
        let (member, length_bytes) = (part.member, part.length_bytes);
        self.parts[token as usize] = Sent { member, length_bytes, registered: false };
        let fd = self.files.fd(part.member);
        let namespace = self.files.namespace(part.member)?;
        let (number, memory, length) = (namespace.number, part.memory, part.length_bytes);
        let blocks = namespace.blocks(part.offset_bytes, length);
        let command = match part.op {
            PartOp::Read => Command::read(number, blocks, memory, length),
            PartOp::Write => Command::write(number, blocks, memory, length, false),
            PartOp::WriteDsync => Command::write(number, blocks, memory, length, true),
            PartOp::Flush => Command::flush(number),
            PartOp::Discard => {
                let range = &mut self.ranges[token as usize];
                *range = Range::new(blocks);
                Command::discard(number, range)
            }
        };
        Some((namespace, fd, command))
    }
}

impl Encoding for Passthrough {
    type Submission = squeue::Entry128;
    type Completion = cqueue::Entry32;
    const CUTS: bool = true;

    fn part_bytes_max(&self) -> u32 {
        self.part_bytes_max
    }

    fn entry(&mut self, token: u32, part: &Part, registered: bool) -> squeue::Entry128 {
        let moves_data = matches!(part.op, PartOp::Read | PartOp::Write | PartOp::WriteDsync);
        let file = Fixed(part.member);
        let Some((_, _, command)) = self.command(token, part) else {
            // Such a device is not opened this way; the kernel refuses the entry.
            return opcode::UringCmd80::new(file, 0).build();
        };
        let entry = opcode::UringCmd80::new(file, URING_IO).cmd(command.entry_bytes());
        let registered = registered && moves_data && self.takes_registered.get();
        self.parts[token as usize].registered = registered;
        entry.buf_index(registered.then_some(ARENA_INDEX)).build()
    }

    fn marked(entry: squeue::Entry128, flags: squeue::Flags, user_data: u64) -> squeue::Entry128 {
        entry.flags(flags).user_data(user_data)
    }

    fn run(&mut self, token: u32, part: &Part) -> Option<i32> {
        if !matches!(part.op, PartOp::Flush | PartOp::Discard) {
            return None;
        }
        let (namespace, fd, command) = self.command(token, part)?;
        // SAFETY: a flush has no memory, and the range of a discard lives in `ranges`.
        let status = unsafe { command.run(fd) };
        Some(match status {
            Ok(status) => namespace.result(i32::from(status), part.length_bytes),
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        })
    }

    fn result(&self, token: u32, result: i32) -> i32 {
        let Sent { member, length_bytes, registered } = self.parts[token as usize];
        if registered && result == -libc::EINVAL {
            // The queue sends the part again, from now on with its memory as it is.
            self.takes_registered.set(false);
            return -libc::EAGAIN;
        }
        self.files.namespace(member).map_or(result, |namespace| namespace.result(result, length_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_poll_by_requests_are_safe_to_poll() {
        for release in ["6.6.0", "6.12.9-amd64", "7.0-rc1", "10.1"] {
            assert!(polls_safely(release), "{release}");
        }
        for release in ["6.1.0-57-amd64", "5.19", "6.5.13", "6", "", "custom"] {
            assert!(!polls_safely(release), "{release}");
        }
    }
}
