//! The system calls that are recorded, and how their arguments stand in strace's text.

use std::fmt::Write as _;

/// A system call: its name in the kernel's events, that of strace, and the arguments that matter.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub event: &'static str,
    pub name: &'static str,
    pub arguments: &'static [Argument],
}

/// An argument, by its number in the call.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// A descriptor, or `AT_FDCWD`.
    Descriptor(usize),
    /// A number without a sign.
    Number(usize),
    /// A number with a sign.
    Signed(usize),
    /// The names of the bits that are set.
    Flags(usize, &'static [(u64, &'static str)]),
    /// The name of a value.
    Value(usize, &'static [(u64, &'static str)]),
    /// Text that the call points to.
    Path,
    /// The flags of `struct open_how`.
    PointedFlags,
}

use Argument::{Descriptor, Flags, Number, Path, PointedFlags, Signed, Value};

const AT_FDCWD: i32 = -100;

/// Bits of `open` (linux/fcntl.h); `O_SYNC` has the bit of `O_DSYNC`, too.
const OPEN: &[(u64, &str)] = &[
    (libc::O_CREAT as u64, "O_CREAT"),
    (libc::O_EXCL as u64, "O_EXCL"),
    (libc::O_TRUNC as u64, "O_TRUNC"),
    (libc::O_APPEND as u64, "O_APPEND"),
    (libc::O_DSYNC as u64, "O_DSYNC"),
    (libc::O_DIRECTORY as u64, "O_DIRECTORY"),
    (libc::O_CLOEXEC as u64, "O_CLOEXEC"),
];
const CONTROL: &[(u64, &str)] = &[
    (libc::F_DUPFD as u64, "F_DUPFD"),
    (libc::F_DUPFD_CLOEXEC as u64, "F_DUPFD_CLOEXEC"),
    (libc::F_SETFD as u64, "F_SETFD"),
];
const CONTROLLED: &[(u64, &str)] = &[(libc::FD_CLOEXEC as u64, "FD_CLOEXEC")];
const CLOSES: &[(u64, &str)] = &[(libc::O_CLOEXEC as u64, "O_CLOEXEC")];
const RANGE: &[(u64, &str)] = &[(2, "CLOSE_RANGE_UNSHARE"), (4, "CLOSE_RANGE_CLOEXEC")];
const WHENCE: &[(u64, &str)] = &[(0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END")];
const ALLOCATE: &[(u64, &str)] = &[(libc::FALLOC_FL_PUNCH_HOLE as u64, "FALLOC_FL_PUNCH_HOLE")];
const MAP: &[(u64, &str)] =
    &[(libc::MAP_SHARED as u64, "MAP_SHARED"), (libc::MAP_ANONYMOUS as u64, "MAP_ANONYMOUS")];
/// `RWF_DSYNC`, `RWF_SYNC` and `RWF_APPEND` of linux/fs.h.
const TRANSFER: &[(u64, &str)] = &[(2, "RWF_DSYNC"), (4, "RWF_SYNC"), (16, "RWF_APPEND")];
/// Of `clone` (linux/sched.h).
const CLONE: &[(u64, &str)] = &[(0x200, "CLONE_FS"), (0x400, "CLONE_FILES")];

const fn shape(event: &'static str, arguments: &'static [Argument]) -> Shape {
    Shape { event, name: event, arguments }
}

/// All calls.
pub const SHAPES: &[Shape] = &[
    shape("read", &[Descriptor(0), Number(2)]),
    shape("write", &[Descriptor(0), Number(2)]),
    shape("readv", &[Descriptor(0), Number(2)]),
    shape("writev", &[Descriptor(0), Number(2)]),
    shape("pread64", &[Descriptor(0), Number(2), Signed(3)]),
    shape("pwrite64", &[Descriptor(0), Number(2), Signed(3)]),
    shape("preadv", &[Descriptor(0), Number(2), Signed(3)]),
    shape("pwritev", &[Descriptor(0), Number(2), Signed(3)]),
    shape("preadv2", &[Descriptor(0), Number(2), Signed(3), Flags(5, TRANSFER)]),
    shape("pwritev2", &[Descriptor(0), Number(2), Signed(3), Flags(5, TRANSFER)]),
    shape("fsync", &[Descriptor(0)]),
    shape("fdatasync", &[Descriptor(0)]),
    shape("lseek", &[Descriptor(0), Signed(1), Value(2, WHENCE)]),
    shape("ftruncate", &[Descriptor(0), Number(1)]),
    shape("fallocate", &[Descriptor(0), Flags(1, ALLOCATE), Number(2), Number(3)]),
    shape("mmap", &[Number(1), Flags(3, MAP), Descriptor(4), Number(5)]),
    Shape { event: "sendfile64", name: "sendfile", arguments: &[Descriptor(0), Descriptor(1)] },
    shape("copy_file_range", &[Descriptor(0), Descriptor(2)]),
    shape("splice", &[Descriptor(0), Descriptor(2)]),
    shape("open", &[Path, Flags(1, OPEN)]),
    shape("openat", &[Descriptor(0), Path, Flags(2, OPEN)]),
    shape("openat2", &[Descriptor(0), Path, PointedFlags]),
    shape("creat", &[Path]),
    shape("close", &[Descriptor(0)]),
    shape("close_range", &[Number(0), Number(1), Flags(2, RANGE)]),
    shape("dup", &[Descriptor(0)]),
    shape("dup2", &[Descriptor(0), Descriptor(1)]),
    shape("dup3", &[Descriptor(0), Descriptor(1), Flags(2, CLOSES)]),
    shape("fcntl", &[Descriptor(0), Value(1, CONTROL), Flags(2, CONTROLLED)]),
    shape("chdir", &[Path]),
    shape("fchdir", &[Descriptor(0)]),
    shape("unshare", &[Flags(0, CLONE)]),
    shape("pipe", &[]),
    shape("pipe2", &[Flags(1, CLOSES)]),
    shape("socketpair", &[Flags(1, CLOSES)]),
    shape("socket", &[Flags(1, CLOSES)]),
    shape("accept", &[]),
    shape("accept4", &[Flags(3, CLOSES)]),
    shape("eventfd2", &[Flags(1, CLOSES)]),
    shape("epoll_create", &[]),
    shape("epoll_create1", &[Flags(0, CLOSES)]),
    shape("timerfd_create", &[Flags(1, CLOSES)]),
    shape("signalfd4", &[Flags(3, CLOSES)]),
    shape("inotify_init1", &[Flags(0, CLOSES)]),
    Shape { event: "memfd_create", name: "memfd_create", arguments: &[Flags(1, &[(1, "MFD_CLOEXEC")])] },
    shape("io_uring_setup", &[]),
    shape("io_submit", &[]),
    shape("io_uring_enter", &[Descriptor(0), Number(1)]),
];

impl Shape {
    /// The call of a name; its place in [`SHAPES`].
    pub fn of(event: &str) -> Option<usize> {
        SHAPES.iter().position(|shape| shape.event == event)
    }

    /// Whether the call opens a file by a path.
    pub fn opens(&self) -> bool {
        matches!(self.event, "open" | "openat" | "openat2" | "creat")
    }

    /// Whether the call has a path.
    pub fn has_path(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(argument, Path))
    }

    /// Whether the call makes a pair of descriptors, at the address that is this argument.
    pub fn pair(&self) -> Option<usize> {
        match self.event {
            "pipe" | "pipe2" => Some(0),
            "socketpair" => Some(3),
            _ => None,
        }
    }

    /// Appends the arguments to `text`. `path` and `pointed` are those of calls that point to them.
    pub fn write(&self, text: &mut String, values: &[u64; 6], path: &str, pointed: u64) {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        for (number, argument) in self.arguments.iter().enumerate() {
            if number > 0 {
                text.push_str(", ");
            }
            // Texts take whatever is written.
            let _ = match *argument {
                Descriptor(at) if value(at) as i32 == AT_FDCWD => write!(text, "AT_FDCWD"),
                Descriptor(at) => write!(text, "{}", value(at) as i32),
                Number(at) => write!(text, "{}", value(at)),
                Signed(at) => write!(text, "{}", value(at) as i64),
                Flags(at, names) => write_flags(text, value(at), names),
                PointedFlags => write_flags(text, pointed, OPEN),
                Value(at, names) => {
                    let name = names.iter().find(|(number, _)| *number == value(at) & 0xffff_ffff);
                    write!(text, "{}", name.map_or("?", |(_, name)| name))
                }
                Path => {
                    text.push('"');
                    write_escaped(text, path);
                    text.push('"');
                    Ok(())
                }
            };
        }
    }
}

fn write_flags(text: &mut String, value: u64, names: &[(u64, &str)]) -> std::fmt::Result {
    let mut is_first = true;
    for (_, name) in names.iter().filter(|(bits, _)| value & bits == *bits) {
        text.push_str(if is_first { "" } else { "|" });
        text.push_str(name);
        is_first = false;
    }
    if is_first { write!(text, "0") } else { Ok(()) }
}

/// Escapes the characters that mean something in strace's text.
pub fn write_escaped(text: &mut String, path: &str) {
    for character in path.chars() {
        match character {
            '"' | '\\' | '<' | '>' | '[' | ']' | '\0'..='\x1f' | '\x7f' => {
                let _ = write!(text, "\\{:03o}", u32::from(character));
            }
            plain => text.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: &str, values: [u64; 6], path: &str) -> String {
        let mut text = String::new();
        SHAPES[Shape::of(event).unwrap()].write(&mut text, &values, path, 0);
        text
    }

    #[test]
    fn arguments_stand_as_strace_prints_them() {
        let directory = -100_i32 as u32 as u64;
        let flags = (libc::O_CREAT | libc::O_SYNC) as u64;
        assert_eq!(
            written("openat", [directory, 7, flags, 0, 0, 0], "a\"b\n"),
            "AT_FDCWD, \"a\\042b\\012\", O_CREAT|O_DSYNC"
        );
        assert_eq!(written("preadv2", [3, 7, 1, u64::MAX, 0, 18], ""), "3, 1, -1, RWF_DSYNC|RWF_APPEND");
        assert_eq!(written("lseek", [3, 0, 2, 0, 0, 0], ""), "3, 0, SEEK_END");
        assert_eq!(written("fcntl", [3, 2, 1, 0, 0, 0], ""), "3, F_SETFD, FD_CLOEXEC");
        assert_eq!(written("fcntl", [3, 3, 1, 0, 0, 0], ""), "3, ?, FD_CLOEXEC");
        assert_eq!(written("mmap", [0, 4096, 3, 1, 5, 8192], ""), "4096, MAP_SHARED, 5, 8192");
        assert_eq!(written("fallocate", [3, 3, 8, 16, 0, 0], ""), "3, FALLOC_FL_PUNCH_HOLE, 8, 16");
    }
}
