//! The parts of a line that `strace` prints.

/// A finished call that has not failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
    /// The number that was returned.
    pub result: u64,
    /// The path that `strace -y` prints behind a returned descriptor.
    pub result_path: Option<&'a str>,
    /// How long the call took, in nanoseconds, as of `strace -T`.
    pub took_ns: Option<u64>,
}

/// The process, the time in nanoseconds, and the rest of a line.
pub(super) fn prefix(text: &str) -> (Option<u32>, u64, &str) {
    let (process, text) = match text.strip_prefix("[pid ").and_then(|text| text.split_once(']')) {
        Some((process, rest)) => (process.trim().parse().ok(), rest.trim_start()),
        None => match text.split_once(' ').map(|(word, rest)| (word.parse().ok(), rest)) {
            Some((Some(process), rest)) => (Some(process), rest.trim_start()),
            _ => (None, text),
        },
    };
    let time = text.split_once(' ').and_then(|(word, rest)| Some((nanoseconds(word)?, rest.trim_start())));
    let (time_ns, text) = time.unwrap_or((0, text));
    (process, time_ns, text)
}

/// Seconds with one to nine digits after the point: `strace -ttt` and `strace -T` have six, unless they are
/// asked for others.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_fraction =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let fraction: u64 = is_fraction.then(|| format!("{fraction:0<9}").parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Whether `text`, without its prefix, begins like a call.
pub(super) fn is_call(text: &str) -> bool {
    let Some((name, rest)) = text.split_once('(') else { return false };
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_name) && (rest.contains(')') || rest.ends_with(super::UNFINISHED))
}

/// A whole call; `None` if it has failed or is none.
pub(super) fn call(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let result = result.trim();
    let digits = result.split(|character: char| !character.is_ascii_digit()).next()?;
    let took = result.rsplit_once(" <").and_then(|(_, took)| nanoseconds(took.strip_suffix('>')?));
    let behind = result.get(digits.len()..).unwrap_or_default();
    Some(Call {
        name,
        arguments,
        result: digits.parse().ok()?,
        result_path: bracketed(behind),
        took_ns: took,
    })
}

/// The path in angle brackets with which `text` begins.
fn bracketed(text: &str) -> Option<&str> {
    text.strip_prefix('<')?.split_once('>').map(|(path, _)| path)
}

/// The descriptor with which the arguments begin, and the path that `strace -y` prints behind it.
pub(super) fn descriptor(arguments: &str) -> Option<(u32, Option<&str>)> {
    let digits = arguments.split(|character: char| !character.is_ascii_digit()).next()?;
    let behind = arguments.get(digits.len()..).unwrap_or_default();
    Some((digits.parse().ok()?, bracketed(behind)))
}

/// The first quoted argument.
pub(super) fn path(arguments: &str) -> Option<&str> {
    arguments.split('"').nth(1)
}

/// The last argument but `from_end`, as a number.
pub(super) fn number_from_end(arguments: &str, from_end: usize) -> Option<u64> {
    arguments.rsplit(", ").nth(from_end)?.parse().ok()
}

/// The number behind `key`, such as `st_size=`.
pub(super) fn number_behind(text: &str, key: &str) -> Option<u64> {
    let behind = text.split(key).nth(1)?;
    behind.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}
