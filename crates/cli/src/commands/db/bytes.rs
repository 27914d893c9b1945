//! Keys and values as people type and read them.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

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
        if self.hex {
            return bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(|one| one.is_control() || one == '\\') => text.to_owned(),
            _ => bytes.escape_ascii().to_string(),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ValueSource {
    /// The value; `-` reads it from standard input.
    #[arg(value_name = "VALUE")]
    value: Option<String>,
    /// A file that holds it.
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
}

impl ValueSource {
    pub fn read(&self, notation: Notation) -> anyhow::Result<Vec<u8>> {
        match (&self.value, &self.value_file) {
            (_, Some(path)) => read_file(path),
            (Some(value), _) if value == "-" => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .lock()
                    .read_to_end(&mut bytes)
                    .context("read the value from standard input")?;
                Ok(bytes)
            }
            (value, _) => Ok(notation.parse(value.as_deref().unwrap_or_default())?),
        }
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read the value from {}", path.display()))
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
        fn hexadecimal_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(HEX.parse(&HEX.show(&bytes)).unwrap(), bytes);
        }
    }
}
