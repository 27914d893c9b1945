//! Sizes, shares and times as people type them.

use flashgrain_profile::load::Region;
pub use flashgrain_profile::settings::parse_bytes;

/// As [`parse_bytes`], and more than zero.
pub fn parse_positive_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("must be more than zero".to_owned()),
        bytes => Ok(bytes),
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
        }

        #[test]
        fn whole_numbers_of_a_unit_are_exact(count in 0_u64..1 << 23) {
            prop_assert_eq!(parse_bytes(&format!("{count}TiB")), Ok(count << 40));
            prop_assert_eq!(parse_bytes(&format!("{count}K")), Ok(count << 10));
        }
    }
}
