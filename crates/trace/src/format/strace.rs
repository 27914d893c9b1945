//! What `strace` prints of one process: `[PID] [SECONDS] CALL(ARGUMENTS) = RESULT`. Reads and writes have the
//! bytes that they returned, at the offset that the process had reached in the file.
//!
//! A process is followed by its file descriptors: `open` gives them names, `read`, `write` and `lseek` move
//! their offsets, `close` forgets them. Descriptors of threads are one table; a trace of several processes
//! must be split by `strace -ff`. Calls that were interrupted by other threads' lines are put together again.

use std::collections::HashMap;

use super::Line;
use crate::{Address, NameId, Names, Operation, Request};

const EXPECTED: &str = "a system call with its result, as strace prints it";
const UNFINISHED: &str = "<unfinished ...>";

/// Reads lines; knows the process's open files.
#[derive(Default)]
pub(crate) struct Calls {
    open: HashMap<u32, OpenFile>,
    unfinished: HashMap<u32, (u64, String)>,
}

struct OpenFile {
    name: NameId,
    offset_bytes: u64,
}

struct Call<'a> {
    name: &'a str,
    arguments: &'a str,
    result: u64,
}

/// The process, the time in nanoseconds, and the rest of a line.
fn prefix(text: &str) -> (Option<u32>, u64, &str) {
    let (process, text) = match text.strip_prefix("[pid ").and_then(|text| text.split_once(']')) {
        Some((process, rest)) => (process.trim().parse().ok(), rest.trim_start()),
        None => match text.split_once(' ').map(|(word, rest)| (word.parse().ok(), rest)) {
            Some((Some(process), rest)) => (Some(process), rest.trim_start()),
            _ => (None, text),
        },
    };
    let time = text.split_once(' ').and_then(|(word, rest)| Some((nanoseconds(word)?, rest.trim_start())));
    let (time_ns, text) = time.unwrap_or((0, text));
    (process, time_ns, text)
}

/// Seconds with six digits after the point, as of `strace -ttt`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_fraction = fraction.len() == 6 && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let fraction: u64 = is_fraction.then(|| fraction.parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction * 1000)
}

pub(crate) fn is_line(text: &str) -> bool {
    let text = prefix(text).2;
    let name = text.split('(').next().unwrap_or_default();
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name && !name.is_empty() && text.contains('(') && (text.contains(") ") || text.ends_with(UNFINISHED))
}

/// A finished call that has not failed.
fn call(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let digits = result.trim_start().split(|character: char| !character.is_ascii_digit()).next()?;
    Some(Call { name, arguments, result: digits.parse().ok()? })
}

/// The number with which the arguments begin, without the path that `strace -y` puts behind it.
fn descriptor(arguments: &str) -> Option<u32> {
    arguments.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// The first quoted argument.
fn path(arguments: &str) -> Option<&str> {
    arguments.split('"').nth(1)
}

impl Calls {
    pub(crate) fn line(&mut self, text: &str, names: &mut Names) -> Line {
        let (process, time_ns, text) = prefix(text);
        if text.starts_with("+++") || text.starts_with("---") || text.starts_with("strace: ") {
            return Line::Other;
        }
        let key = process.unwrap_or(0);
        if let Some(begin) = text.strip_suffix(UNFINISHED) {
            self.unfinished.insert(key, (time_ns, begin.trim_end().to_owned()));
            return Line::Other;
        }
        let whole = match text.strip_prefix("<... ").and_then(|text| text.split_once(" resumed>")) {
            Some((_, end)) => self.unfinished.remove(&key).map(|(time_ns, begin)| (time_ns, begin + end)),
            None if is_line(text) => Some((time_ns, text.to_owned())),
            None => return Line::Wrong(EXPECTED),
        };
        let Some((time_ns, whole)) = whole else { return Line::Other };
        let request = call(&whole).and_then(|call| self.call(&call, names));
        request.map_or(Line::Other, |request| Line::Request(Request { time_ns, process, ..request }))
    }

    fn call(&mut self, call: &Call<'_>, names: &mut Names) -> Option<Request> {
        match call.name {
            "open" | "openat" | "creat" => {
                // Where a file ends is unknown, and so is where appended bytes go: better none than wrong.
                let is_followed = !call.arguments.contains("O_APPEND");
                let name = names.id(path(call.arguments).filter(|_| is_followed)?);
                self.open.insert(u32::try_from(call.result).ok()?, OpenFile { name, offset_bytes: 0 });
                return None;
            }
            "close" => {
                self.open.remove(&descriptor(call.arguments)?);
                return None;
            }
            "lseek" => {
                self.open.get_mut(&descriptor(call.arguments)?)?.offset_bytes = call.result;
                return None;
            }
            _ => {}
        }
        let file = self.open.get_mut(&descriptor(call.arguments)?)?;
        let given = || call.arguments.rsplit(", ").next()?.parse::<u64>().ok();
        let (operation, offset_bytes) = match call.name {
            "pread64" => (Operation::Read, given()?),
            "pwrite64" => (Operation::Write, given()?),
            "read" | "readv" => (Operation::Read, file.offset_bytes),
            "write" | "writev" => (Operation::Write, file.offset_bytes),
            "fsync" | "fdatasync" => (Operation::Flush, 0),
            _ => return None,
        };
        if matches!(call.name, "read" | "readv" | "write" | "writev") {
            file.offset_bytes = file.offset_bytes.saturating_add(call.result);
        }
        Some(Request {
            time_ns: 0,
            operation,
            on_device: None,
            in_file: Some(Address { name: file.name, offset_bytes }),
            length_bytes: if operation == Operation::Flush { 0 } else { call.result },
            process: None,
        })
    }
}
