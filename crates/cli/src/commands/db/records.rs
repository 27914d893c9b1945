//! Records as lines: the formats that `scan` prints and `load` reads. `load` reads any output of `scan`.
//!
//! 1. *text*: key, tab, value. Bytes that are no text, and control characters, are written as backslash
//!    escapes (`\t`, `\n`, `\\`, `\xNN`).
//! 2. *json*: an object in each line, with `key` and `value`; bytes that are no UTF-8 are in `key_hex` and
//!    `value_hex` instead.
//! 3. *csv*: RFC 4180 with the header `key,value`; bytes are written as they are.
//! 4. *raw*, which is only read: key, tab, value, both as they are.
//!
//! With `--hex`, keys and values are hexadecimal digits in all of them.

use std::io::{BufRead, Write};

use clap::ValueEnum;
use flashgrain::VALUE_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::bytes::{Notation, unescaped};
use crate::exit::Usage;

pub type Record = (Vec<u8>, Vec<u8>);

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Key, tab, value, with escapes for bytes that are no text.
    Text,
    /// One JSON object per line.
    #[value(alias = "jsonl")]
    Json,
    /// Comma-separated values with a header.
    Csv,
}

/// The longest line: the longest value, escaped or in digits, and its key.
const LINE_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX as usize + KEY_TEXT_BYTES_MAX;

/// Text of the longest key that any tree takes, in bytes.
const KEY_TEXT_BYTES_MAX: usize = 256 << 10;

/// A record as JSON.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Object {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// A record as one JSON object, without its value if there is none.
pub fn json(notation: Notation, key: &[u8], value: Option<&[u8]>) -> serde_json::Result<String> {
    let text = |bytes: &[u8]| match notation.hex {
        true => Some(notation.show(bytes)),
        false => std::str::from_utf8(bytes).ok().map(str::to_owned),
    };
    let digits = |bytes: &[u8]| Notation { hex: true }.show(bytes);
    let (key_text, value_text) = (text(key), value.and_then(text));
    let object = Object {
        key_hex: key_text.is_none().then(|| digits(key)),
        value_hex: value.filter(|_| value_text.is_none()).map(digits),
        key: key_text,
        value: value_text,
    };
    serde_json::to_string(&object)
}

/// Prints records.
pub struct Printer<W: Write> {
    out: W,
    form: Form,
    notation: Notation,
    keys_only: bool,
    /// Records so far.
    pub count: u64,
}

impl<W: Write> Printer<W> {
    pub fn new(mut out: W, form: Form, notation: Notation, keys_only: bool) -> std::io::Result<Self> {
        if form == Form::Csv {
            writeln!(out, "{}", if keys_only { "key" } else { "key,value" })?;
        }
        Ok(Self { out, form, notation, keys_only, count: 0 })
    }

    pub fn print(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let value = (!self.keys_only).then_some(value);
        let (out, notation) = (&mut self.out, self.notation);
        match self.form {
            Form::Text => {
                write!(out, "{}", notation.show(key))?;
                if let Some(value) = value {
                    write!(out, "\t{}", notation.show(value))?;
                }
                writeln!(out)?;
            }
            Form::Json => writeln!(out, "{}", json(notation, key, value)?)?,
            Form::Csv => {
                for (index, field) in std::iter::once(key).chain(value).enumerate() {
                    if index > 0 {
                        write!(out, ",")?;
                    }
                    if notation.hex {
                        write!(out, "{}", notation.show(field))?;
                    } else {
                        out.write_all(&quoted(field))?;
                    }
                }
                writeln!(out)?;
            }
        }
        self.count += 1;
        Ok(())
    }

    pub fn finish(mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A field of CSV: in quotes, with those in it doubled, if it holds characters that would end it.
fn quoted(field: &[u8]) -> Vec<u8> {
    let is_plain = !field.is_empty() && !field.iter().any(|byte| b",\"\r\n".contains(byte));
    if is_plain {
        return field.to_vec();
    }
    let mut all = vec![b'"'];
    for byte in field {
        all.extend(std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }));
    }
    all.push(b'"');
    all
}

/// Reads records.
pub struct Reader {
    lines: Box<dyn BufRead>,
    form: Form,
    notation: Notation,
    /// Whether escapes mean nothing.
    raw: bool,
    /// Columns of key and value.
    columns: Option<(usize, usize)>,
    /// Lines so far.
    line: u64,
    /// Records so far.
    pub count: u64,
}

impl Reader {
    pub fn new(lines: Box<dyn BufRead>, form: Form, notation: Notation, raw: bool) -> Self {
        Self { lines, form, notation, raw, columns: None, line: 0, count: 0 }
    }

    /// An error about the record that was read last.
    pub fn wrong(&self, why: &str) -> Usage {
        Usage(format!("line {}: {why}", self.line))
    }

    /// The next record; none at the end.
    pub fn next(&mut self) -> anyhow::Result<Option<Record>> {
        let record = match self.form {
            Form::Text => self.read_text()?,
            Form::Json => self.read_json()?,
            Form::Csv => self.read_csv()?,
        };
        self.count += u64::from(record.is_some());
        Ok(record)
    }

    fn read_text(&mut self) -> anyhow::Result<Option<Record>> {
        let missing = "a key, a tab and a value are expected";
        let Some(line) = self.read_line(b'\t', missing)? else { return Ok(None) };
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(|| self.wrong(missing))?;
        let parse = |part: &[u8]| match (self.notation.hex, self.raw) {
            (true, _) => self.notation.parse_bytes(part),
            (false, true) => Ok(part.to_vec()),
            (false, false) => unescaped(part),
        };
        let parse = |part| parse(part).map_err(|Usage(why)| self.wrong(&why));
        Ok(Some((parse(&line[..tab])?, parse(&line[tab + 1..])?)))
    }

    fn read_json(&mut self) -> anyhow::Result<Option<Record>> {
        let missing = "a JSON object with \"key\" and \"value\" is expected";
        let line = loop {
            match self.read_line(b'{', missing)? {
                None => return Ok(None),
                Some(line) if line.trim_ascii().is_empty() => {}
                Some(line) => break line,
            }
        };
        let object: Object =
            serde_json::from_slice(&line).map_err(|error| self.wrong(&format!("{missing}: {error}")))?;
        let bytes = |text: Option<String>, digits: Option<String>| match (text, digits) {
            (Some(text), None) => self.notation.parse(&text).map_err(|Usage(why)| self.wrong(&why)),
            (None, Some(digits)) => {
                Notation { hex: true }.parse(&digits).map_err(|Usage(why)| self.wrong(&why))
            }
            _ => Err(self.wrong(missing)),
        };
        Ok(Some((bytes(object.key, object.key_hex)?, bytes(object.value, object.value_hex)?)))
    }

    fn read_csv(&mut self) -> anyhow::Result<Option<Record>> {
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let header = self.read_row(KEY_TEXT_BYTES_MAX)?.unwrap_or_default();
                let named = |name: &str| header.iter().position(|field| field == name.as_bytes());
                let (Some(key), Some(value), 2) = (named("key"), named("value"), header.len()) else {
                    return Err(self.wrong("the header key,value is expected").into());
                };
                *self.columns.insert((key, value))
            }
        };
        let row = loop {
            match self.read_row(LINE_BYTES_MAX)? {
                None => return Ok(None),
                Some(row) if row == [b""] => {}
                Some(row) => break row,
            }
        };
        if row.len() != 2 {
            return Err(self.wrong(&format!("two fields are expected, not {}", row.len())).into());
        }
        let parse = |field: usize| {
            let bytes = row.get(field).map_or(&[][..], Vec::as_slice);
            self.notation.parse_bytes(bytes).map_err(|Usage(why)| self.wrong(&why))
        };
        Ok(Some((parse(columns.0)?, parse(columns.1)?)))
    }

    /// The fields of the next row, which may go over several lines if these are in quotes.
    fn read_row(&mut self, bytes_max: usize) -> anyhow::Result<Option<Vec<Vec<u8>>>> {
        let (mut row, mut quotes) = (Vec::new(), 0);
        loop {
            let before = row.len();
            let limit = (bytes_max - before.min(bytes_max)) as u64;
            std::io::Read::take(&mut self.lines, limit).read_until(b'\n', &mut row).map_err(reading)?;
            if row.len() == before {
                break;
            }
            self.line += 1;
            // A quote that is doubled counts twice: outside of quotes there is an even number of them.
            quotes += row[before..].iter().filter(|byte| **byte == b'"').count();
            if quotes.is_multiple_of(2) && row.ends_with(b"\n") {
                break;
            }
        }
        if row.is_empty() {
            return Ok(None);
        }
        if row.len() >= bytes_max {
            return Err(self.wrong("a row longer than any record").into());
        }
        let row = row.strip_suffix(b"\n").unwrap_or(&row);
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        fields(row).map(Some).map_err(|why| self.wrong(why).into())
    }

    /// The next line, without its end. It must soon have `mark`, as otherwise the input has another form and
    /// may have no lines at all.
    fn read_line(&mut self, mark: u8, missing: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let (mut line, mut is_marked) = (Vec::new(), false);
        loop {
            let read = self.lines.fill_buf().map_err(reading)?;
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(read, |end| &read[..end]);
            is_marked |= part.contains(&mark);
            line.extend_from_slice(part);
            let (used, is_over) = (part.len() + usize::from(end.is_some()), read.is_empty());
            self.lines.consume(used);
            if is_over && line.is_empty() {
                return Ok(None);
            }
            if end.is_some() || is_over {
                self.line += 1;
                return Ok(Some(line));
            }
            if line.len() > LINE_BYTES_MAX || !is_marked && line.len() > KEY_TEXT_BYTES_MAX {
                self.line += 1;
                let why = if is_marked { "it is longer than any record" } else { missing };
                return Err(self.wrong(why).into());
            }
        }
    }
}

fn reading(error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("read the records")
}

/// The fields of a row of CSV.
fn fields(row: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut all = Vec::new();
    let mut rest = row;
    loop {
        let (field, after) = match rest.strip_prefix(b"\"") {
            Some(inside) => in_quotes(inside)?,
            None => {
                let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
                (rest[..end].to_vec(), &rest[end..])
            }
        };
        all.push(field);
        match after.split_first() {
            None => return Ok(all),
            Some((b',', after)) => rest = after,
            Some(_) => return Err("a comma is expected after a field in quotes"),
        }
    }
}

/// A field up to the quote that ends it, and the rest after that.
fn in_quotes(inside: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut field = Vec::new();
    let mut rest = inside;
    loop {
        let end = rest.iter().position(|byte| *byte == b'"').ok_or("a field in quotes does not end")?;
        field.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => return Ok((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8], form: Form, notation: Notation) -> anyhow::Result<Vec<Record>> {
        let mut reader = Reader::new(Box::new(Cursor::new(text.to_vec())), form, notation, false);
        let mut all = Vec::new();
        while let Some(record) = reader.next()? {
            all.push(record);
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn what_is_printed_can_be_read(records: Vec<(Vec<u8>, Vec<u8>)>, hex: bool) {
            for form in [Form::Text, Form::Json, Form::Csv] {
                let notation = Notation { hex };
                let mut out = Vec::new();
                let mut printer = Printer::new(&mut out, form, notation, false).unwrap();
                for (key, value) in &records {
                    printer.print(key, value).unwrap();
                }
                printer.finish().unwrap();
                prop_assert_eq!(&read(&out, form, notation).unwrap(), &records, "{:?}", form);
            }
        }

        #[test]
        fn nonsense_is_an_error_and_no_panic(bytes: Vec<u8>, hex: bool) {
            for form in [Form::Text, Form::Json, Form::Csv] {
                let _refused = read(&bytes, form, Notation { hex });
            }
        }
    }

    #[test]
    fn what_others_write_is_read() {
        let text = Notation { hex: false };
        let expected = vec![(b"a".to_vec(), b"C:\\dir, \"x\"\nnext".to_vec())];
        let json = br#"{"value": "C:\\dir, \"x\"\nnext", "key": "a"}"#;
        assert_eq!(read(json, Form::Json, text).unwrap(), expected);
        let csv = b"value,key\r\n\"C:\\dir, \"\"x\"\"\nnext\",a\r\n";
        assert_eq!(read(csv, Form::Csv, text).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let text = Notation { hex: false };
        let wrong = |bytes: &[u8], form| read(bytes, form, text).unwrap_err().to_string();
        assert!(wrong(b"a\tb\nno tab\n", Form::Text).contains("line 2: a key, a tab"));
        assert!(wrong(b"a\t\\q\n", Form::Text).contains("line 1: "));
        assert!(wrong(b"{\"key\": \"a\"}\n", Form::Json).contains("line 1: a JSON object"));
        assert!(wrong(b"a,b\n", Form::Csv).contains("header key,value"));
        assert!(wrong(b"key,value\na\n", Form::Csv).contains("line 2: two fields"));
        assert!(wrong(b"key,value\n\"a,b\n", Form::Csv).contains("does not end"));
    }

    #[test]
    fn what_has_no_lines_is_given_up_soon() {
        let endless = || Box::new(std::io::BufReader::new(std::io::repeat(0)));
        for form in [Form::Text, Form::Json, Form::Csv] {
            let mut reader = Reader::new(endless(), form, Notation { hex: false }, false);
            assert!(reader.next().unwrap_err().to_string().contains("line 1"), "{form:?}");
        }
    }
}
