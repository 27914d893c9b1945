//! From calls to requests.

use std::collections::HashMap;

use super::Calls;
use super::descriptors::OpenFile;
use super::line::{Call, descriptor, number_behind, number_from_end, unescaped};
use crate::{Address, Layer, Loss, NameId, Names, Operation, Request};

/// Where files end, as far as the trace tells.
#[derive(Default)]
pub(super) struct Ends(HashMap<NameId, u64>);

impl Ends {
    fn set(&mut self, name: NameId, end_bytes: u64) {
        self.0.insert(name, end_bytes);
    }

    fn of(&self, name: NameId) -> Option<u64> {
        self.0.get(&name).copied()
    }

    /// Notes that a file reaches `end_bytes` at least, if its end is known at all.
    fn reach(&mut self, name: NameId, end_bytes: u64) {
        if let Some(end) = self.0.get_mut(&name) {
            *end = end_bytes.max(*end);
        }
    }
}

/// Where the bytes of a read or write are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// At the offset of the open file, which they move.
    Offset,
    /// At an offset that the call gives.
    Given(u64),
}

/// Whether a path, or the text that `strace -y` prints instead of one, names an object that is on no drive.
fn is_no_file(path: &str) -> bool {
    let is_kernel =
        ["/proc/", "/sys/", "/dev/pts/", "/dev/shm/"].iter().any(|folder| path.starts_with(folder));
    let is_character = matches!(
        path,
        "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/random" | "/dev/urandom" | "/dev/tty" | "/dev/ptmx"
    );
    let is_nameless = path.split_once(':').is_some_and(|(kind, _)| {
        let kinds =
            ["pipe", "socket", "anon_inode", "TCP", "TCPv6", "UDP", "UDPv6", "UNIX", "NETLINK", "memfd"];
        kinds.iter().any(|nameless| kind.trim_start_matches('/').starts_with(nameless))
    });
    is_kernel || is_character || is_nameless
}

fn request(operation: Operation, name: NameId, offset_bytes: u64, length_bytes: u64) -> Request {
    Request {
        time_ns: 0,
        layer: Layer::File,
        operation,
        on_device: None,
        in_file: Some(Address { name, offset_bytes }),
        length_bytes,
        process: None,
        latency_ns: None,
    }
}

impl Calls {
    /// Appends the requests of a call to the queue.
    pub(super) fn call(&mut self, process: u32, call: &Call<'_>, names: &mut Names) {
        let last = |from_end| number_from_end(call.arguments, from_end);
        match call.name {
            "open" | "openat" | "openat2" | "creat" => self.open(process, call, names),
            "close" => {
                if let Some((number, _)) = descriptor(call.arguments) {
                    self.descriptors.close(process, number);
                }
            }
            "dup" | "dup2" | "dup3" => self.duplicate(process, call),
            "fcntl" => self.controlled(process, call),
            "close_range" | "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "epoll_create"
            | "epoll_create1" | "memfd_create" | "timerfd_create" | "signalfd4" | "inotify_init"
            | "inotify_init1" | "io_uring_setup" | "pidfd_open" | "pipe" | "pipe2" | "socketpair" => {
                self.without_files(process, call);
            }
            "fork" | "vfork" | "clone" | "clone3" | "unshare" | "execve" | "execveat" => {
                self.of_process(process, call);
            }
            "chdir" | "fchdir" => self.enter_folder(process, call, names),
            "lseek" | "fstat" | "newfstatat" | "ftruncate" | "fallocate" => self.place(process, call, names),
            "read" | "readv" => self.transfer(process, call, Operation::Read, At::Offset, names),
            "write" | "writev" => self.transfer(process, call, Operation::Write, At::Offset, names),
            "pread64" | "preadv" => self.at_given(process, call, Operation::Read, last(0), names),
            "pwrite64" | "pwritev" => self.at_given(process, call, Operation::Write, last(0), names),
            "preadv2" => self.at_given(process, call, Operation::Read, last(1), names),
            "pwritev2" => self.at_given(process, call, Operation::Write, last(1), names),
            "fsync" | "fdatasync" => {
                if let Some(name) = self.name(process, call.arguments, names) {
                    self.more.push_back(request(Operation::Flush, name, 0, 0));
                }
            }
            "io_submit" => self.submitted(process, call, names),
            "io_uring_enter" => self.losses.add(Loss::IoUring, call.result),
            "sendfile" | "copy_file_range" | "splice" => self.losses.add(Loss::InsideKernel, 1),
            "mmap" => self.mapped(process, call, names),
            _ => {}
        }
    }

    fn open(&mut self, process: u32, call: &Call<'_>, names: &mut Names) {
        let Ok(number) = u32::try_from(call.result) else { return };
        let printed = call.result_path.map(unescaped);
        let Some(path) = printed.or_else(|| self.opened_path(process, call, names)) else {
            return self.descriptors.close(process, number);
        };
        let closes_on_exec = call.arguments.contains("O_CLOEXEC");
        if is_no_file(&path) {
            return self.descriptors.open_no_file(process, number, closes_on_exec);
        }
        let name = names.id(&path);
        let is_new =
            call.name == "creat" || call.arguments.contains("O_TRUNC") || call.arguments.contains("O_EXCL");
        if is_new {
            self.ends.set(name, 0);
        }
        let file = OpenFile {
            name,
            is_whole_path: call.result_path.is_some() || path.starts_with('/'),
            offset_bytes: 0,
            is_appended: call.arguments.contains("O_APPEND"),
            is_durable: call.arguments.contains("O_SYNC") || call.arguments.contains("O_DSYNC"),
        };
        self.descriptors.open(process, number, file, closes_on_exec);
    }

    /// The open file of the descriptor at the beginning of the arguments. One that was open before the trace
    /// began is known by the path after it; its offset is unknown, and begins at 0.
    fn file(&mut self, process: u32, arguments: &str, names: &mut Names) -> Option<&mut OpenFile> {
        let (number, path) = descriptor(arguments)?;
        if let Some(path) = path.map(unescaped) {
            if is_no_file(&path) {
                return None;
            }
            let name = names.id(&path);
            let known = self.descriptors.file(process, number);
            if known.is_none_or(|file| file.is_whole_path && file.name != name) {
                let file = OpenFile {
                    name,
                    is_whole_path: true,
                    offset_bytes: 0,
                    is_appended: false,
                    is_durable: false,
                };
                self.descriptors.open(process, number, file, false);
            }
        }
        self.descriptors.file(process, number)
    }

    fn name(&mut self, process: u32, arguments: &str, names: &mut Names) -> Option<NameId> {
        self.file(process, arguments, names).map(|file| file.name)
    }

    /// Calls that tell or change offsets and ends of files.
    fn place(&mut self, process: u32, call: &Call<'_>, names: &mut Names) {
        let Some(file) = self.file(process, call.arguments, names) else { return };
        let name = file.name;
        match call.name {
            "lseek" => {
                file.offset_bytes = call.result;
                if call.arguments.ends_with("0, SEEK_END") {
                    self.ends.set(name, call.result);
                }
            }
            "ftruncate" => {
                if let Some(end) = number_from_end(call.arguments, 0) {
                    self.ends.set(name, end);
                }
            }
            "fallocate" => {
                let place = number_from_end(call.arguments, 1).zip(number_from_end(call.arguments, 0));
                if let Some((offset, length)) = place.filter(|_| call.arguments.contains("PUNCH_HOLE")) {
                    self.more.push_back(request(Operation::Discard, name, offset, length));
                }
            }
            _ => {
                if let Some(size) = number_behind(call.arguments, "st_size=") {
                    self.ends.set(name, size);
                }
            }
        }
    }

    /// A transfer at an offset that the call gives; -1, which is no number here, is the open file's own.
    fn at_given(
        &mut self,
        process: u32,
        call: &Call<'_>,
        operation: Operation,
        offset_bytes: Option<u64>,
        names: &mut Names,
    ) {
        self.transfer(process, call, operation, offset_bytes.map_or(At::Offset, At::Given), names);
    }

    fn transfer(&mut self, process: u32, call: &Call<'_>, operation: Operation, at: At, names: &mut Names) {
        let Some((number, path)) = descriptor(call.arguments) else { return };
        let Some(file) = self.file(process, call.arguments, names).copied() else {
            // The standard streams are open from the begin, and on no drive unless the trace says so.
            if path.is_none() && number > 2 && !self.descriptors.is_known(process, number) {
                self.losses.add(Loss::UnknownDescriptor, 1);
            }
            return;
        };
        let flags = if call.name == "pwritev2" { call.arguments.rsplit(", ").next() } else { None };
        let has = |flag| flags.is_some_and(|flags| flags.contains(flag));
        let is_durable = file.is_durable || has("RWF_DSYNC") || has("RWF_SYNC");
        let is_append = (file.is_appended || has("RWF_APPEND")) && operation == Operation::Write;
        let offset_bytes = match at {
            _ if is_append => match self.ends.of(file.name) {
                Some(end_bytes) => end_bytes,
                None => return self.losses.add(Loss::UnknownEnd, 1),
            },
            At::Given(offset_bytes) => offset_bytes,
            At::Offset => file.offset_bytes,
        };
        let end_bytes = offset_bytes.saturating_add(call.result);
        if let (At::Offset, Some(file)) = (at, self.descriptors.file(process, number)) {
            file.offset_bytes = end_bytes;
        }
        if operation == Operation::Write {
            self.ends.reach(file.name, end_bytes);
        }
        if call.result > 0 {
            self.more.push_back(request(operation, file.name, offset_bytes, call.result));
            if is_durable && operation == Operation::Write {
                self.more.push_back(request(Operation::Flush, file.name, 0, 0));
            }
        }
    }

    /// The control blocks of `io_submit`.
    fn submitted(&mut self, process: u32, call: &Call<'_>, names: &mut Names) {
        let blocks = call.arguments.split("aio_lio_opcode=").skip(1);
        for block in blocks.take(usize::try_from(call.result).unwrap_or(usize::MAX)) {
            let operation = match block.split([',', '}']).next().unwrap_or_default() {
                "IOCB_CMD_PREAD" | "IOCB_CMD_PREADV" => Operation::Read,
                "IOCB_CMD_PWRITE" | "IOCB_CMD_PWRITEV" => Operation::Write,
                "IOCB_CMD_FSYNC" | "IOCB_CMD_FDSYNC" => Operation::Flush,
                _ => continue,
            };
            let descriptor = block.split("aio_fildes=").nth(1).unwrap_or_default();
            let Some(file) = self.file(process, descriptor, names).copied() else {
                self.losses.add(Loss::UnknownDescriptor, 1);
                continue;
            };
            if operation == Operation::Flush {
                self.more.push_back(request(operation, file.name, 0, 0));
                continue;
            }
            let length = number_behind(block, "aio_nbytes=").or_else(|| vector_bytes(block));
            let Some((offset, length)) = number_behind(block, "aio_offset=").zip(length) else {
                self.losses.add(Loss::Line, 1);
                continue;
            };
            self.more.push_back(request(operation, file.name, offset, length));
        }
    }

    /// Counts maps of files; those of programs and libraries, which are private, are no data.
    fn mapped(&mut self, process: u32, call: &Call<'_>, names: &mut Names) {
        if !call.arguments.contains("MAP_SHARED") || call.arguments.contains("MAP_ANONYMOUS") {
            return;
        }
        let descriptor = call.arguments.rsplit(", ").nth(1).unwrap_or_default();
        if self.name(process, descriptor, names).is_some() {
            self.losses.add(Loss::Mapped, 1);
        }
    }
}

/// The bytes of a vector of buffers.
fn vector_bytes(block: &str) -> Option<u64> {
    let mut lengths = block
        .split("iov_len=")
        .skip(1)
        .map(|text| text.split(|character: char| !character.is_ascii_digit()).next()?.parse::<u64>().ok());
    let first = lengths.next()??;
    lengths.try_fold(first, |sum, length| sum.checked_add(length?))
}
