//! Keys and values as people type and read them.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use flashgrain::{Error as StoreError, Tree, VALUE_BYTES_MAX, ValueReader};
use flashgrain_profile::file;

use crate::exit::Usage;

/// How bytes are written in arguments and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct Notation {
    /// Keys and values are typed and shown as hexadecimal digits. Without it they are text; bytes that are
    /// none show as \xNN.
    #[arg(long)]
    pub hex: bool,
}

impl Notation {
    /// The bytes that were typed.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, Usage> {
        if !self.hex {
            return Ok(text.as_bytes().to_vec());
        }
        let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
            _ => Err(Usage(format!("{text:?}: with --hex, two hexadecimal digits per byte are expected"))),
        }
    }

    /// The bytes of a part of a line.
    pub fn parse_bytes(self, part: &[u8]) -> Result<Vec<u8>, Usage> {
        if self.hex { self.parse(&String::from_utf8_lossy(part)) } else { Ok(part.to_vec()) }
    }

    /// The bytes as text in one line.
    pub fn show(self, bytes: &[u8]) -> String {
        if self.hex { bytes.iter().map(|byte| format!("{byte:02x}")).collect() } else { escaped(bytes) }
    }
}

/// Text as it is; in anything else, every byte that is no plain character is escaped.
fn escaped(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(|one| one.is_control() || one == '\\') => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// The bytes that [`Notation::show`] has shown as text.
pub fn unescaped(text: &[u8]) -> Result<Vec<u8>, Usage> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, length) = match rest {
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [plain @ (b'\\' | b'\'' | b'"'), ..] => (*plain, 1),
            [b'x', high, low, ..] => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => return Err(no_escape(rest)),
            },
            _ => return Err(no_escape(rest)),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    Some(char::from(byte).to_digit(16)? as u8)
}

fn no_escape(rest: &[u8]) -> Usage {
    let shown = String::from_utf8_lossy(rest.get(..rest.len().min(3)).unwrap_or_default()).into_owned();
    Usage(format!(
        "\\{shown} is no escape: a backslash is written \\\\, any other byte \\xNN; with --raw, lines are taken as they are"
    ))
}

/// Source of a value.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ValueSource {
    /// The value; `-` reads it from standard input.
    #[arg(value_name = "VALUE")]
    value: Option<String>,
    /// A file that holds it, exactly as it is.
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
}

/// A value on its way into a store.
pub enum Source {
    /// It was typed.
    Bytes(Vec<u8>),
    /// It is read piece by piece, and never as a whole in memory.
    Stream { name: String, from: Box<dyn Read> },
}

impl ValueSource {
    /// Fails if there is no such source, before anything is done.
    pub fn open(&self, notation: Notation) -> anyhow::Result<Source> {
        match (&self.value, &self.value_file) {
            (_, Some(path)) => open_file(path),
            (Some(value), _) if value == "-" => {
                let name = "standard input".to_owned();
                Ok(Source::Stream { name, from: Box::new(std::io::stdin().lock()) })
            }
            (value, _) => Ok(Source::Bytes(notation.parse(value.as_deref().unwrap_or_default())?)),
        }
    }
}

impl Source {
    /// Gives the key this value.
    pub fn insert(self, tree: &Tree, key: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Bytes(value) => Ok(tree.insert(key, value)?),
            Self::Stream { name, from } => match tree.insert_from(key, from) {
                Err(StoreError::Source(why)) => {
                    Err(anyhow::Error::new(why).context(format!("read the value from {name}")))
                }
                ended => Ok(ended.map(drop)?),
            },
        }
    }
}

fn open_file(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let opened = std::fs::File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.with_context(|| format!("read the value from {name}"))?;
    if metadata.is_file() && metadata.len() > VALUE_BYTES_MAX {
        return Err(StoreError::ValueLength { got: metadata.len(), limit: VALUE_BYTES_MAX }.into());
    }
    Ok(Source::Stream { name, from: Box::new(file) })
}

/// Writes a value to a file, piece by piece.
pub fn write_value(mut reader: ValueReader, path: &Path) -> anyhow::Result<()> {
    // Errors of the store must not be reported as errors of the file.
    let mut failed = None;
    let written = file::write_atomically(path, |writer| {
        let copied = std::io::copy(&mut reader, writer).map(drop);
        copied.map_err(|error| {
            error.downcast::<StoreError>().map_or_else(
                |other| other,
                |error| {
                    failed = Some(error);
                    std::io::Error::other("the value could not be read")
                },
            )
        })
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: Notation = Notation { hex: false };
    const HEX: Notation = Notation { hex: true };

    #[test]
    fn text_shows_as_it_is_and_other_bytes_escaped() {
        assert_eq!(TEXT.show("Grüße".as_bytes()), "Grüße");
        assert_eq!(TEXT.show(b"a\tb\xff"), "a\\tb\\xff");
        assert_eq!(TEXT.show(b"back\\slash"), "back\\\\slash");
        assert_eq!(HEX.show(b"\x00\xff"), "00ff");
        assert!(HEX.parse("0").is_err() && HEX.parse("zz").is_err());
    }

    proptest! {
        #[test]
        fn escapes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(unescaped(TEXT.show(&bytes).as_bytes()).unwrap(), bytes);
        }

        #[test]
        fn hexadecimal_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(HEX.parse(&HEX.show(&bytes)).unwrap(), bytes);
        }
    }
}
