//! Physical ranges of a profile's numbers: nothing that no drive could show leaves the file.
//!
//! Units are in the names of the keys, and so the name of a key, or its end, decides the range. The numbers
//! of an estimate (`value`, `low`, `high`) and of a list have the range of the key that holds it. A key that
//! no rule knows gets the range of a plain number, which only keeps arithmetic away from overflow.

use serde_json::Value;

/// Permitted values of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    min: f64,
    max: f64,
    /// Zero lies below `min`, but means that there is none.
    or_zero: bool,
}

impl Range {
    const fn new(min: f64, max: f64) -> Self {
        Self { min, max, or_zero: false }
    }

    const fn positive(min: f64, max: f64) -> Self {
        Self { min, max, or_zero: true }
    }

    fn contains(self, number: f64) -> bool {
        (self.min..=self.max).contains(&number) || (self.or_zero && number == 0.0)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let zero = if self.or_zero { "0 or " } else { "" };
        write!(formatter, "{zero}between {:e} and {:e}", self.min, self.max)
    }
}

const FRACTION: Range = Range::new(0.0, 1.0);
const CONCURRENCY: Range = Range::new(1.0, 1e9);
const REQUEST_BYTES: Range = Range::new(1.0, 1e15);
const BYTES: Range = Range::new(0.0, u64::MAX as f64);
const COUNT: Range = Range::new(0.0, u64::MAX as f64);
const BYTES_PER_SECOND: Range = Range::positive(1e-3, 1e18);
/// A model may promise more than any drive has.
const PREDICTED_BYTES_PER_SECOND: Range = Range::positive(1e-9, 1e30);
const PER_SECOND: Range = Range::positive(1e-9, 1e18);
const SECONDS: Range = Range::positive(1e-18, 1e12);
const MICROSECONDS: Range = Range::positive(1e-12, 1e18);
const SECONDS_PER_BYTE: Range = Range::positive(1e-30, 1e6);
const RELATIVE_ERROR: Range = Range::new(0.0, 1e30);
const R_SQUARED: Range = Range::new(-1e60, 1.0);
/// The constants of a cost curve span more than the costs themselves.
const CURVE_CONSTANT: Range = Range::positive(1e-60, 1e60);
const PLAIN: Range = Range::new(-1e30, 1e30);

/// Below this a number that is not zero is the debris of an underflow.
const MAGNITUDE_MIN: f64 = 1e-60;

/// Ranges of keys by their whole names, then by their ends; the first that fits counts.
const BY_NAME: &[(&str, Range)] = &[
    ("read_share", FRACTION),
    ("random_share", FRACTION),
    ("confidence", FRACTION),
    ("request_bytes", REQUEST_BYTES),
    ("concurrency", CONCURRENCY),
    ("at_concurrency", CONCURRENCY),
    ("measured_concurrency", CONCURRENCY),
    ("concurrency_min", CONCURRENCY),
    ("concurrency_max", CONCURRENCY),
    ("predicted_bytes_per_second", PREDICTED_BYTES_PER_SECOND),
    ("numerator", CURVE_CONSTANT),
    ("denominator", CURVE_CONSTANT),
    ("r_squared", R_SQUARED),
    ("adjusted_r_squared", R_SQUARED),
    ("noise", RELATIVE_ERROR),
    ("count", COUNT),
    ("seed", COUNT),
];
const BY_END: &[(&str, Range)] = &[
    ("bytes_per_second", BYTES_PER_SECOND),
    ("bytes_per_second_min", BYTES_PER_SECOND),
    ("bytes_per_second_max", BYTES_PER_SECOND),
    ("bytes_per_second_per_stream", PREDICTED_BYTES_PER_SECOND),
    ("seconds_per_byte", SECONDS_PER_BYTE),
    ("_per_second", PER_SECOND),
    ("relative_error", RELATIVE_ERROR),
    ("_bytes", BYTES),
    ("_us", MICROSECONDS),
    ("_us_min", MICROSECONDS),
    ("_us_max", MICROSECONDS),
    ("_us_per_request", MICROSECONDS),
    ("_us_per_operation", MICROSECONDS),
    ("_seconds", SECONDS),
    ("_s", SECONDS),
];

/// The keys of an estimate and of a model's kinds, which take the range of the key above them.
const PARTS: &[&str] = &["estimate", "value", "low", "high", "reads", "writes"];

fn range_of(key: &str) -> Range {
    let named = BY_NAME.iter().find(|(name, _)| *name == key);
    named.or_else(|| BY_END.iter().find(|(end, _)| key.ends_with(end))).map_or(PLAIN, |(_, range)| *range)
}

/// Checks every number of a profile.
///
/// # Errors
/// In words: the path of the number, its value, and the range that it misses.
pub(crate) fn check(profile: &Value) -> Result<(), String> {
    walk(profile, &mut String::new(), PLAIN)
}

fn walk(value: &Value, path: &mut String, range: Range) -> Result<(), String> {
    let length = path.len();
    match value {
        Value::Number(number) => check_number(number.as_f64().unwrap_or(f64::NAN), path, range)?,
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, path, range)?;
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                let inherits = PARTS.contains(&key.as_str());
                walk(field, path, if inherits { range } else { range_of(key) })?;
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

fn check_number(number: f64, path: &str, range: Range) -> Result<(), String> {
    if range.contains(number) && (number == 0.0 || number.abs() >= MAGNITUDE_MIN) {
        return Ok(());
    }
    Err(format!("{path} is {number:e}, but must be {range}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_unit_has_its_range_and_the_message_names_field_and_value() {
        let point = |key: &str, number: f64| json!({ "measurements": { "order": [{ key: number }] } });
        for key in ["bytes_per_second", "mean_us", "used_s", "chunk_bytes", "read_share", "confidence", "x"] {
            for absurd in [1e308, -1e308, 5e-324] {
                let problem = check(&point(key, absurd)).unwrap_err();
                let said = format!("measurements.order[0].{key} is {absurd:e}, but must be ");
                assert!(problem.starts_with(&said), "{problem}");
            }
        }
        for (key, number) in [("bytes_per_second", 2e9), ("mean_us", 0.0), ("x", -3.5), ("r_squared", -40.0)]
        {
            check(&point(key, number)).unwrap();
        }
        let problem = check(&point("concurrency", 0.5)).unwrap_err();
        assert!(problem.ends_with("is 5e-1, but must be between 1e0 and 1e9"), "{problem}");
    }

    #[test]
    fn estimates_and_lists_take_the_range_of_their_key() {
        let estimate = json!({ "stripe_bytes": { "estimate": { "value": 1.0, "low": -1.0, "high": 2.0 } } });
        assert!(check(&estimate).unwrap_err().starts_with("stripe_bytes.estimate.low is -1e0"));
        let list = json!({ "numerator": [0.0, 1e-80] });
        assert!(check(&list).unwrap_err().starts_with("numerator[1] is 1e-80"));
        let kind = json!({ "seconds_per_byte": { "reads": 1e10 } });
        assert!(check(&kind).unwrap_err().starts_with("seconds_per_byte.reads"));
    }
}
