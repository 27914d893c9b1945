//! The calls `bpf` and `perf_event_open` (linux/bpf.h, linux/perf_event.h).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: i64 = 0;
const MAP_LOOKUP: i64 = 1;
const MAP_UPDATE: i64 = 2;
const PROGRAM_LOAD: i64 = 5;
const MAP_TAKE: i64 = 21;

const HASH: u32 = 1;
const ARRAY: u32 = 2;
const ARRAY_OF_PROCESSORS: u32 = 6;
const QUEUE: u32 = 22;

/// A program at an event of the kernel, which gets its fields.
const TRACEPOINT_PROGRAM: u32 = 5;
/// Functions that read memory are for programs whose licence suits the kernel's.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// `PERF_TYPE_TRACEPOINT`, and the size of the first version of `struct perf_event_attr`.
const TRACEPOINT_EVENT: u32 = 2;
const EVENT_BYTES: u32 = 64;
const SET_PROGRAM: libc::Ioctl = 0x4004_2408_u32 as libc::Ioctl;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Bytes for the reasons of the kernel's verifier.
const REASONS_BYTES: usize = 1 << 16;

/// Arguments of `bpf`, which are a structure of 32 and 64 bits.
#[derive(Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    fn four(mut self, number: u32) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    fn eight(mut self, number: u64) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    /// The address of memory that outlives the call.
    fn at<T>(self, memory: *const T) -> Self {
        self.eight(memory as usize as u64)
    }

    /// # Safety
    /// Each address must be of memory that the command may read or write as far as it does.
    unsafe fn call(mut self, command: i64) -> io::Result<RawFd> {
        self.0.resize(128, 0);
        // SAFETY: the kernel reads as many bytes of arguments as there are; the rest is the caller's promise.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), self.0.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
    }
}

/// Memory of the kernel that programs share with this process.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    value_bytes: usize,
}

impl Map {
    fn new(kind: u32, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Self> {
        let arguments = Arguments::default().four(kind).four(key_bytes).four(value_bytes).four(entries);
        // SAFETY: the command takes numbers; the descriptor that it returns belongs to nothing else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(arguments.call(MAP_CREATE)?) };
        Ok(Self { descriptor, value_bytes: value_bytes as usize })
    }

    /// A queue of values.
    pub fn queue(value_bytes: u32, entries: u32) -> io::Result<Self> {
        Self::new(QUEUE, 0, value_bytes, entries)
    }

    /// Values by keys of four bytes.
    pub fn hash(value_bytes: u32, entries: u32) -> io::Result<Self> {
        Self::new(HASH, 4, value_bytes, entries)
    }

    /// A counter of eight bytes, at key 0.
    pub fn counter() -> io::Result<Self> {
        Self::new(ARRAY, 4, 8, 1)
    }

    /// A value for each processor, at key 0, which only programs use.
    pub fn scratch(value_bytes: u32) -> io::Result<Self> {
        Self::new(ARRAY_OF_PROCESSORS, 4, value_bytes, 1)
    }

    /// Its number in programs.
    pub fn number(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Takes the oldest value of a queue; whether there was one.
    pub fn take(&self, value: &mut [u8]) -> io::Result<bool> {
        match self.call(MAP_TAKE, std::ptr::null(), value) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The counter's value.
    pub fn count(&self) -> io::Result<u64> {
        let mut value = [0; 8];
        let key = 0_u32;
        self.call(MAP_LOOKUP, &raw const key, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }

    /// Puts a value of eight bytes at a key of a hash.
    pub fn insert(&self, key: u32, value: u64) -> io::Result<()> {
        self.call(MAP_UPDATE, &raw const key, &mut value.to_ne_bytes())
    }

    fn call(&self, command: i64, key: *const u32, value: &mut [u8]) -> io::Result<()> {
        if value.len() != self.value_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = self.number() as u32;
        let arguments = Arguments::default().four(map).four(0).at(key).at(value.as_mut_ptr()).eight(0);
        // SAFETY: the key is a number or none, as the map has it, and the value has the map's size.
        unsafe { arguments.call(command) }.map(|_| ())
    }
}

/// A program that runs at an event.
#[derive(Debug)]
pub struct Attached {
    /// Without them the program is gone.
    _program: OwnedFd,
    _event: OwnedFd,
}

impl Attached {
    /// Loads a program, and runs it whenever the event of number `event` occurs.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn new(code: &[u64], event: u64) -> Result<Self, String> {
        let program = load(code)?;
        let opened = open_event(event);
        let opened = opened.map_err(|error| format!("watch an event for a BPF program: {error}"))?;
        // SAFETY: both descriptors are open; the request takes a number.
        if unsafe { libc::ioctl(opened.as_raw_fd(), SET_PROGRAM, program.as_raw_fd()) } != 0 {
            return Err(format!("run a BPF program at an event: {}", io::Error::last_os_error()));
        }
        Ok(Self { _program: program, _event: opened })
    }
}

fn load(code: &[u64]) -> Result<OwnedFd, String> {
    let count = u32::try_from(code.len()).unwrap_or(u32::MAX);
    let begin =
        || Arguments::default().four(TRACEPOINT_PROGRAM).four(count).at(code.as_ptr()).at(LICENCE.as_ptr());
    // SAFETY: the kernel reads `count` instructions of eight bytes and a text that ends in 0.
    let error = match unsafe { begin().call(PROGRAM_LOAD) } {
        // SAFETY: the descriptor is new and belongs to nothing else.
        Ok(program) => return Ok(unsafe { OwnedFd::from_raw_fd(program) }),
        Err(error) => error,
    };
    let mut reasons = vec![0_u8; REASONS_BYTES];
    let again = begin().four(1).four(REASONS_BYTES as u32).at(reasons.as_mut_ptr());
    // SAFETY: as above; the kernel writes no more than the size that is named.
    if let Ok(program) = unsafe { again.call(PROGRAM_LOAD) } {
        // SAFETY: the descriptor is new and belongs to nothing else.
        return Ok(unsafe { OwnedFd::from_raw_fd(program) });
    }
    let text = String::from_utf8_lossy(&reasons);
    let lines: Vec<&str> = text.trim_end_matches('\0').lines().rev().take(3).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    Err(format!("load a BPF program: {error} {}", lines.join("; ")).trim_end().to_owned())
}

fn open_event(event: u64) -> io::Result<OwnedFd> {
    let begin = Arguments::default().four(TRACEPOINT_EVENT).four(EVENT_BYTES).eight(event);
    let Arguments(mut attributes) = begin;
    attributes.resize(EVENT_BYTES as usize, 0);
    // A program runs on all processors, whichever the event was opened for.
    let (process, processor, group) = (-1, 0, -1);
    // SAFETY: the kernel reads as many bytes as the attributes say they have.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            process,
            processor,
            group,
            CLOSE_ON_EXEC,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as RawFd) })
}
