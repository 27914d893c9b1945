//! Numbers with units, for people.

/// Quantity of a number; decides how the number is printed and which tick marks an axis gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, in binary multiples.
    Bytes,
    /// Bytes per second, in binary multiples.
    Rate,
    /// Seconds, down to nanoseconds.
    Seconds,
    /// A share; 1 is 100 %.
    Share,
    /// Things without a unit.
    Count,
    /// Numbers whose unit is written elsewhere.
    Plain,
}

impl Unit {
    /// The number with its unit, to three significant digits.
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".into();
        }
        if self == Self::Share {
            return percent(value);
        }
        // Rounding may reach the next multiple: 1023.9 KiB is 1 MiB, not 1024 KiB.
        let (factor, _) = self.scale_for(value);
        let rounded = round_for_people(value / factor) * factor;
        let (factor, suffix) = self.scale_for(rounded);
        format!("{}{suffix}", three_digits(rounded / factor))
    }

    /// The multiple of the unit that suits a number of this magnitude: factor, and suffix with its space.
    pub(crate) fn scale_for(self, value: f64) -> (f64, &'static str) {
        const KI: f64 = 1024.0;
        let steps: &[(f64, &str)] = match self {
            Self::Bytes => &[
                (1.0, " B"),
                (KI, " KiB"),
                (KI * KI, " MiB"),
                (KI * KI * KI, " GiB"),
                (KI * KI * KI * KI, " TiB"),
            ],
            Self::Rate => &[
                (1.0, " B/s"),
                (KI, " KiB/s"),
                (KI * KI, " MiB/s"),
                (KI * KI * KI, " GiB/s"),
                (KI * KI * KI * KI, " TiB/s"),
            ],
            Self::Seconds => &[(1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1.0, " s")],
            Self::Share => return (0.01, " %"),
            Self::Plain => return (1.0, ""),
            Self::Count => &[(1.0, ""), (1e3, " k"), (1e6, " M"), (1e9, " G")],
        };
        // A count below ten thousand reads better in full.
        let magnitude =
            if self == Self::Count && value.abs() < 10_000.0 { 1.0 } else { value.abs() * (1.0 + 1e-12) };
        let fitting = steps.iter().rev().find(|(factor, _)| magnitude >= *factor);
        // Zero takes the unit that needs no prefix.
        let plain = if self == Self::Seconds && value == 0.0 { (1.0, " s") } else { steps[0] };
        fitting.copied().unwrap_or(plain)
    }

    /// A value and its interval in one unit, such as `2.70 (2.64 – 2.77) GiB/s`; the interval is left out
    /// where it does not differ in the digits shown.
    pub fn show_interval(self, value: f64, low: f64, high: f64) -> String {
        if low == high {
            return self.show(value);
        }
        let (factor, suffix) = self.scale_for(value);
        let numbers = [value, low, high].map(|number| number / factor);
        let all_whole = numbers.iter().all(|number| round_for_people(*number).fract() == 0.0);
        let [value, low, high] = numbers.map(|number| {
            let decimals = if all_whole { 0 } else { decimals_of(number) };
            with_decimals(number, decimals)
        });
        if value == low && value == high {
            return format!("{value}{suffix}");
        }
        format!("{value} ({low} – {high}){suffix}")
    }
}

/// Three significant digits, or all digits before the point; whole numbers get no decimals.
pub(crate) fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let rounded = round_for_people(value);
    let decimals = if rounded == rounded.trunc() { 0 } else { decimals_of(rounded) };
    with_decimals(rounded, decimals)
}

/// One decimal, or as many as the first digit needs; none from 100 % on.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 99.95 {
        return format!("{percent:.0} %");
    }
    let decimals = if percent == 0.0 { 0.0 } else { -(percent.abs().log10() + 1e-12).floor() };
    let decimals = decimals.clamp(1.0, 6.0) as usize;
    let text = format!("{percent:.decimals$}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

fn with_decimals(number: f64, decimals: usize) -> String {
    let sign = if number < 0.0 { "−" } else { "" };
    format!("{sign}{:.decimals$}", number.abs())
}

fn round_for_people(value: f64) -> f64 {
    let shift = 10_f64.powi(decimals_of(value) as i32);
    (value * shift).round() / shift
}

/// Decimals that leave three significant digits.
fn decimals_of(value: f64) -> usize {
    if value == 0.0 {
        return 0;
    }
    let exponent = (value.abs().log10() + 1e-12).floor() as i32;
    (2 - exponent).clamp(0, 12) as usize
}

/// Bytes, such as `64 KiB`.
pub fn bytes(value: f64) -> String {
    Unit::Bytes.show(value)
}

/// Bytes per second, such as `1.5 GiB/s`.
pub fn rate(value: f64) -> String {
    Unit::Rate.show(value)
}

/// Seconds, such as `118 µs`.
pub fn seconds(value: f64) -> String {
    Unit::Seconds.show(value)
}

/// Microseconds, such as `118 µs` or `4.5 ms`.
pub fn micros(value: f64) -> String {
    Unit::Seconds.show(value * 1e-6)
}

/// A share as a percentage, such as `12.5 %`.
pub fn share(value: f64) -> String {
    Unit::Share.show(value)
}

/// A number of things, such as `512` or `123 k`.
pub fn count(value: f64) -> String {
    Unit::Count.show(value)
}

/// The name of `number` things, from its singular.
pub fn plural(number: u64, name: &str) -> String {
    let ending = match name {
        _ if number == 1 => "",
        _ if ["s", "x", "sh", "ch"].iter().any(|sound| name.ends_with(sound)) => "es",
        _ => "s",
    };
    format!("{name}{ending}")
}

/// A number of things by their name in the singular: `1 record`, `12 k records`, `2 flushes`.
pub fn things(number: u64, name: &str) -> String {
    format!("{} {}", count(number as f64), plural(number, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_in_the_singular() {
        let things = [(0, "tree"), (1, "tree"), (2, "look-up"), (1, "miss"), (2, "miss"), (12_345, "flush")];
        let shown = things.map(|(number, name)| super::things(number, name));
        assert_eq!(shown, ["0 trees", "1 tree", "2 look-ups", "1 miss", "2 misses", "12.3 k flushes"]);
    }

    #[test]
    fn sizes_take_the_largest_binary_multiple_that_fits() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(1_048_576.0), "1 MiB");
        assert_eq!(bytes(0.0), "0 B");
    }

    #[test]
    fn rounding_reaches_the_next_multiple() {
        assert_eq!(bytes(1024.0 * 1023.9), "1 MiB");
        assert_eq!(seconds(999.9e-6), "1 ms");
        assert_eq!(rate(1023.99 * 1024.0 * 1024.0), "1 GiB/s");
    }

    #[test]
    fn times_go_from_nanoseconds_to_seconds() {
        assert_eq!(seconds(118e-6), "118 µs");
        assert_eq!(micros(4500.0), "4.50 ms");
        assert_eq!(seconds(2.5e-8), "25 ns");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(61.24), "61.2 s");
    }

    #[test]
    fn three_digits_never_become_four() {
        assert_eq!(three_digits(9.999), "10");
        assert_eq!(three_digits(9.96), "9.96");
        assert_eq!(three_digits(99.96), "100");
        assert_eq!(three_digits(0.012_345), "0.0123");
        assert_eq!(three_digits(-1.5), "−1.50");
        assert_eq!(three_digits(123_456.0), "123456");
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        assert_eq!(rate(f64::NAN), "–");
        assert_eq!(three_digits(f64::INFINITY), "–");
    }

    #[test]
    fn counts_stay_whole_below_ten_thousand() {
        assert_eq!(count(9_999.0), "9999");
        assert_eq!(count(123_456.0), "123 k");
    }

    #[test]
    fn shares_have_one_decimal_unless_they_are_tiny() {
        assert_eq!(share(0.1234), "12.3 %");
        assert_eq!(share(0.034), "3.4 %");
        assert_eq!(share(1.0), "100 %");
        assert_eq!(share(13.062), "1306 %");
        assert_eq!(share(0.0003), "0.03 %");
        assert_eq!(share(0.0), "0 %");
    }

    #[test]
    fn an_interval_shares_the_unit_of_its_value() {
        assert_eq!(Unit::Rate.show_interval(2.0e9, 1.0e9, 3.0e9), "1.86 (0.931 – 2.79) GiB/s");
        assert_eq!(Unit::Count.show_interval(3.0, 2.5, 4.0), "3.00 (2.50 – 4.00)");
        assert_eq!(Unit::Count.show_interval(1.234, 1.2301, 1.2349), "1.23");
        assert_eq!(Unit::Count.show_interval(48.0, 44.0, 55.0), "48 (44 – 55)");
        assert_eq!(Unit::Bytes.show_interval(4096.0, 4096.0, 4096.0), "4 KiB");
    }
}
