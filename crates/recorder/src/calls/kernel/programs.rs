//! Programs in the kernel that look at what calls point to: paths, pairs of descriptors, control blocks of
//! `io_submit`, requests of io_uring, and the size of a file that was opened. An event has but the address.
//!
//! An event calls a program for every process: those that are not followed are left out at its begin, and
//! cannot fill the queues. Ends of requests of io_uring are of all, and are left out later
//! ([`super::threads`]).

use super::event::{EXEC, EXIT, Event, FORK, Said, Seen};
use super::shapes::SHAPES;
use crate::bpf::{Assembler, Attached, Map, Register, Types, Width, helper};
use crate::tracefs::{Instance, field, fields, id};
use Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};

/// Paths of this length and longer ones are not known.
const PATH_BYTES_MAX: i32 = 1024;
/// Where a path is in its record: after the time, the thread, its length and the flags of `open_how`.
const PATH_AT: usize = 32;
const PATH_RECORD_BYTES: usize = PATH_AT + PATH_BYTES_MAX as usize;
/// Paths that may wait for a round of reading.
const PATHS: u32 = 4096;

/// Time, thread, kind and four numbers.
const RECORD_WORDS: usize = 7;
const RECORD_BYTES: usize = RECORD_WORDS * 8;
/// Where a record is built, from the end of the stack on.
const RECORD_AT: i16 = -64;
const RECORDS: u32 = 1 << 16;
/// Where a key and a value are built.
const KEY_AT: i16 = -72;
const VALUE_AT: i16 = -80;
const LONG_VALUE_AT: i16 = -96;

/// Threads that are followed at a time.
const THREADS: u32 = 1 << 16;
/// Calls that may be waiting at a time, to be looked at again when they end.
const PAIRS: u32 = 4096;
/// Control blocks of one call that are seen.
pub const BLOCKS_MAX: i32 = 128;

const OPENED: i32 = 1;
const PAIR: i32 = 2;
const BLOCK: i32 = 3;
const SUBMIT: i32 = 4;
const COMPLETE: i32 = 5;

/// Where the kernel has the number that a call returns (`events/syscalls/sys_exit_*/format`).
const RESULT_AT: i16 = 16;

/// The programs, at work.
pub struct Programs {
    paths: Map,
    records: Map,
    lost: Map,
    /// The threads that are followed.
    followed: Map,
    /// Addresses of pairs by thread.
    pairs: Map,
    /// Addresses of paths that were not in memory when the call began, and when that was, by thread.
    absent: Map,
    scratch: Map,
    attached: Vec<Attached>,
    /// Whether requests of io_uring are seen.
    pub sees_rings: bool,
}

fn made(map: std::io::Result<Map>) -> Result<Map, String> {
    map.map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => {
            "BPF is not permitted: only root may load programs, and not while the kernel is locked down"
                .to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no BPF (CONFIG_BPF_SYSCALL)".to_owned(),
        _ => format!("make a map for BPF programs: {error}"),
    })
}

impl Programs {
    /// Puts the programs to work, at the events that `instance` has.
    pub fn begin(instance: &Instance) -> Result<Self, String> {
        let mut programs = Self {
            paths: made(Map::queue(PATH_RECORD_BYTES as u32, PATHS))?,
            records: made(Map::queue(RECORD_BYTES as u32, RECORDS))?,
            lost: made(Map::counter())?,
            followed: made(Map::hash(8, THREADS))?,
            pairs: made(Map::hash(8, PAIRS))?,
            absent: made(Map::hash(16, PAIRS))?,
            scratch: made(Map::scratch(PATH_RECORD_BYTES as u32))?,
            attached: Vec::new(),
            sees_rings: false,
        };
        programs.attach(instance, FORK, Self::forked)?;
        programs.attach(instance, EXEC, Self::executed)?;
        programs.attach(instance, EXIT, |programs, _| Some(programs.ended()))?;
        let types = Types::of_kernel();
        for shape in SHAPES {
            let enter = format!("syscalls/sys_enter_{}", shape.event);
            let exit = format!("syscalls/sys_exit_{}", shape.event);
            if !instance.has(&enter) {
                continue;
            }
            if shape.has_path() {
                programs.attach(instance, &enter, |programs, format| programs.path(format))?;
            }
            // By the end of a call, the kernel has brought its path into memory.
            if shape.has_path() && shape.event != "openat2" {
                programs.attach(instance, &exit, |programs, _| Some(programs.path_again()))?;
            }
            if let Some(pair) = shape.pair() {
                programs.attach(instance, &enter, |programs, format| programs.pair_begins(format, pair))?;
                programs.attach(instance, &exit, |programs, _| Some(programs.pair_ends()))?;
            }
            if shape.event == "io_submit" {
                programs.attach(instance, &enter, |programs, format| programs.blocks(format))?;
            }
            // Without the size, bytes appended to the file have no known place, which is counted.
            if let Some(types) = types.as_ref().filter(|_| shape.opens()) {
                programs.attach(instance, &exit, |programs, _| programs.opened(types))?;
            }
        }
        let [submit, complete] = ["submit_req", "complete"].map(|event| format!("io_uring/io_uring_{event}"));
        if let Some(types) = types.filter(|_| instance.has(&submit) && instance.has(&complete)) {
            let ends = programs.attach(instance, &complete, |programs, format| programs.completed(format));
            let begins =
                programs.attach(instance, &submit, |programs, format| programs.submitted(format, &types));
            programs.sees_rings = ends.is_ok() && begins.is_ok();
        }
        Ok(programs)
    }

    fn attach(
        &mut self,
        instance: &Instance,
        event: &str,
        program: impl FnOnce(&Self, &str) -> Option<Assembler>,
    ) -> Result<(), String> {
        let format = instance.format(event)?;
        let unknown = || format!("the event {event} has other fields than those that are known");
        let code = program(self, &format).ok_or_else(unknown)?.finish();
        self.attached.push(Attached::new(&code, id(&format).ok_or_else(unknown)?)?);
        Ok(())
    }

    /// Follows a thread, and those that it makes, from now on.
    pub fn follow(&self, thread: u32) -> std::io::Result<()> {
        self.followed.insert(thread, 1)
    }

    /// A program that ends unless its thread is followed. `R1` is its event again.
    fn of_followed(&self) -> Assembler {
        let mut code = Assembler::default();
        code.copy(R6, R1);
        Self::thread_key(&mut code);
        Self::with_key(&mut code, &self.followed, helper::MAP_LOOKUP);
        code.end_if_zero(R0);
        code.copy(R1, R6);
        code
    }

    /// Calls a function of a map, with the key on the stack.
    fn with_key(code: &mut Assembler, map: &Map, function: i32) {
        code.load_map(R1, map.number());
        code.copy(R2, R10);
        code.add(R2, KEY_AT.into());
        code.call(function);
    }

    /// A thread makes another one, which is followed, too.
    fn forked(&self, format: &str) -> Option<Assembler> {
        let child = i16::try_from(field(format, "pid")?.offset).ok()?;
        let mut code = self.of_followed();
        code.load(Width::Four, R7, R1, child);
        self.add(&mut code, R7);
        Some(code)
    }

    /// A thread that begins a program gets the number of its process.
    fn executed(&self, format: &str) -> Option<Assembler> {
        let at = |name: &str| i16::try_from(field(format, name)?.offset).ok();
        let (before, now) = (at("old_pid")?, at("pid")?);
        let mut code = Assembler::default();
        code.load(Width::Four, R7, R1, now);
        code.load(Width::Four, R8, R1, before);
        code.store_number(R10, KEY_AT, 0);
        code.store_four(R10, KEY_AT, R8);
        Self::with_key(&mut code, &self.followed, helper::MAP_DELETE);
        code.end_unless_zero(R0);
        self.add(&mut code, R7);
        Some(code)
    }

    fn ended(&self) -> Assembler {
        let mut code = Assembler::default();
        Self::thread_key(&mut code);
        Self::with_key(&mut code, &self.followed, helper::MAP_DELETE);
        code
    }

    /// Follows the thread in a register; what it does is lost if that fails.
    fn add(&self, code: &mut Assembler, thread: Register) {
        code.store_number(R10, KEY_AT, 0);
        code.store_four(R10, KEY_AT, thread);
        code.store_number(R10, VALUE_AT, 1);
        Self::update(code, &self.followed, VALUE_AT);
        self.count_failure(code);
    }

    /// Puts the value on the stack at `value` at the key on the stack.
    fn update(code: &mut Assembler, map: &Map, value: i16) {
        code.load_map(R1, map.number());
        code.copy(R2, R10);
        code.add(R2, KEY_AT.into());
        code.copy(R3, R10);
        code.add(R3, value.into());
        code.set(Register::R4, 0);
        code.call(helper::MAP_UPDATE);
    }

    /// Pushes the value at `value` to a queue, or counts it as lost.
    fn push(&self, code: &mut Assembler, queue: &Map, value: Register) {
        code.copy(R2, value);
        code.load_map(R1, queue.number());
        code.set(R3, 0);
        code.call(helper::MAP_PUSH);
        self.count_failure(code);
    }

    /// Counts a record as lost if the last call has failed.
    fn count_failure(&self, code: &mut Assembler) {
        code.unless_zero(R0, |code| {
            code.store_number(R10, KEY_AT, 0);
            Self::with_key(code, &self.lost, helper::MAP_LOOKUP);
            code.unless_zero(R0, |code| {
                code.set(R1, 1);
                code.add_atomically(R0, R1);
            });
        });
    }

    /// Begins a record on the stack.
    fn record(code: &mut Assembler, kind: i32) {
        code.call(helper::KTIME_GET_NS);
        code.store(R10, RECORD_AT, R0);
        code.call(helper::GET_CURRENT_PID_TGID);
        code.store(R10, RECORD_AT + 8, R0);
        code.store_number(R10, RECORD_AT + 16, kind);
        for word in 3..RECORD_WORDS as i16 {
            code.store_number(R10, RECORD_AT + 8 * word, 0);
        }
    }

    fn push_record(&self, code: &mut Assembler) {
        code.copy(R2, R10);
        code.add(R2, RECORD_AT.into());
        code.copy(R9, R2);
        self.push(code, &self.records, R9);
    }

    /// Reads `bytes` bytes at `from + offset` to the stack at `to`, in the kernel or in the program's memory.
    fn read(code: &mut Assembler, function: i32, from: Register, offset: i32, to: i16, bytes: i32) {
        code.copy(R3, from);
        code.add(R3, offset);
        code.copy(R1, R10);
        code.add(R1, to.into());
        code.set(R2, bytes);
        code.call(function);
    }

    fn path(&self, format: &str) -> Option<Assembler> {
        let at = |name: &str| i16::try_from(field(format, name)?.offset).ok();
        let text = at("filename").or_else(|| at("pathname"))?;
        let mut code = self.of_followed();
        code.copy(R6, R1);
        code.load(Width::Eight, R7, R6, text);
        self.scratch(&mut code);
        code.call(helper::KTIME_GET_NS);
        code.store(R8, 0, R0);
        code.call(helper::GET_CURRENT_PID_TGID);
        code.store(R8, 8, R0);
        code.store_number(R8, 24, 0);
        let how = at("how");
        if let Some(how) = how {
            code.load(Width::Eight, R3, R6, how);
            code.copy(R1, R8);
            code.add(R1, 24);
            code.set(R2, 8);
            code.call(helper::PROBE_READ_USER);
        }
        Self::read_path(&mut code);
        if how.is_none() {
            code.copy(R9, R0);
            code.shift_right(R9, 63);
            code.unless_zero(R9, |code| {
                code.store(R10, LONG_VALUE_AT, R7);
                code.load(Width::Eight, R0, R8, 0);
                code.store(R10, LONG_VALUE_AT + 8, R0);
                self.remember(code, &self.absent, LONG_VALUE_AT);
            });
            code.end_unless_zero(R9);
        }
        self.push(&mut code, &self.paths, R8);
        Some(code)
    }

    /// `R8 =` this processor's scratch memory.
    fn scratch(&self, code: &mut Assembler) {
        code.store_number(R10, KEY_AT, 0);
        Self::with_key(code, &self.scratch, helper::MAP_LOOKUP);
        code.end_if_zero(R0);
        code.copy(R8, R0);
    }

    /// Reads the path at `R7` into the record at `R8`.
    fn read_path(code: &mut Assembler) {
        code.copy(R1, R8);
        code.add(R1, PATH_AT as i32);
        code.set(R2, PATH_BYTES_MAX);
        code.copy(R3, R7);
        code.call(helper::PROBE_READ_USER_STRING);
        code.store(R8, 16, R0);
    }

    /// Keeps the value on the stack at `value` for this thread.
    fn remember(&self, code: &mut Assembler, map: &Map, value: i16) {
        Self::thread_key(code);
        Self::update(code, map, value);
    }

    /// `R7 =` the value of this thread, and `R9 =` the one after it in a long value; forgets them.
    fn recall(code: &mut Assembler, map: &Map, is_long: bool) {
        Self::thread_key(code);
        Self::with_key(code, map, helper::MAP_LOOKUP);
        code.end_if_zero(R0);
        code.load(Width::Eight, R7, R0, 0);
        if is_long {
            code.load(Width::Eight, R9, R0, 8);
        }
        Self::with_key(code, map, helper::MAP_DELETE);
    }

    /// Reads a path at the end of a call that could not be read at its begin, which is its time.
    fn path_again(&self) -> Assembler {
        let mut code = self.of_followed();
        Self::recall(&mut code, &self.absent, true);
        self.scratch(&mut code);
        code.store(R8, 0, R9);
        code.call(helper::GET_CURRENT_PID_TGID);
        code.store(R8, 8, R0);
        code.store_number(R8, 24, 0);
        Self::read_path(&mut code);
        self.push(&mut code, &self.paths, R8);
        code
    }

    fn thread_key(code: &mut Assembler) {
        code.call(helper::GET_CURRENT_PID_TGID);
        code.store_number(R10, KEY_AT, 0);
        code.store_four(R10, KEY_AT, R0);
    }

    fn pair_begins(&self, format: &str, argument: usize) -> Option<Assembler> {
        let mut values =
            fields(format).filter(|(name, field)| !name.starts_with("common_") && field.size == 8);
        let at = i16::try_from(values.nth(argument)?.1.offset).ok()?;
        let mut code = self.of_followed();
        code.load(Width::Eight, R7, R1, at);
        code.store(R10, VALUE_AT, R7);
        self.remember(&mut code, &self.pairs, VALUE_AT);
        Some(code)
    }

    fn pair_ends(&self) -> Assembler {
        let mut code = self.of_followed();
        code.load(Width::Eight, R6, R1, RESULT_AT);
        Self::recall(&mut code, &self.pairs, false);
        code.end_unless_zero(R6);
        Self::record(&mut code, PAIR);
        Self::read(&mut code, helper::PROBE_READ_USER, R7, 0, RECORD_AT + 24, 8);
        code.end_unless_zero(R0);
        self.push_record(&mut code);
        code
    }

    /// From the running thread to the node of the file that its call has opened.
    fn opened(&self, types: &Types) -> Option<Assembler> {
        let mut code = self.of_followed();
        code.load(Width::Eight, R6, R1, RESULT_AT);
        code.end_if_at_most(R6, -1);
        Self::record(&mut code, OPENED);
        code.store(R10, RECORD_AT + 24, R6);
        code.call(helper::GET_CURRENT_TASK);
        code.copy(R7, R0);
        let steps = [("task_struct", "files"), ("files_struct", "fdt"), ("fdtable", "fd")];
        let follow = |code: &mut Assembler, offset: i32| {
            Self::read(code, helper::PROBE_READ_KERNEL, R7, offset, VALUE_AT, 8);
            code.end_unless_zero(R0);
            code.load(Width::Eight, R7, R10, VALUE_AT);
        };
        for (structure, field) in steps {
            follow(&mut code, types.offset(structure, field)?);
        }
        code.shift_left(R6, 3);
        code.add_register(R7, R6);
        follow(&mut code, 0);
        follow(&mut code, types.offset("file", "f_inode")?);
        let (mode, size) = (types.offset("inode", "i_mode")?, types.offset("inode", "i_size")?);
        Self::read(&mut code, helper::PROBE_READ_KERNEL, R7, mode, RECORD_AT + 32, 2);
        Self::read(&mut code, helper::PROBE_READ_KERNEL, R7, size, RECORD_AT + 40, 8);
        code.end_unless_zero(R0);
        self.push_record(&mut code);
        Some(code)
    }

    /// The control blocks (`struct iocb` of linux/aio_abi.h) that an array points to.
    fn blocks(&self, format: &str) -> Option<Assembler> {
        let at = |name: &str| i16::try_from(field(format, name)?.offset).ok();
        let (count, array) = (at("nr")?, at("iocbpp")?);
        let mut code = self.of_followed();
        code.load(Width::Eight, R6, R1, count);
        code.load(Width::Eight, R7, R1, array);
        for number in 0..BLOCKS_MAX {
            code.end_if_at_most(R6, number);
            Self::record(&mut code, BLOCK);
            Self::read(&mut code, helper::PROBE_READ_USER, R7, number * 8, VALUE_AT, 8);
            code.end_unless_zero(R0);
            code.load(Width::Eight, R8, R10, VALUE_AT);
            // Opcode, priority and descriptor; address; length; offset.
            let words = [(16, RECORD_AT + 24), (32, RECORD_AT + 32), (40, RECORD_AT + 40), (24, VALUE_AT)];
            for (offset, to) in words {
                Self::read(&mut code, helper::PROBE_READ_USER, R8, offset, to, 8);
                code.end_unless_zero(R0);
            }
            // The length of the first part of a vector; nothing that can be read if it is none.
            code.load(Width::Eight, R8, R10, VALUE_AT);
            Self::read(&mut code, helper::PROBE_READ_USER, R8, 8, RECORD_AT + 48, 8);
            self.push_record(&mut code);
        }
        Some(code)
    }

    /// A request of io_uring, whose entry the kernel has taken over by then (`struct io_rw`).
    fn submitted(&self, format: &str, types: &Types) -> Option<Assembler> {
        let at = |name: &str| i16::try_from(field(format, name)?.offset).ok();
        let (request, opcode, flags) = (at("req")?, at("opcode")?, at("flags")?);
        let position = types.offset("io_rw", "kiocb")? + types.offset("kiocb", "ki_pos")?;
        let length = types.offset("io_rw", "len")?;
        let descriptor = types.offset("io_kiocb", "cqe")? + types.offset("io_cqe", "fd")?;
        let mut code = self.of_followed();
        code.copy(R6, R1);
        Self::record(&mut code, SUBMIT);
        code.load(Width::Eight, R7, R6, request);
        code.store(R10, RECORD_AT + 24, R7);
        code.load(Width::One, R8, R6, opcode);
        code.load(Width::Four, R9, R6, flags);
        code.shift_left(R9, 8);
        code.add_register(R9, R8);
        code.store(R10, RECORD_AT + 32, R9);
        Self::read(&mut code, helper::PROBE_READ_KERNEL, R7, position, RECORD_AT + 40, 8);
        Self::read(&mut code, helper::PROBE_READ_KERNEL, R7, length, RECORD_AT + 48, 4);
        Self::read(&mut code, helper::PROBE_READ_KERNEL, R7, descriptor, RECORD_AT + 52, 4);
        code.end_unless_zero(R0);
        self.push_record(&mut code);
        Some(code)
    }

    /// The end of a request of io_uring: often in a thread of the kernel's, so that it is seen of all.
    fn completed(&self, format: &str) -> Option<Assembler> {
        let at = |name: &str| i16::try_from(field(format, name)?.offset).ok();
        let (request, result) = (at("req")?, at("res")?);
        let mut code = Assembler::default();
        code.copy(R6, R1);
        Self::record(&mut code, COMPLETE);
        code.load(Width::Eight, R7, R6, request);
        code.store(R10, RECORD_AT + 24, R7);
        code.load(Width::Four, R7, R6, result);
        code.store(R10, RECORD_AT + 32, R7);
        self.push_record(&mut code);
        Some(code)
    }

    /// Hands everything that was seen before the call to `take`, with its time: at most as much as the queues
    /// hold, as a program may fill them faster than they are emptied.
    pub fn take(&self, mut take: impl FnMut(u64, Event)) -> std::io::Result<()> {
        let mut path = vec![0; PATH_RECORD_BYTES];
        for _ in 0..PATHS {
            if !self.paths.take(&mut path)? {
                break;
            }
            path_record(&path).into_iter().for_each(|(time, event)| take(time, event));
        }
        let mut bytes = [0; RECORD_BYTES];
        for _ in 0..RECORDS {
            if !self.records.take(&mut bytes)? {
                break;
            }
            record(&bytes).into_iter().for_each(|(time, event)| take(time, event));
        }
        Ok(())
    }

    /// How many records were lost since the begin.
    pub fn lost(&self) -> u64 {
        self.lost.count().unwrap_or(0)
    }
}

fn word(bytes: &[u8], number: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(number * 8..number * 8 + 8)?.try_into().ok()?))
}

fn path_record(bytes: &[u8]) -> Option<(u64, Event)> {
    let length = usize::try_from(word(bytes, 2)? as i64).ok();
    let whole = length.filter(|length| *length < PATH_BYTES_MAX as usize);
    let text = whole.and_then(|length| bytes.get(PATH_AT..PATH_AT + length.checked_sub(1)?));
    let text = text.map(|text| String::from_utf8_lossy(text).into_owned().into_boxed_str());
    let seen = Seen::Path { text, pointed: word(bytes, 3)? };
    Some((word(bytes, 0)?, Event { thread: word(bytes, 1)? as u32, said: Said::Seen(seen) }))
}

fn record(bytes: &[u8]) -> Option<(u64, Event)> {
    let [a, b, c, d] = [word(bytes, 3)?, word(bytes, 4)?, word(bytes, 5)?, word(bytes, 6)?];
    // The halves of a number, the first in memory first.
    let halves = |number: u64| {
        let [a, b, c, d, e, f, g, h] = number.to_ne_bytes();
        [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
    };
    let seen = match word(bytes, 2)? as i32 {
        OPENED => {
            let [low, high, ..] = b.to_ne_bytes();
            let mode = u16::from_ne_bytes([low, high]).into();
            Seen::Opened { descriptor: a as i32, mode, size_bytes: c }
        }
        PAIR => Seen::Pair(halves(a).map(|half| half as i32)),
        BLOCK => {
            let [low, high, ..] = a.to_ne_bytes();
            let opcode = u16::from_ne_bytes([low, high]);
            let [_, descriptor] = halves(a);
            Seen::Block { opcode, descriptor: descriptor as i32, length: b, offset_bytes: c, vector_bytes: d }
        }
        SUBMIT => {
            let [length_bytes, descriptor] = halves(d);
            let (opcode, flags, descriptor) = (b as u8, (b >> 8) as u32, descriptor as i32);
            Seen::Submit { request: a, opcode, flags, descriptor, offset_bytes: c, length_bytes }
        }
        COMPLETE => Seen::Complete { request: a, result: b as i32 },
        _ => return None,
    };
    Some((word(bytes, 0)?, Event { thread: word(bytes, 1)? as u32, said: Said::Seen(seen) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn paths_that_are_too_long_or_not_there_are_unknown() {
        let path = |length: i64, text: &[u8]| {
            let mut bytes = words(&[5, 77 | 76 << 32, length as u64, 9]);
            bytes.extend(text);
            bytes.resize(PATH_RECORD_BYTES, 0);
            path_record(&bytes).map(|(time_ns, event)| (time_ns, event.thread, event.said))
        };
        let seen = |text: Option<&str>| Said::Seen(Seen::Path { text: text.map(Into::into), pointed: 9 });
        assert_eq!(path(3, b"ab\0"), Some((5, 77, seen(Some("ab")))));
        assert_eq!(path(-14, b""), Some((5, 77, seen(None))));
        assert_eq!(path(0, b""), Some((5, 77, seen(None))));
        assert_eq!(path(PATH_BYTES_MAX.into(), &[b'a'; 1024]), Some((5, 77, seen(None))));
    }

    #[test]
    fn records_are_read_and_cut_off_ones_are_none() {
        let halves = |low: u32, high: u32| {
            u64::from_ne_bytes([low.to_ne_bytes(), high.to_ne_bytes()].concat().try_into().unwrap())
        };
        let whole = words(&[5, 77, SUBMIT as u64, 0xabc, 1 << 8 | 22, 8192, halves(4096, 3)]);
        let seen = Seen::Submit {
            request: 0xabc,
            opcode: 22,
            flags: 1,
            descriptor: 3,
            offset_bytes: 8192,
            length_bytes: 4096,
        };
        assert_eq!(record(&whole), Some((5, Event { thread: 77, said: Said::Seen(seen) })));
        for length in 0..whole.len() {
            assert_eq!(record(&whole[..length]), None);
            assert_eq!(path_record(&whole[..length.min(31)]), None);
        }
        for kind in 0..8 {
            record(&words(&[u64::MAX, u64::MAX, kind, u64::MAX, u64::MAX, u64::MAX, u64::MAX]));
        }
    }
}
