//! Sizes, shares and times as people type them.

use std::ops::{Bound, RangeBounds};

use flashgrain_profile::load::Region;
pub use flashgrain_profile::settings::parse_bytes;

/// As [`parse_bytes`], and more than zero.
pub fn parse_positive_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("must be more than zero".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A count, typed as `1000000`, `1M` or `2.5k`: suffixes are powers of 1000, as nothing is counted in KiB.
pub fn parse_count(text: &str) -> Result<u64, String> {
    const HELP: &str = "expected a count, such as 250000, 250k, 1.5M or 2G";
    let text = text.trim();
    let (number, zeros) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 3),
        Some((at, 'm' | 'M')) => (&text[..at], 6),
        Some((at, 'g' | 'G' | 'b' | 'B')) => (&text[..at], 9),
        Some((at, 't' | 'T')) => (&text[..at], 12),
        _ => (text, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || !is_digits(whole)
        || !is_digits(part)
        || part.len() > zeros
        || number.ends_with('.')
    {
        return Err(HELP.to_owned());
    }
    // Exact, as floating-point numbers would not be.
    format!("{whole}{part}{}", "0".repeat(zeros - part.len())).parse().map_err(|_| HELP.to_owned())
}

/// As [`parse_count`], within a range.
pub fn count_within<T: TryFrom<u64>>(
    range: impl RangeBounds<u64> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(parse_count(text)?, &range)
}

/// As [`parse_bytes`], within a range.
pub fn size_within<T: TryFrom<u64>>(
    range: impl RangeBounds<u64> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(parse_bytes(text)?, &range)
}

fn within<T: TryFrom<u64>>(number: u64, range: &impl RangeBounds<u64>) -> Result<T, String> {
    let bound = |bound: Bound<&u64>| match bound {
        Bound::Included(number) | Bound::Excluded(number) => number.to_string(),
        Bound::Unbounded => String::new(),
    };
    match T::try_from(number) {
        Ok(fits) if range.contains(&number) => Ok(fits),
        _ if matches!(range.end_bound(), Bound::Unbounded) && range.contains(&number) => {
            Err(format!("{number} is more than this can be"))
        }
        _ => Err(format!("{number} is not in {}..={}", bound(range.start_bound()), bound(range.end_bound()))),
    }
}

/// A share from 0 to 1, typed as `0.7` or `70%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    const HELP: &str = "expected a share from 0 to 1, or from 0% to 100%";
    let text = text.trim();
    let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent.trim_end(), 100.0));
    let share = number.parse::<f64>().map_err(|_| HELP.to_owned())? / divisor;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(HELP.to_owned()) }
}

/// A positive, finite number of seconds, at most a year; `90`, `90s`, `1.5m` or `2h`.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    const HELP: &str = "expected a time above zero and up to a year, such as 60, 90s, 1.5m or 2h";
    let text = text.trim();
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().map_err(|_| HELP.to_owned())? * factor;
    if seconds > 0.0 && seconds <= 366.0 * 86_400.0 { Ok(seconds) } else { Err(HELP.to_owned()) }
}

/// A positive, finite rate per second.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("expected a number of requests per second above zero".to_owned()),
    }
}

/// A factor above zero.
pub fn parse_factor(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
        _ => Err("expected a factor above zero, such as 2 or 0.5".to_owned()),
    }
}

/// A range, typed as `OFFSET:LENGTH`.
pub fn parse_region(text: &str) -> Result<Region, String> {
    let (offset, length) = text.split_once(':').ok_or("expected OFFSET:LENGTH, such as 1GiB:256MiB")?;
    Ok(Region { offset_bytes: parse_bytes(offset)?, length_bytes: parse_positive_bytes(length)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_mean_what_storage_people_type() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4 kib", 4096),
            ("4kB", 4000),
            ("1.5GiB", 3 << 29),
            ("1T", 1 << 40),
            ("512B", 512),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn nonsense_sizes_are_refused() {
        for text in [
            "",
            "K",
            "-1",
            "4X",
            "1.3",
            "0.0001KiB",
            "99999999999999999999",
            "20000000T",
            "1e3",
            "4 4K",
            "NaN",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert!(parse_positive_bytes("0").is_err());
    }

    #[test]
    fn counts_have_suffixes_and_are_exact() {
        for (text, count) in [
            ("0", 0),
            ("250000", 250_000),
            ("250k", 250_000),
            ("1M", 1_000_000),
            ("1.5M", 1_500_000),
            ("12T", 12_000_000_000_000),
            ("9007199254740993", 9_007_199_254_740_993),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in ["", "k", "-1", "1.5", "1.2345k", "1.M", ".5M", "1Ki", "1e6", "99999999T", "é"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        let count = count_within::<u32>(1..=100_000);
        assert_eq!(count("100k"), Ok(100_000));
        assert_eq!(count("0"), Err("0 is not in 1..=100000".into()));
        assert_eq!(count_within::<u32>(1..)("5G"), Err("5000000000 is more than this can be".into()));
        assert_eq!(size_within::<u32>(8..=1024)("1K"), Ok(1024));
    }

    #[test]
    fn shares_are_between_zero_and_one() {
        assert_eq!(parse_share("70%"), Ok(0.7));
        assert_eq!(parse_share("1"), Ok(1.0));
        for text in ["3", "-0.1", "101%", "NaN", "%", ""] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(parse_seconds("1.5m"), Ok(90.0));
        assert_eq!(parse_seconds("0.2"), Ok(0.2));
        for text in ["0", "-5", "inf", "NaN", "", "s", "1e9", "é"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,24}") {
            let _ = parse_bytes(&text);
            let _ = parse_share(&text);
            let _ = parse_seconds(&text);
            let _ = parse_rate(&text);
            let _ = parse_factor(&text);
            let _ = parse_count(&text);
        }

        #[test]
        fn whole_numbers_of_a_unit_are_exact(count in 0_u64..1 << 23) {
            prop_assert_eq!(parse_bytes(&format!("{count}TiB")), Ok(count << 40));
            prop_assert_eq!(parse_bytes(&format!("{count}K")), Ok(count << 10));
        }
    }
}
