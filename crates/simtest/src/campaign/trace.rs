//! Trace of the events before a crash, line by line.

use std::fmt::Write as _;

use flashgrain_device::Op;

use crate::media::{Choice, Event};
use crate::world::Shape;

/// Lines that people read.
const LINES_MAX: usize = 60;

/// The last of the events, and the fate of those that were `uncertain`, by their numbers.
pub fn trace(shape: &Shape, events: &[Event], uncertain: &[u64], choice: &Choice) -> String {
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        lines.extend(line(shape, event, uncertain, choice));
    }
    let left_out = lines.len().saturating_sub(LINES_MAX);
    let mut text = String::new();
    if left_out > 0 {
        let _ = writeln!(text, "({left_out} earlier lines)");
    }
    lines.iter().skip(left_out).for_each(|line| text.extend([line, "\n"]));
    text
}

fn line(shape: &Shape, event: &Event, uncertain: &[u64], choice: &Choice) -> Option<String> {
    Some(match event {
        Event::Shrunk(bytes) => format!("the drive shrinks to {bytes} bytes"),
        Event::Grown(bytes) => format!("the drive grows to {bytes} bytes"),
        Event::Created => "the store is created".into(),
        Event::Given(commit) => format!("commit {commit} is logged"),
        Event::Acknowledged(commit) => format!("commit {commit} is acknowledged as durable"),
        Event::Flush(number) => format!("{number}: flush"),
        Event::Answered { number, done: true } => format!("{number}: done"),
        Event::Answered { number, done: false } => format!("{number}: failed"),
        Event::Written(number, write) => {
            let kind = match write.op {
                Op::Discard => "discard",
                Op::WriteDsync => "write durably",
                Op::WriteThenFlush => "write and flush",
                _ => "write",
            };
            let place = shape.place(write.offset_bytes);
            let fate = match uncertain.iter().position(|other| other == number) {
                None => "",
                Some(index) => choice.fate(index),
            };
            format!("{number}: {kind} {} bytes, {place}{fate}", write.bytes.len())
        }
    })
}
