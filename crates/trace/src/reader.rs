//! Requests out of a trace, one after the other.

use std::io::{BufRead, BufReader, Read};

use crate::format::{Line, LineReader, blktrace, own, vscsi};
use crate::{Error, Format, Loss, Losses, Names, Request};

/// Bytes at the beginning that the format is recognised by.
const HEAD_BYTES: usize = 4096;

/// The longest line that is read as one, in bytes; longer lines are no request of any format.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The part of a wrong line that an error shows, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// Yields the requests of a trace, and an error at the place where it cannot go on; after that, nothing.
pub struct Reader<R> {
    source: R,
    format: Format,
    names: Names,
    state: State,
    is_over: bool,
    /// How many there were, if they do not end the trace.
    wrong_lines: Option<u64>,
}

enum State {
    Text { reader: Box<LineReader>, line: Vec<u8>, lines: u64 },
    Blktrace(blktrace::Records),
    Vscsi(vscsi::Records),
}

impl<R: Read> Reader<BufReader<std::io::Chain<std::io::Cursor<Vec<u8>>, R>>> {
    /// Recognises the format of `source`, which is read from its begin.
    ///
    /// # Errors
    /// [`Error::Read`] if `source` fails; [`Error::Foreign`] if its format is none that is known;
    /// [`Error::Newer`] if it is a later version of Flashgrain's.
    pub fn new(mut source: R) -> Result<Self, Error> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        source.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        let format = Format::recognise(&head).ok_or_else(|| unknown(&head))?;
        let state = match LineReader::new(format) {
            Some(reader) => State::Text { reader: Box::new(reader), line: Vec::new(), lines: 0 },
            None => match vscsi::version(&head).filter(|_| format == Format::CloudPhysics) {
                Some(version) => State::Vscsi(vscsi::Records::new(version)),
                None => State::Blktrace(blktrace::Records::new(&head)),
            },
        };
        let source = BufReader::new(std::io::Cursor::new(head).chain(source));
        Ok(Self { source, format, names: Names::default(), state, is_over: false, wrong_lines: None })
    }
}

impl<R: BufRead> Reader<R> {
    /// A reader of the output of `strace`, which may be a pipe that is still empty.
    pub fn of_strace(source: R) -> Self {
        let reader = Box::new(LineReader::Strace(Box::default()));
        let state = State::Text { reader, line: Vec::new(), lines: 0 };
        let names = Names::default();
        Self { source, format: Format::Strace, names, state, is_over: false, wrong_lines: None }
    }

    /// From now on counts wrong lines as [`Loss::Line`], and continues with the next line.
    pub fn count_wrong_lines(&mut self) {
        self.wrong_lines.get_or_insert(0);
    }
}

impl<R> Reader<R> {
    /// The format that was recognised.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of devices and files so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Losses of the trace so far; complete once there are no more requests.
    pub fn losses(&self) -> Losses {
        let mut losses = match &self.state {
            State::Text { reader, .. } => reader.losses(),
            State::Blktrace(_) | State::Vscsi(_) => Losses::default(),
        };
        losses.add(Loss::Line, self.wrong_lines.unwrap_or(0));
        losses
    }

    /// Notes for people in the trace, so far.
    pub fn notes(&self) -> &[String] {
        match &self.state {
            State::Text { reader, .. } => reader.notes(),
            State::Blktrace(_) | State::Vscsi(_) => &[],
        }
    }
}

impl<R: BufRead> Reader<R> {
    fn step(&mut self) -> Result<Option<Request>, Error> {
        match &mut self.state {
            State::Blktrace(records) => records.next(&mut self.source, &mut self.names),
            State::Vscsi(records) => records.next(&mut self.source, &mut self.names),
            State::Text { reader, line, lines } => loop {
                if let Some(request) = reader.waiting() {
                    return Ok(Some(request));
                }
                line.clear();
                if self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)? == 0 {
                    let lacking = |expected| Error::CutOff { format: self.format, line: *lines, expected };
                    return reader.lacks().map_or(Ok(None), |expected| Err(lacking(expected)));
                }
                *lines += 1;
                let text = String::from_utf8_lossy(line);
                // Only Flashgrain's own lines may end in spaces that mean something.
                let trimmed = match self.format {
                    Format::Own => text.trim_end_matches(['\r', '\n']),
                    _ => text.trim(),
                };
                // Of the last line of a recording that was killed, a part may be there.
                let is_part = self.format == Format::Own && !text.ends_with('\n') && trimmed != "end";
                if let Some(expected) = reader.lacks().filter(|_| is_part) {
                    return Err(Error::CutOff { format: self.format, line: *lines - 1, expected });
                }
                match reader.line(trimmed, &mut self.names) {
                    Line::Request(request) => return Ok(Some(request)),
                    Line::Other => {}
                    Line::End if self.format != Format::Own => return Ok(None),
                    // Two recordings in one file are not one trace.
                    Line::End => {
                        line.clear();
                        self.source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
                        let got =
                            printable(String::from_utf8_lossy(line).trim().chars().take(SHOWN_CHARACTERS));
                        if got.is_empty() {
                            return Ok(None);
                        }
                        let expected = "nothing after the end: check each recording on its own";
                        return Err(Error::Line { format: self.format, line: *lines + 1, expected, got });
                    }
                    Line::Wrong(_) if self.wrong_lines.is_some() => {
                        self.wrong_lines = self.wrong_lines.map(|lines| lines + 1);
                    }
                    Line::Wrong(expected) => {
                        let got = printable(text.trim().chars().take(SHOWN_CHARACTERS));
                        return Err(Error::Line { format: self.format, line: *lines, expected, got });
                    }
                }
            },
        }
    }
}

/// Why a trace that begins with `head` is not read.
fn unknown(head: &[u8]) -> Error {
    match own::version(head) {
        Some(version) => Error::Newer { version },
        None => Error::Foreign,
    }
}

/// Text with control characters written as `\xHH`, for errors on a terminal.
fn printable(text: impl Iterator<Item = char>) -> String {
    text.fold(String::new(), |text, character| match character {
        control if control.is_control() => text + &format!("\\x{:02x}", u32::from(control)),
        other => text + other.encode_utf8(&mut [0; 4]),
    })
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Request, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.step().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}
