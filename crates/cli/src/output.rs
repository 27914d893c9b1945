//! Text for the user: results to standard output, everything else to standard error.

use std::io::{self, Write};

use serde::Serialize;

use crate::interrupt::Interrupt;

/// The amount of text in addition to the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// The input of a command other than its arguments.
#[derive(Debug)]
pub struct Context {
    pub verbosity: Verbosity,
    pub interrupt: Interrupt,
}

impl Context {
    /// Prints a note to standard error, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            // A closed standard error does not end the work.
            let _ = writeln!(io::stderr(), "{}", visible(text));
        }
    }

    /// Prints a detail to standard error, only with `--verbose`.
    pub fn detail(&self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.note(text);
        }
    }
}

/// Text for a terminal that may quote files, names and programs: their control characters, which could steer
/// it, are written as `\xHH`.
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |shown, character| match character {
        control if control.is_control() && !matches!(control, '\n' | '\t') => {
            shown + &format!("\\x{:02x}", u32::from(control))
        }
        other => shown + other.encode_utf8(&mut [0; 4]),
    })
}

/// Writes a result, as it is, to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes a result as JSON to standard output.
pub fn print_json<T: Serialize>(result: &T) -> anyhow::Result<()> {
    Ok(print(&(serde_json::to_string_pretty(result)? + "\n"))?)
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_are_shown_and_do_nothing() {
        assert_eq!(visible("a\u{1b}[2J\r\u{9b}b\n\tä"), "a\\x1b[2J\\x0d\\x9bb\n\tä");
    }
}
