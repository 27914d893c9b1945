//! Sizes as people type them.

/// Bytes from `4096`, `4K`, `4KiB`, `1.5GiB` (powers of 1024) or `1kB`, `1MB` (powers of 1000).
///
/// # Errors
/// The reason, and the forms that are understood.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const HELP: &str = "a size such as 4096, 4KiB (or 4K), 1.5GiB, or 4MB for powers of 1000";
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("unknown unit {:?}: expected {HELP}", unit.trim())),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| "larger than any drive".to_owned());
    }
    let bytes = number.parse::<f64>().map_err(|_| format!("not a number: expected {HELP}"))? * factor as f64;
    // Above 2^53, f64 cannot represent fractions of a byte; no drive is that large.
    if bytes.fract() != 0.0 || bytes >= 9e15 {
        return Err(format!("not a whole number of bytes: expected {HELP}"));
    }
    Ok(bytes as u64)
}
