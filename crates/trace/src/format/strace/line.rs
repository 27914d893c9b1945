//! The parts of a line that `strace` prints.

/// A finished call that has not failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
    /// The number that was returned.
    pub result: u64,
    /// The path that `strace -y` prints after a returned descriptor.
    pub result_path: Option<&'a str>,
    /// How long the call took, in nanoseconds, as of `strace -T`.
    pub took_ns: Option<u64>,
}

/// The beginning of a line: whatever `strace` was asked to print before each call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix<'a> {
    pub process: Option<u32>,
    pub time: Option<Time>,
    /// The call, or something else.
    pub rest: &'a str,
}

/// A time as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Nanoseconds since 1970 (`-ttt`), or since the line before (`-r`): both look alike.
    Seconds(u64),
    /// Nanoseconds since midnight (`-t`, `-tt`).
    OfDay(u64),
}

/// The largest number of a process; larger ones are seconds.
const PROCESS_MAX: u32 = 1 << 22;

/// Takes apart: `[pid 12]` or `12`, either with `<NAME>` after the number (`-f`, `-Y`); a time (`-t`, `-tt`,
/// `-ttt`, `-r`), the time since the line before as `(+0.5)` (`-t -r`); the number of the call and the place
/// of its instruction, both in brackets (`-n`, `-i`).
pub(super) fn prefix(text: &str) -> Prefix<'_> {
    let of_process =
        |text: &str| text.trim().split('<').next()?.parse().ok().filter(|one| *one <= PROCESS_MAX);
    let (process, rest) = match text.strip_prefix("[pid ").and_then(|text| text.split_once(']')) {
        Some((process, rest)) => (of_process(process), rest.trim_start()),
        None => match text.split_once(' ').map(|(word, rest)| (of_process(word), rest)) {
            Some((Some(process), rest)) => (Some(process), rest.trim_start()),
            _ => (None, text),
        },
    };
    let timed = rest.split_once(' ').and_then(|(word, rest)| Some((time(word)?, rest.trim_start())));
    let (time, rest) = timed.map_or((None, rest), |(time, rest)| (Some(time), rest));
    let rest = match rest.strip_prefix("(+").and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest,
    };
    Prefix { process, time, rest: without_numbers(rest) }
}

/// `text` without up to two numbers in brackets.
fn without_numbers(text: &str) -> &str {
    let without_one = |text| {
        let (number, rest) = str::strip_prefix(text, "[")?.split_once("] ")?;
        let number = number.trim_start();
        let is_number = |byte: u8| byte.is_ascii_hexdigit() || byte == b'?';
        (!number.is_empty() && number.bytes().all(is_number)).then(|| rest.trim_start())
    };
    let text = without_one(text).unwrap_or(text);
    without_one(text).unwrap_or(text)
}

fn time(text: &str) -> Option<Time> {
    let Some((hours, rest)) = text.split_once(':') else {
        // Whole seconds are too large for the number of a process.
        let whole = || text.parse::<u64>().ok()?.checked_mul(SECOND_NS);
        return nanoseconds(text).or_else(whole).map(Time::Seconds);
    };
    let (minutes, seconds) = rest.split_once(':')?;
    let two = |digits: &str| (digits.len() == 2).then(|| digits.parse::<u64>().ok())?;
    let seconds_ns = nanoseconds(seconds).or_else(|| two(seconds)?.checked_mul(SECOND_NS))?;
    Some(Time::OfDay((two(hours)? * 60 + two(minutes)?) * 60 * SECOND_NS + seconds_ns))
}

const SECOND_NS: u64 = 1_000_000_000;

const DAY_NS: u64 = 24 * 60 * 60 * SECOND_NS;

/// Seconds since 1970 before which no trace was made.
const EPOCH_S_MIN: u64 = 100_000_000;

/// Makes times of lines that can be compared, in nanoseconds.
#[derive(Default)]
pub(super) struct Clock {
    /// Whether seconds count from the line before on; told by the first ones.
    is_relative: Option<bool>,
    /// Of the day, and days that have passed.
    of_day_ns: u64,
    days: u64,
    /// Of the line before, where that counts.
    sum_ns: u64,
}

impl Clock {
    /// The time of the next line: each line has to be given, in order, as times may count from the line
    /// before on. A day begins where the time goes back by more than half a day.
    pub fn next(&mut self, time: Option<Time>) -> u64 {
        match time {
            None => self.sum_ns,
            Some(Time::OfDay(ns)) => {
                if self.of_day_ns > ns.saturating_add(DAY_NS / 2) {
                    self.days += 1;
                }
                self.of_day_ns = ns;
                self.days.saturating_mul(DAY_NS).saturating_add(ns)
            }
            Some(Time::Seconds(ns)) => {
                match self.is_relative.get_or_insert(ns < EPOCH_S_MIN * SECOND_NS) {
                    true => self.sum_ns = self.sum_ns.saturating_add(ns),
                    false => return ns,
                }
                self.sum_ns
            }
        }
    }
}

/// Seconds with one to nine digits after the point: `strace -ttt` and `strace -T` have six, unless they are
/// asked for others.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_fraction =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let fraction: u64 = is_fraction.then(|| format!("{fraction:0<9}").parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(SECOND_NS)?.checked_add(fraction)
}

/// Whether `text`, without its prefix, begins like a call.
pub(super) fn is_call(text: &str) -> bool {
    let Some((name, rest)) = text.split_once('(') else { return false };
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.bytes().all(is_name)
        && (rest.contains(')') || super::ENDS_LATER.iter().any(|end| rest.ends_with(end)))
}

/// The beginning of a call whose line `strace` has interrupted with a message of its own; the rest is in the
/// next line.
pub(super) fn interrupted(text: &str) -> Option<&str> {
    let (begin, message) = text.split_once("strace: ")?;
    let is_message =
        message.ends_with("attached") || message.ends_with("detached") || message.starts_with("[ Process");
    (is_message && begin.contains('(') && !begin.contains(" = ")).then_some(begin)
}

/// Whether `text`, without its prefix, is a message of `strace` instead of a call.
pub(super) fn is_aside(text: &str) -> bool {
    ["+++", "---", "strace: ", "[ Process PID=", "> "].iter().any(|begin| text.starts_with(begin))
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

/// The path in angle brackets at the beginning of `text`.
fn bracketed(text: &str) -> Option<&str> {
    text.strip_prefix('<')?.split_once('>').map(|(path, _)| path)
}

/// The descriptor at the beginning of the arguments, and the path that `strace -y` prints after it.
pub(super) fn descriptor(arguments: &str) -> Option<(u32, Option<&str>)> {
    let digits = arguments.split(|character: char| !character.is_ascii_digit()).next()?;
    let behind = arguments.get(digits.len()..).unwrap_or_default();
    Some((digits.parse().ok()?, bracketed(behind)))
}

/// The first quoted argument, with its escapes.
pub(super) fn path(arguments: &str) -> Option<&str> {
    let (_, quoted) = arguments.split_once('"')?;
    let mut is_escaped = false;
    let end = quoted.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    quoted.get(..end?)
}

/// A path without the escapes of C that `strace` prints in it. Bytes that are no text become the sign that
/// stands for such.
pub(super) fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            found.push(byte);
            continue;
        }
        let (digits, radix) = match rest {
            [b'x', digits @ ..] => (digits, 16),
            digits => (digits, 8),
        };
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let length = digits.iter().take(if radix == 8 { 3 } else { 2 }).take_while(is_digit).count();
        let number = digits.get(..length).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(number) = number.and_then(|digits| u32::from_str_radix(digits, radix).ok()) {
            found.push(number as u8);
            rest = digits.get(length..).unwrap_or_default();
        } else if let Some((&escaped, after)) = rest.split_first() {
            let plain = match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'v' => 11,
                b'f' => 12,
                other => other,
            };
            found.push(plain);
            rest = after;
        }
    }
    String::from_utf8_lossy(&found).into_owned()
}

/// The last argument but `from_end`, as a number.
pub(super) fn number_from_end(arguments: &str, from_end: usize) -> Option<u64> {
    arguments.rsplit(", ").nth(from_end)?.parse().ok()
}

/// The number after `key`, such as `st_size=`.
pub(super) fn number_behind(text: &str, key: &str) -> Option<u64> {
    let behind = text.split(key).nth(1)?;
    behind.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}
