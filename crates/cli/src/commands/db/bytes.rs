//! Keys and values as people type and read them.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use flashgrain::{Error as StoreError, VALUE_BYTES_MAX};

use crate::exit::Usage;

/// How bytes are written in arguments and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct Notation {
    /// Keys and values are typed and shown as hexadecimal digits. Without it they are text, in which bytes that are none show as \xNN.
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

    /// In one line.
    pub fn show(self, bytes: &[u8]) -> String {
        if self.hex { bytes.iter().map(|byte| format!("{byte:02x}")).collect() } else { escaped(bytes) }
    }
}

/// Text as it is; anything else, in which every byte that is no plain character is escaped.
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

/// Where a value comes from.
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

impl ValueSource {
    pub fn read(&self, notation: Notation) -> anyhow::Result<Vec<u8>> {
        match (&self.value, &self.value_file) {
            (_, Some(path)) => read_file(path),
            (Some(value), _) if value == "-" => {
                read_all(std::io::stdin().lock(), "standard input", VALUE_BYTES_MAX)
            }
            (value, _) => Ok(notation.parse(value.as_deref().unwrap_or_default())?),
        }
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display().to_string();
    let opened = std::fs::File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.with_context(|| format!("read the value from {name}"))?;
    if metadata.is_file() && metadata.len() > VALUE_BYTES_MAX {
        return Err(StoreError::ValueLength { got: metadata.len(), limit: VALUE_BYTES_MAX }.into());
    }
    read_all(file, &name, VALUE_BYTES_MAX)
}

/// Reads no more than a value may have, as some sources never end.
fn read_all(source: impl Read, name: &str, limit: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = source.take(limit + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("read the value from {name}"))?;
    if bytes.len() as u64 > limit {
        let why = format!("a value of more than {limit} bytes, which is the limit");
        return Err(Usage(format!("{name}: {why}; divide it over several keys")).into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: Notation = Notation { hex: false };
    const HEX: Notation = Notation { hex: true };

    #[test]
    fn a_source_without_end_is_read_up_to_the_limit() {
        let refused = read_all(std::io::repeat(7), "/dev/zero", 1000).unwrap_err().to_string();
        assert!(refused.contains("/dev/zero") && refused.contains("more than 1000 bytes"), "{refused}");
        assert_eq!(read_all(std::io::repeat(7).take(1000), "file", 1000).unwrap().len(), 1000);
    }

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
