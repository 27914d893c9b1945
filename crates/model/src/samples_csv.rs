//! The CSV form of samples (docs/samples-csv.md): one row per trial, columns found by name, others ignored.

use std::io::{Read, Write};

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::{Error, Sample, Workload};

const EXPERIMENT: &str = "experiment";
const REPEAT: &str = "repeat";
const ACCESS: &str = "access";
const READ_SHARE: &str = "read_share";
const REQUEST_BYTES: &str = "request_bytes";
const RANDOM_SHARE: &str = "random_share";
const CONCURRENCY: &str = "concurrency";
const BYTES_PER_SECOND: &str = "bytes_per_second";

const COMMENT: u8 = b'#';

/// The experiment of samples that do not name one.
const EXTERNAL: &str = "external";

/// Reads samples from CSV.
///
/// Needs the columns `request_bytes`, `concurrency`, `bytes_per_second` and one of `access` (`read` or
/// `write`) and `read_share` (0 to 1). May have `experiment` (else `external`), `repeat` (else 0) and
/// `random_share` (else 1). Other columns and lines that start with `#` are ignored.
///
/// # Errors
/// [`Error::Csv`] with the line, the problem and the expected value.
pub fn read_csv<R: Read>(mut reader: R) -> Result<Vec<Sample>, Error> {
    let mut text = Vec::new();
    reader
        .read_to_end(&mut text)
        .map_err(|error| Error::Samples(format!("the samples file cannot be read: {error}")))?;
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(COMMENT)).from_reader(text.as_slice());
    let columns = match reader.headers() {
        Ok(header) => {
            Columns::find(header).map_err(|problem| Error::Csv { line: line_at(&text, 0), problem })?
        }
        Err(error) => return Err(malformed(&text, &error)),
    };
    let mut samples = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| malformed(&text, &error))?;
        samples.push(columns.sample(&record).map_err(|problem| {
            let line = line_at(&text, record.position().map_or(0, csv::Position::byte));
            Error::Csv { line, problem }
        })?);
    }
    if samples.is_empty() {
        return Err(Error::Samples("the samples file has no rows below its header".into()));
    }
    Ok(samples)
}

/// Writes samples in the form that [`read_csv`] reads.
///
/// # Errors
/// Errors of the writer.
pub fn write_csv<W: Write>(writer: W, samples: &[Sample]) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(writer);
    writer.write_record([
        EXPERIMENT,
        REPEAT,
        READ_SHARE,
        REQUEST_BYTES,
        RANDOM_SHARE,
        CONCURRENCY,
        BYTES_PER_SECOND,
    ])?;
    for sample in samples {
        let workload = &sample.workload;
        writer.write_record([
            sample.experiment.clone(),
            sample.repeat.to_string(),
            workload.read_share.to_string(),
            workload.request_bytes.to_string(),
            workload.random_share.to_string(),
            workload.concurrency.to_string(),
            sample.bytes_per_second.to_string(),
        ])?;
    }
    writer.flush()
}

fn malformed(text: &[u8], error: &csv::Error) -> Error {
    let line = line_at(text, error.position().map_or(0, csv::Position::byte));
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, but the header names {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8 text; is it a CSV file?".into(),
        _ => error.to_string(),
    };
    Error::Csv { line, problem }
}

/// Number of the first line from a place on that is neither blank nor a comment: the CSV reader's own
/// position of a record lies before those.
fn line_at(text: &[u8], byte: u64) -> u64 {
    let (before, rest) = text.split_at(usize::try_from(byte).unwrap_or(usize::MAX).min(text.len()));
    let newlines = before.iter().filter(|byte| **byte == b'\n').count();
    let skipped = rest
        .split(|byte| *byte == b'\n')
        .take_while(|line| line.first() == Some(&COMMENT) || line.trim_ascii().is_empty())
        .count();
    (newlines + skipped + 1) as u64
}

/// Positions of the columns.
struct Columns {
    experiment: Option<usize>,
    repeat: Option<usize>,
    kind: Kind,
    request_bytes: usize,
    random_share: Option<usize>,
    concurrency: usize,
    bytes_per_second: usize,
}

/// The column that tells reads from writes.
enum Kind {
    ReadShare(usize),
    Access(usize),
}

impl Columns {
    fn find(header: &StringRecord) -> Result<Self, String> {
        let names: Vec<String> =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').to_ascii_lowercase()).collect();
        let find = |wanted: &str| {
            let mut places =
                names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(place, _)| place);
            match (places.next(), places.next()) {
                (_, Some(_)) => Err(format!("the column {wanted} appears twice")),
                (place, None) => Ok(place),
            }
        };
        let need = |wanted: &str| {
            find(wanted)?.ok_or_else(|| {
                format!(
                    "no column {wanted}; needed are {REQUEST_BYTES}, {CONCURRENCY}, {BYTES_PER_SECOND} and {ACCESS} \
                     (read or write) or {READ_SHARE} (0 to 1), found are: {}",
                    names.join(", ")
                )
            })
        };
        let kind = match find(READ_SHARE)? {
            Some(place) => Kind::ReadShare(place),
            None => Kind::Access(need(ACCESS)?),
        };
        Ok(Self {
            experiment: find(EXPERIMENT)?,
            repeat: find(REPEAT)?,
            kind,
            request_bytes: need(REQUEST_BYTES)?,
            random_share: find(RANDOM_SHARE)?,
            concurrency: need(CONCURRENCY)?,
            bytes_per_second: need(BYTES_PER_SECOND)?,
        })
    }

    fn sample(&self, record: &StringRecord) -> Result<Sample, String> {
        let field = |place: usize| record.get(place).unwrap_or_default();
        // An empty field of an optional column means its default.
        let optional = |place: Option<usize>| place.map(field).filter(|text| !text.is_empty());
        let sample = Sample {
            experiment: optional(self.experiment).unwrap_or(EXTERNAL).to_owned(),
            repeat: match optional(self.repeat) {
                None => 0,
                Some(text) => {
                    text.parse().map_err(|_| format!("{REPEAT} is {text:?}, expected a whole number"))?
                }
            },
            workload: Workload {
                read_share: self.read_share(record)?,
                request_bytes: number(REQUEST_BYTES, field(self.request_bytes))?,
                random_share: optional(self.random_share)
                    .map_or(Ok(1.0), |text| number(RANDOM_SHARE, text))?,
                concurrency: number(CONCURRENCY, field(self.concurrency))?,
            },
            bytes_per_second: number(BYTES_PER_SECOND, field(self.bytes_per_second))?,
        };
        sample.check().map_err(|error| error.to_string())?;
        Ok(sample)
    }

    fn read_share(&self, record: &StringRecord) -> Result<f64, String> {
        match self.kind {
            Kind::ReadShare(place) => number(READ_SHARE, record.get(place).unwrap_or_default()),
            Kind::Access(place) => {
                let text = record.get(place).unwrap_or_default();
                match text.to_ascii_lowercase().as_str() {
                    "read" => Ok(1.0),
                    "write" => Ok(0.0),
                    _ => Err(format!("{ACCESS} is {text:?}, expected read or write")),
                }
            }
        }
    }
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{name} is {text:?}, expected a plain number such as 4096 or 1.5e9"))
}
