//! The output of `strace`: `[PID] [TIME] CALL(ARGUMENTS) = RESULT`. Reads and writes have the bytes that they
//! returned, at the offset that the open file had reached.
//!
//! 1. [`line`] takes a line apart. Calls that other threads' lines have interrupted are put together again.
//! 2. [`descriptors`] follows the descriptors of each process through `open`, `dup`, `fork`, threads and new
//!    programs. The paths that `strace -y` prints win.
//! 3. [`transfer`] makes requests of the calls, and counts missing information as [`Loss`]es.

mod descriptors;
mod line;
mod process;
mod transfer;

use std::collections::{HashMap, VecDeque};

use super::Line;
use crate::{Loss, Losses, Names, Request};
use descriptors::Descriptors;

const EXPECTED: &str = "a system call with its result, as strace prints it";
const UNFINISHED: &str = "<unfinished ...>";

/// Ends of lines of calls whose end is in a later line, or in none.
const ENDS_LATER: [&str; 2] = [UNFINISHED, "<detached ...>"];

/// The begin of the table of `strace -C`, which follows the calls.
const SUMMARY: &str = "% time ";

/// Reads lines; knows the open files of all processes.
#[derive(Default)]
pub(crate) struct Calls {
    descriptors: Descriptors,
    ends: transfer::Ends,
    clock: line::Clock,
    unfinished: HashMap<u32, (u64, String)>,
    /// The begin of a line that a message of strace's own has divided.
    divided: Option<String>,
    /// Requests beyond the first of a line, which `io_submit` brings.
    more: VecDeque<Request>,
    losses: Losses,
}

pub(crate) fn is_line(text: &str) -> bool {
    let rest = line::prefix(text).rest;
    line::is_call(rest) || line::interrupted(rest).is_some()
}

/// Whether a line may stand before the first call.
pub(crate) fn is_aside(text: &str) -> bool {
    line::is_aside(line::prefix(text).rest)
}

impl Calls {
    /// Losses so far.
    pub fn losses(&self) -> Losses {
        let mut losses = self.losses.clone();
        losses.add(Loss::Unfinished, self.unfinished.len() as u64);
        losses
    }

    /// A request of an earlier line that was not yielded yet.
    pub fn waiting(&mut self) -> Option<Request> {
        self.more.pop_front()
    }

    pub fn line(&mut self, text: &str, names: &mut Names) -> Line {
        if text.starts_with("strace: ") {
            return Line::Other;
        }
        if let Some(begin) = line::interrupted(text) {
            self.divided = Some(begin.to_owned());
            return Line::Other;
        }
        let joined = self.divided.take().map(|begin| begin + text);
        let line::Prefix { process, time, rest: text } = line::prefix(joined.as_deref().unwrap_or(text));
        let time_ns = self.clock.next(time);
        let key = process.unwrap_or(0);
        if text.starts_with("+++") {
            self.unfinished.remove(&key);
            self.descriptors.end(key);
        }
        if line::is_aside(text) {
            return Line::Other;
        }
        if text.starts_with(SUMMARY) {
            return Line::End;
        }
        if let Some(begin) = ENDS_LATER.iter().find_map(|end| text.strip_suffix(end)) {
            self.unfinished.insert(key, (time_ns, begin.trim_end().to_owned()));
            return Line::Other;
        }
        if let Some((_, end)) = text.strip_prefix("<... ").and_then(|text| text.split_once(" resumed>")) {
            return match self.unfinished.remove(&key) {
                Some((time_ns, begin)) => self.whole(process, time_ns, &(begin + end), names),
                None => Line::Other,
            };
        }
        if !line::is_call(text) {
            return Line::Wrong(EXPECTED);
        }
        self.whole(process, time_ns, text, names)
    }

    fn whole(&mut self, process: Option<u32>, time_ns: u64, text: &str, names: &mut Names) -> Line {
        let Some(call) = line::call(text) else { return Line::Other };
        let first = self.more.len();
        self.call(process.unwrap_or(0), &call, names);
        for request in self.more.range_mut(first..) {
            (request.time_ns, request.process, request.latency_ns) = (time_ns, process, call.took_ns);
        }
        self.more.pop_front().map_or(Line::Other, Line::Request)
    }
}
