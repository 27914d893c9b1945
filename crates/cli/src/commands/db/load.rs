//! Loading many records.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use flashgrain::{Error as StoreError, LoadError, Tree, VALUE_BYTES_MAX};
use flashgrain_profile::Error as ProfileError;
use flashgrain_report::unit;
use serde_json::json;

use super::input;
use super::kind::KindOptions;
use super::options::{TreeOptions, with_tree};
use super::records::{Form, Reader, Record};
use super::trees::there_is;
use crate::output::{Context, print, print_json};
use crate::units::parse_count;

#[derive(Debug, Args)]
pub struct LoadArguments {
    #[command(flatten)]
    tree: TreeOptions,
    #[command(flatten)]
    kind: KindOptions,
    /// A file with a line for each record, as `scan` prints them. They need not be sorted; of those with the
    /// same key the last one counts. `-` reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// How records are written: as text, each is a key, a tab and a value; a backslash begins an escape
    /// (`\t`, `\n`, `\\`, `\xNN`).
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Take keys and values of text as they are, backslashes too.
    #[arg(long, conflicts_with = "hex")]
    raw: bool,
    /// Leave out the first records of the input: to go on with a load that was ended, which has printed the
    /// number.
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = parse_count)]
    skip: u64,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// A number of things, with all its digits: `--skip` takes it.
fn things(number: u64, name: &str) -> String {
    format!("{number} {}", unit::plural(number, name))
}

/// Bytes of records that are sorted and loaded at a time.
const SORTED_BYTES: usize = 64 << 20;

/// Memory of a record in addition to its bytes.
const RECORD_BYTES: usize = 64;

pub fn load(arguments: &LoadArguments, context: &Context) -> anyhow::Result<()> {
    let (options, kind) = (&arguments.tree, arguments.kind.options()?);
    let lines = input::open(&arguments.file, context.interrupt.flag())?;
    let db = options.store.open(context)?;
    // Until here a signal ends the process as the system does: the wait for the other end of a named pipe, or
    // for a recovery, which begins again when the store is opened next.
    let interrupt = context.interrupt.watch()?;
    let reader = Reader::new(lines, arguments.format, options.notation, arguments.raw);
    if arguments.kind.is_given() && db.existing_tree(&options.tree).is_ok() {
        return Err(there_is(&options.tree).into());
    }
    let mut loading = Loading { arguments, context, interrupt, reader, skipped: 0 };
    with_tree(&db, (&options.tree, &kind), |tree| loading.load_all(tree))?;
    let count = loading.reader.count - loading.skipped;
    db.close().map_err(|error| {
        anyhow::Error::new(error).context(format!(
            "all of it, {}, is in the tree `{}` and stays there",
            things(count, "record"),
            options.tree
        ))
    })?;
    if arguments.json {
        return print_json(&json!({ "lines": count }));
    }
    Ok(print(&format!("loaded {} into the tree `{}`\n", things(count, "line"), options.tree))?)
}

/// A load under way.
struct Loading<'a> {
    arguments: &'a LoadArguments,
    context: &'a Context,
    interrupt: &'a AtomicBool,
    reader: Reader,
    /// Records that were left out.
    skipped: u64,
}

/// Records that are loaded, of a piece of the input: the first ones in key order.
struct Loaded<'a> {
    /// Lines of the piece.
    lines: u64,
    /// Keys of those that are surely loaded, and that may be.
    keys: &'a [Record],
    keys_max: &'a [Record],
}

impl Loading<'_> {
    /// Loads all records, in pieces that fit into memory. Each piece is durable before the next one is read,
    /// so that the number of loaded records is known, however it ends.
    fn load_all(&mut self, tree: &Tree) -> anyhow::Result<()> {
        self.skip().map_err(|error| self.ended(error, 0, None))?;
        loop {
            let before = self.reader.count;
            let records = self.next_sorted(tree).map_err(|error| self.ended(error, before, None))?;
            if records.is_empty() {
                return Ok(());
            }
            let goes_on = || !self.interrupt.load(Ordering::Relaxed);
            let given = records.iter().map(|(key, value)| (key, value)).take_while(|_| goes_on());
            let result = tree.load_counted(given);
            let up_to = |count: u64| {
                let count = usize::try_from(count).unwrap_or(usize::MAX).min(records.len());
                records.get(..count).unwrap_or_default()
            };
            let (loaded, loaded_max, error) = match result {
                Ok(count) if count == records.len() as u64 => continue,
                Ok(count) => (count, count, ProfileError::Interrupted.into()),
                Err(LoadError { loaded, loaded_max, source, .. }) => (loaded, loaded_max, source.into()),
            };
            let lines = self.reader.count - before;
            let loaded = Loaded { lines, keys: up_to(loaded), keys_max: up_to(loaded_max) };
            return Err(self.ended(error, before, Some(loaded)));
        }
    }

    /// Leaves out the records that an earlier load has loaded.
    fn skip(&mut self) -> anyhow::Result<()> {
        while self.skipped < self.arguments.skip {
            self.check_interrupt()?;
            if self.next()?.is_none() {
                break;
            }
            self.skipped += 1;
        }
        Ok(())
    }

    /// Says once, when the work is ended, that there is some left to do.
    fn check_interrupt(&self) -> anyhow::Result<()> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(ProfileError::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<Record>> {
        let read = self.reader.next();
        // A wait for input that was ended is an error of the input.
        if read.is_err() {
            self.check_interrupt()?;
        }
        read
    }

    /// The next records that fit into memory, sorted, each key once. None at the end.
    fn next_sorted(&mut self, tree: &Tree) -> anyhow::Result<Vec<Record>> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        let key_bytes_max = tree.key_bytes_max();
        while bytes < SORTED_BYTES {
            self.check_interrupt()?;
            let Some((key, value)) = self.next()? else { break };
            let fits = (1..=key_bytes_max).contains(&key.len());
            if !fits || value.len() as u64 > VALUE_BYTES_MAX {
                let error = match fits {
                    false => StoreError::KeyLength { got: key.len(), limit: key_bytes_max },
                    true => StoreError::ValueLength { got: value.len() as u64, limit: VALUE_BYTES_MAX },
                };
                return Err(self.reader.wrong(&error.to_string()).into());
            }
            bytes += key.len() + value.len() + RECORD_BYTES;
            records.push((key, value));
        }
        // Stable, so that the last of equal ones is the last line.
        records.sort_by(|(one, _), (other, _)| one.cmp(other));
        records.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        Ok(records)
    }

    /// The error that ended the load, with the records that are loaded: the first `lines` of the input, and
    /// some of a piece after them.
    fn ended(&self, error: anyhow::Error, lines: u64, piece: Option<Loaded<'_>>) -> anyhow::Error {
        let is_interrupt = matches!(error.downcast_ref(), Some(ProfileError::Interrupted));
        let piece = piece.filter(|piece| !piece.keys_max.is_empty());
        let is_none = lines == self.skipped && piece.is_none();
        if is_none && self.skipped == 0 && !is_interrupt {
            return error
                .context(format!("no record was loaded into the tree `{}`", self.arguments.tree.tree));
        }
        let mut text = self.loaded_text(lines, piece);
        if !is_none || lines > 0 {
            text.push_str("; to go on, give the same command again");
            if lines > 0 {
                text.push_str(&format!(" with `--skip {lines}`"));
            }
            if self.arguments.kind.is_given() {
                text.push_str(", without the kind of the tree");
            }
        }
        if !is_interrupt {
            return error.context(text);
        }
        self.context.note("ending: the store is being closed");
        self.context.interrupt.leaves(text);
        error
    }

    /// Which records are in the tree.
    fn loaded_text(&self, lines: u64, piece: Option<Loaded<'_>>) -> String {
        let TreeOptions { tree, notation, .. } = &self.arguments.tree;
        let skipped = self.skipped;
        let are = |records: u64| match records {
            1 => format!("was loaded into the tree `{tree}` and stays there"),
            _ => format!("were loaded into the tree `{tree}` and stay there"),
        };
        let first = things(lines, "record");
        let mut text = match (lines - skipped, skipped) {
            (0, 0) => String::new(),
            (0, 1) => "the first record was left out; ".into(),
            (0, _) => format!("the first {first} were left out; "),
            (records, 0) => format!("the first {first} {}", are(records)),
            (records, _) => format!("the first {first}, without {skipped} left out, {}", are(records)),
        };
        let Some(piece) = piece else {
            text.push_str(match lines - skipped {
                0 => "no record was loaded",
                _ => ", and none after them",
            });
            return text;
        };
        if lines > skipped {
            text.push_str("; ");
        }
        let next = if lines > 0 { "next" } else { "first" };
        let last = |keys: &[Record]| keys.last().map(|(key, _)| notation.show(key)).unwrap_or_default();
        let (surely, perhaps) = (piece.keys.len(), piece.keys_max.len());
        text.push_str(&format!("of the {next} {}, ", things(piece.lines, "record")));
        text.push_str(&match surely == perhaps {
            true => format!("the {surely} with the smallest keys, up to `{}`", last(piece.keys)),
            false => format!(
                "{surely} to {perhaps} with the smallest keys, at most up to `{}` (see `scan` once the store is open again)",
                last(piece.keys_max)
            ),
        });
        if lines == skipped {
            text.push_str(&format!(", {}", are(perhaps as u64)));
        }
        text.push_str(", and no others");
        text
    }
}
