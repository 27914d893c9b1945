//! From events of threads to strace's text: the end of a call makes its line.
//!
//! 1. A call is known by its begin and its end, which one thread has one after the other.
//! 2. What it points to was seen between them; a file that was opened, just before or after the end.
//! 3. `close` counts at its begin: before its end, another thread may get the number.
//! 4. A request of io_uring makes its line when it ends, as the call that would do the same.
//!
//! A call whose parts are not all there makes no line that says more than is known: a descriptor that was
//! opened by an unknown path is one that is not known.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use flashgrain_trace::{Loss, Losses};

use super::event::{Event, Said, Seen};
use super::shapes::SHAPES;

/// How long after the end of a call the record of its opening may come.
const OPENED_NS_MAX: u64 = 100_000;

/// How long a file's record is kept.
const KEPT_NS: u64 = 1_000_000_000;

/// Entries that name a file by its place in a table of the ring (`IOSQE_FIXED_FILE`).
const FIXED_FILE: u32 = 1;

const SECOND_NS: u64 = 1_000_000_000;

/// A file that was opened: its time, descriptor, mode and size.
type Opened = (u64, i32, u32, u64);

#[derive(Debug, Default)]
struct Thread {
    /// The time, the call and its arguments.
    under_way: Option<(u64, usize, [u64; 6])>,
    path: Option<(Option<Box<str>>, u64)>,
    pair: Option<[i32; 2]>,
    blocks: Vec<Seen>,
}

/// All threads of the program.
#[derive(Debug, Default)]
pub struct Threads {
    threads: HashMap<u32, Thread>,
    opened: HashMap<u32, VecDeque<Opened>>,
    /// Requests of io_uring under way, by their addresses: with the time, the thread, and what was asked.
    requests: HashMap<u64, (u64, u32, Seen)>,
    /// The thread that starts the program, whose own calls are none of the program's.
    pub starter: Option<u32>,
    /// What is added to times.
    offset_ns: i64,
    pub text: String,
    pub losses: Losses,
}

impl Threads {
    /// No threads yet. `offset_ns` is added to times.
    pub fn new(offset_ns: i64) -> Self {
        Self { offset_ns, ..Self::default() }
    }

    /// Follows a thread from now on.
    pub fn follow(&mut self, thread: u32) {
        self.threads.entry(thread).or_default();
    }

    /// All threads that are followed.
    pub fn followed(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// Forgets the calls under way: events were lost.
    pub fn forget(&mut self) {
        self.threads.values_mut().for_each(|thread| *thread = Thread::default());
        self.opened.clear();
        self.losses.add(Loss::Incomplete, self.requests.len() as u64);
        self.requests.clear();
    }

    /// Counts what is under way at the end.
    pub fn finish(&mut self) {
        let moves = |thread: &&Thread| {
            thread
                .under_way
                .is_some_and(|(_, call, _)| SHAPES.get(call).is_some_and(|shape| shape.name != "close"))
        };
        let under_way = self.threads.values().filter(moves).count();
        self.losses.add(Loss::Unfinished, under_way as u64);
        self.losses.add(Loss::Incomplete, self.requests.len() as u64);
    }

    /// Notes a file that was opened, before the events around it are taken.
    pub fn note_opened(&mut self, time_ns: u64, thread: u32, seen: &Seen) {
        let Seen::Opened { descriptor, mode, size_bytes } = *seen else { return };
        let opened = self.opened.entry(thread).or_default();
        opened.push_back((time_ns, descriptor, mode, size_bytes));
    }

    /// Forgets records of files that no call has taken, such as those of other programs.
    pub fn forget_opened(&mut self, now_ns: u64) {
        self.opened.retain(|_, opened| {
            opened.retain(|(time_ns, ..)| time_ns.saturating_add(KEPT_NS) > now_ns);
            !opened.is_empty()
        });
    }

    /// Takes an event, in the order of their times.
    pub fn take(&mut self, time_ns: u64, event: Event) {
        let Event { thread: number, said } = event;
        if self.starter == Some(number) {
            if let Said::Fork { child, flags } = said {
                self.fork(time_ns, number, child, flags);
            }
            return;
        }
        if let Said::Seen(Seen::Complete { request, result }) = said {
            return self.complete(time_ns, request, result);
        }
        if let Said::Seen(seen) = said {
            // Of a thread that is not followed, it is another program's.
            let Some(thread) = self.threads.get_mut(&number) else { return };
            match seen {
                Seen::Path { text, pointed } => thread.path = Some((text, pointed)),
                Seen::Pair(pair) => thread.pair = Some(pair),
                Seen::Block { .. } => thread.blocks.push(seen),
                Seen::Submit { request, .. } => {
                    self.requests.insert(request, (time_ns, number, seen));
                }
                Seen::Opened { .. } | Seen::Complete { .. } => {}
            }
            return;
        }
        match said {
            Said::Enter { call, values } => {
                let Some(thread) = self.threads.get_mut(&number) else { return };
                thread.under_way = Some((time_ns, call, values));
                if SHAPES.get(call).is_some_and(|shape| shape.name == "close") {
                    self.line(number, time_ns, format_args!("close({}) = 0", values[0] as i32));
                }
            }
            Said::Exit { call, result } => self.exit(time_ns, number, call, result),
            Said::Fork { child, flags } => self.fork(time_ns, number, child, flags),
            Said::Exec { before } => {
                // A thread that begins a program gets the number of its process.
                if before != number {
                    self.fork(time_ns, before, number, 0x600);
                }
                self.line(number, time_ns, format_args!("execve() = 0"));
            }
            Said::End => {
                self.line(number, time_ns, format_args!("+++ exited +++"));
                self.threads.remove(&number);
                self.opened.remove(&number);
            }
            Said::Seen(_) => {}
        }
    }

    fn fork(&mut self, time_ns: u64, parent: u32, child: u32, flags: u64) {
        self.follow(child);
        let shared = |flag, name| if flags & flag != 0 { name } else { "" };
        let (files, folder) = (shared(0x400, "CLONE_FILES|"), shared(0x200, "CLONE_FS|"));
        self.line(parent, time_ns, format_args!("clone(flags={files}{folder}0) = {child}"));
    }

    fn exit(&mut self, time_ns: u64, number: u32, call: usize, result: i64) {
        let Some(thread) = self.threads.get_mut(&number) else { return };
        let under_way = thread.under_way.take();
        let (path, pair) = (thread.path.take(), thread.pair.take());
        let blocks = std::mem::take(&mut thread.blocks);
        let Some((begin_ns, _, values)) = under_way.filter(|(_, begun, _)| *begun == call) else { return };
        let Some(shape) = SHAPES.get(call).filter(|shape| shape.name != "close" && result >= 0) else {
            return;
        };
        let (text, pointed) = path.map_or((None, 0), |(text, pointed)| (text, pointed));
        let arguments = match (shape.name, &text, pair) {
            // An unknown path: of a folder, none is known; of a file, its number is none that is known.
            ("chdir", None, _) => "\"\"".to_owned(),
            (_, None, _) if shape.has_path() => {
                return self.line(number, begin_ns, format_args!("close({result}) = 0"));
            }
            (_, _, Some([first, second])) => {
                let mut arguments = format!("[{first}, {second}], ");
                shape.write(&mut arguments, &values, "", 0);
                arguments
            }
            ("io_submit", ..) => {
                self.losses.add(Loss::Overrun, (result as u64).saturating_sub(blocks.len() as u64));
                control_blocks(&blocks, result)
            }
            _ => {
                let mut arguments = String::new();
                shape.write(&mut arguments, &values, text.as_deref().unwrap_or_default(), pointed);
                arguments
            }
        };
        let took_ns = time_ns.saturating_sub(begin_ns);
        let (seconds, fraction) = (took_ns / SECOND_NS, took_ns % SECOND_NS);
        let opened = if shape.opens() { self.opened(number, begin_ns, time_ns, result) } else { None };
        let kind = opened.and_then(|(_, _, mode, _)| printed_kind(mode)).unwrap_or_default();
        let name = shape.name;
        self.line(
            number,
            begin_ns,
            format_args!("{name}({arguments}) = {result}{kind} <{seconds}.{fraction:09}>"),
        );
        if let Some((.., size)) = opened.filter(|_| kind.is_empty()) {
            self.line(number, begin_ns, format_args!("fstat({result}, {{st_size={size}}}) = 0"));
        }
    }

    /// The record of the file that a call has opened.
    fn opened(&mut self, thread: u32, begin_ns: u64, end_ns: u64, result: i64) -> Option<Opened> {
        let opened = self.opened.get_mut(&thread)?;
        while opened.front().is_some_and(|(time_ns, ..)| *time_ns < begin_ns) {
            opened.pop_front();
        }
        let latest_ns = end_ns.saturating_add(OPENED_NS_MAX);
        let is_ours =
            |(time_ns, descriptor, ..): &&Opened| *time_ns <= latest_ns && i64::from(*descriptor) == result;
        opened.front().filter(is_ours)?;
        opened.pop_front()
    }

    fn complete(&mut self, time_ns: u64, request: u64, result: i32) {
        let Some((begin_ns, thread, seen)) = self.requests.remove(&request) else { return };
        let Seen::Submit { opcode, flags, descriptor, offset_bytes, length_bytes, .. } = seen else { return };
        let name = match opcode {
            1 | 4 | 22 => "pread64",
            2 | 5 | 23 => "pwrite64",
            3 => "fsync",
            19 => "close",
            // Reads that go on by themselves, and others that move bytes of files.
            17 | 18 | 28 | 30 | 49 => return self.losses.add(Loss::IoUring, 1),
            _ => return,
        };
        if result < 0 {
            return;
        }
        if flags & FIXED_FILE != 0 {
            return self.losses.add(Loss::UnknownDescriptor, 1);
        }
        let took_ns = time_ns.saturating_sub(begin_ns);
        let (seconds, fraction) = (took_ns / SECOND_NS, took_ns % SECOND_NS);
        let offset = offset_bytes as i64;
        let transfer = if matches!(name, "pread64" | "pwrite64") {
            format!(", {length_bytes}, {offset}")
        } else {
            String::new()
        };
        self.line(
            thread,
            begin_ns,
            format_args!("{name}({descriptor}{transfer}) = {result} <{seconds}.{fraction:09}>"),
        );
    }

    /// Appends a line.
    pub fn line(&mut self, thread: u32, time_ns: u64, call: std::fmt::Arguments<'_>) {
        let time_ns = time_ns.saturating_add_signed(self.offset_ns);
        let (seconds, fraction) = (time_ns / SECOND_NS, time_ns % SECOND_NS);
        // Text takes whatever is written.
        let _ = writeln!(self.text, "{thread} {seconds}.{fraction:09} {call}");
    }
}

/// What `strace -y` would print of an object that is on no drive, whatever its name.
fn printed_kind(mode: u32) -> Option<&'static str> {
    match mode & libc::S_IFMT {
        libc::S_IFIFO => Some("<pipe:[]>"),
        libc::S_IFSOCK => Some("<socket:[]>"),
        libc::S_IFCHR => Some("<anon_inode:[character device]>"),
        _ => None,
    }
}

/// Control blocks as arguments of `io_submit`.
fn control_blocks(blocks: &[Seen], result: i64) -> String {
    let mut text = format!("0, {result}, [");
    for block in blocks {
        let Seen::Block { opcode, descriptor, length, offset_bytes, vector_bytes } = *block else { continue };
        let name = match opcode {
            0 => "PREAD",
            1 => "PWRITE",
            2 => "FSYNC",
            3 => "FDSYNC",
            7 => "PREADV",
            8 => "PWRITEV",
            _ => "NOOP",
        };
        let length = match opcode {
            7 | 8 if length == 1 => format!("aio_buf=[{{iov_len={vector_bytes}}}]"),
            7 | 8 => String::new(),
            _ => format!("aio_nbytes={length}"),
        };
        let _ = write!(
            text,
            "{{aio_lio_opcode=IOCB_CMD_{name}, aio_fildes={descriptor}, {length}, aio_offset={offset_bytes}}}, "
        );
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::{bytes, layouts};
    use super::*;

    const DIRECTORY: u64 = -100_i64 as u64;

    /// The lines of events of thread 7, which is followed, and the losses.
    fn lines(events: Vec<(u64, Event)>) -> (Vec<String>, Losses) {
        let mut threads = Threads::new(0);
        threads.follow(7);
        for (time_ns, event) in events {
            match &event.said {
                Said::Seen(seen @ Seen::Opened { .. }) => threads.note_opened(time_ns, event.thread, seen),
                _ => threads.take(time_ns, event),
            }
        }
        threads.finish();
        (threads.text.lines().map(str::to_owned).collect(), threads.losses)
    }

    fn of_kernel(time_ns: u64, id: u16, thread: u32, values: &[u64]) -> (u64, Event) {
        (time_ns, layouts().event(&bytes(id, thread, values)).unwrap())
    }

    fn seen(time_ns: u64, seen: Seen) -> (u64, Event) {
        (time_ns, Event { thread: 7, said: Said::Seen(seen) })
    }

    fn path(time_ns: u64, text: Option<&str>) -> (u64, Event) {
        seen(time_ns, Seen::Path { text: text.map(Into::into), pointed: 0 })
    }

    #[test]
    fn a_call_is_its_begin_and_end_with_what_it_points_to() {
        let opened = Seen::Opened { descriptor: 3, mode: libc::S_IFREG, size_bytes: 99 };
        let (found, losses) = lines(vec![
            seen(1_000_000_040, opened),
            of_kernel(1_000_000_010, 3, 7, &[DIRECTORY, 1, 0, 0]),
            path(1_000_000_011, Some("f")),
            of_kernel(1_000_000_012, 1, 8, &[3, 0, 1, 1]),
            of_kernel(1_000_000_030, 4, 7, &[3]),
            of_kernel(1_000_000_050, 1, 7, &[3, 0, 4096, 8192]),
            of_kernel(1_000_000_060, 2, 7, &[100]),
            of_kernel(1_000_000_070, 1, 7, &[3, 0, 4096, 8192]),
            of_kernel(1_000_000_080, 2, 7, &[-5_i64 as u64]),
            of_kernel(1_000_000_090, 1, 7, &[3, 0, 4096, 8192]),
        ]);
        assert_eq!(
            found,
            [
                "7 1.000000010 openat(AT_FDCWD, \"f\", 0) = 3 <0.000000020>",
                "7 1.000000010 fstat(3, {st_size=99}) = 0",
                "7 1.000000050 pread64(3, 4096, 8192) = 100 <0.000000010>",
            ]
        );
        assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Unfinished, 1)]);
    }

    #[test]
    fn nothing_is_said_of_a_file_whose_path_is_unknown() {
        let open = |text| {
            let events = vec![of_kernel(10, 3, 7, &[DIRECTORY, 1, 0, 0]), text, of_kernel(30, 4, 7, &[3])];
            lines(events).0
        };
        assert_eq!(open(path(11, None)), ["7 0.000000010 close(3) = 0"]);
        // That of another thread is not taken for it.
        let other = (11, Event { thread: 8, said: path(11, Some("g")).1.said });
        assert_eq!(open(other), ["7 0.000000010 close(3) = 0"]);
        // An end without a begin.
        assert_eq!(lines(vec![of_kernel(30, 2, 7, &[3])]).0, [""; 0]);
    }

    #[test]
    fn requests_of_io_uring_are_lines_when_they_end() {
        let submit = |request, opcode, flags| Seen::Submit {
            request,
            opcode,
            flags,
            descriptor: 3,
            offset_bytes: u64::MAX,
            length_bytes: 4096,
        };
        let (found, losses) = lines(vec![
            seen(10, submit(1, 22, 0)),
            seen(20, submit(2, 3, 0)),
            seen(30, submit(3, 23, FIXED_FILE)),
            seen(40, submit(4, 23, 0)),
            (50, Event { thread: 99, said: Said::Seen(Seen::Complete { request: 2, result: 0 }) }),
            seen(60, Seen::Complete { request: 1, result: 512 }),
            seen(70, Seen::Complete { request: 3, result: 4096 }),
            seen(80, Seen::Complete { request: 5, result: 4096 }),
        ]);
        assert_eq!(
            found,
            [
                "7 0.000000020 fsync(3) = 0 <0.000000030>",
                "7 0.000000010 pread64(3, 4096, -1) = 512 <0.000000050>",
            ]
        );
        assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::UnknownDescriptor, 1), (Loss::Incomplete, 1)]);
    }
}
