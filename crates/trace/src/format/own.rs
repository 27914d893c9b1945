//! Flashgrain's own format: text, a record a line, so that a truncated file loses its last record only.
//!
//! ```text
//! flashgrain trace 1
//! note TEXT                               what people should know
//! name NUMBER NAME                        the name of a file or device, before its first use
//! R|W|F|D TIME PROCESS FILE DEVICE LENGTH LATENCY    a system call
//! r|w|f|d TIME PROCESS FILE DEVICE LENGTH LATENCY    the same at a drive
//! loss WORD COUNT                         what is missing
//! end                                     the last line
//! ```
//!
//! FILE and DEVICE are `NUMBER:OFFSET`; times are nanoseconds; an unknown value is `-`. In names and notes, a
//! backslash and control characters are written as `\\` and `\xHH`.

use std::io::{self, Write};

use super::Line;
use crate::{Address, Layer, Loss, Losses, NameId, Names, Operation, Request};

/// The first line.
pub(crate) const HEAD: &str = "flashgrain trace 1";

/// The version that a trace which begins with `head` says it has, if it is one of Flashgrain's.
pub(crate) fn version(head: &[u8]) -> Option<u64> {
    let first = head.split(|byte| *byte == b'\n').next()?;
    let (name, version) = str::from_utf8(first).ok()?.trim().rsplit_once(' ')?;
    (name == "flashgrain trace").then(|| version.parse().ok())?
}

const EXPECTED: &str = "a note, a name, a request of seven columns, a loss, or the end";

/// The most notes that are kept.
const NOTES_MAX: usize = 1000;

/// Reads lines.
#[derive(Default)]
pub(crate) struct Records {
    names: Vec<NameId>,
    pub losses: Losses,
    pub notes: Vec<String>,
    /// Whether the last line has come.
    pub is_complete: bool,
}

impl Records {
    pub fn line(&mut self, text: &str, names: &mut Names) -> Line {
        if text == HEAD {
            return Line::Other;
        }
        if text == "end" {
            self.is_complete = true;
            return Line::End;
        }
        let known = match text.split_once(' ') {
            Some(("note", text)) => {
                if self.notes.len() < NOTES_MAX {
                    self.notes.push(unescaped(text));
                }
                Some(Line::Other)
            }
            Some(("name", rest)) => self.name(rest, names).map(|()| Line::Other),
            Some(("loss", rest)) => self.loss(rest).map(|()| Line::Other),
            Some((word, rest)) => self.request(word, rest).map(Line::Request),
            None => None,
        };
        known.unwrap_or(Line::Wrong(EXPECTED))
    }

    /// Numbers rise from 0 on, without gaps.
    fn name(&mut self, text: &str, names: &mut Names) -> Option<()> {
        let (number, name) = text.split_once(' ')?;
        (number.parse() == Ok(self.names.len())).then(|| self.names.push(names.id(&unescaped(name))))
    }

    fn loss(&mut self, text: &str) -> Option<()> {
        let (word, count) = text.split_once(' ')?;
        let count = count.parse().ok()?;
        match Loss::of_word(word) {
            Some(loss) => self.losses.add(loss, count),
            // A newer Flashgrain may know more kinds.
            None => self
                .notes
                .push(format!("{count} losses of the kind `{word}`, which this version does not know")),
        }
        Some(())
    }

    fn request(&self, word: &str, rest: &str) -> Option<Request> {
        let (operation, layer) = match word {
            "R" => (Operation::Read, Layer::File),
            "W" => (Operation::Write, Layer::File),
            "F" => (Operation::Flush, Layer::File),
            "D" => (Operation::Discard, Layer::File),
            "r" => (Operation::Read, Layer::Drive),
            "w" => (Operation::Write, Layer::Drive),
            "f" => (Operation::Flush, Layer::Drive),
            "d" => (Operation::Discard, Layer::Drive),
            _ => return None,
        };
        let mut columns = rest.split(' ');
        let request = Request {
            time_ns: columns.next()?.parse().ok()?,
            layer,
            operation,
            process: known(columns.next()?, |text| text.parse().ok())?,
            in_file: known(columns.next()?, |text| self.address(text))?,
            on_device: known(columns.next()?, |text| self.address(text))?,
            length_bytes: columns.next()?.parse().ok()?,
            latency_ns: known(columns.next()?, |text| text.parse().ok())?,
        };
        columns.next().is_none().then_some(request)
    }

    fn address(&self, text: &str) -> Option<Address> {
        let (number, offset) = text.split_once(':')?;
        let name = *self.names.get(number.parse::<usize>().ok()?)?;
        Some(Address { name, offset_bytes: offset.parse().ok()? })
    }
}

/// A column: `Some(None)` if it says that nothing is known, `None` if it is wrong.
fn known<T>(column: &str, value: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    if column == "-" { Some(None) } else { value(column).map(Some) }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            control if control.is_control() && (control as u32) < 256 => {
                escaped.push_str(&format!("\\x{:02x}", control as u32));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        unescaped.push_str(before);
        let code = after.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (rest, _) = match code.filter(|_| after.starts_with('x')) {
            Some(code) => (after.get(3..).unwrap_or_default(), unescaped.push(char::from(code))),
            None => (after.strip_prefix('\\').unwrap_or(after), unescaped.push('\\')),
        };
    }
    unescaped + rest
}

/// Writes a trace in Flashgrain's own format.
pub struct TraceWriter<W: Write> {
    to: W,
    /// For each name by its number, whether it was written, and as which number.
    numbers: Vec<Option<u32>>,
    written: u32,
    requests: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Of the writer, as everywhere here.
    pub fn new(mut to: W) -> io::Result<Self> {
        writeln!(to, "{HEAD}")?;
        Ok(Self { to, numbers: Vec::new(), written: 0, requests: 0 })
    }

    /// Requests written so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Writes a note for people.
    ///
    /// # Errors
    /// Of the writer.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.to, "note {}", escaped(text))
    }

    /// Writes a request, whose names are of `names`.
    ///
    /// # Errors
    /// Of the writer.
    pub fn request(&mut self, request: &Request, names: &Names) -> io::Result<()> {
        let file = self.number(request.in_file, names)?;
        let device = self.number(request.on_device, names)?;
        let word = match (request.layer, request.operation) {
            (Layer::File, Operation::Read) => 'R',
            (Layer::File, Operation::Write) => 'W',
            (Layer::File, Operation::Flush) => 'F',
            (Layer::File, Operation::Discard) => 'D',
            (Layer::Drive, Operation::Read) => 'r',
            (Layer::Drive, Operation::Write) => 'w',
            (Layer::Drive, Operation::Flush) => 'f',
            (Layer::Drive, Operation::Discard) => 'd',
        };
        write!(self.to, "{word} {} ", request.time_ns)?;
        match request.process {
            Some(process) => write!(self.to, "{process} ")?,
            None => self.to.write_all(b"- ")?,
        }
        for address in [file, device] {
            match address {
                Some((number, offset)) => write!(self.to, "{number}:{offset} ")?,
                None => self.to.write_all(b"- ")?,
            }
        }
        match request.latency_ns {
            Some(latency) => writeln!(self.to, "{} {latency}", request.length_bytes)?,
            None => writeln!(self.to, "{} -", request.length_bytes)?,
        }
        self.requests += 1;
        Ok(())
    }

    /// The number of a name in this trace, and the offset.
    fn number(&mut self, address: Option<Address>, names: &Names) -> io::Result<Option<(u32, u64)>> {
        let Some(address) = address else { return Ok(None) };
        let index = address.name.index();
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, None);
        }
        let number = match self.numbers.get(index).copied().flatten() {
            Some(number) => number,
            None => {
                let number = self.written;
                writeln!(self.to, "name {number} {}", escaped(names.text(address.name)))?;
                self.written += 1;
                self.numbers[index] = Some(number);
                number
            }
        };
        Ok(Some((number, address.offset_bytes)))
    }

    /// Hands written records on to the file.
    ///
    /// # Errors
    /// Of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Ends the trace with its losses.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self, losses: &Losses) -> io::Result<W> {
        for (loss, count) in losses.iter() {
            writeln!(self.to, "loss {} {count}", loss.word())?;
        }
        writeln!(self.to, "end")?;
        self.to.flush()?;
        Ok(self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_read_back(name in "(?s).{0,30}") {
            prop_assert_eq!(unescaped(&escaped(&name)), name.clone());
            prop_assert!(!escaped(&name).contains('\n'));
        }
    }
}
