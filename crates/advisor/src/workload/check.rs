//! The ranges of a workload's fields, and contradictions between fields.

use flashgrain_settings::Bytes;

use super::{Durability, Workload};
use crate::Error;

/// Shares that were typed with few digits may miss 1 by this much.
const SHARES_TOLERANCE: f64 = 1e-6;

const NAME_CHARACTERS_MAX: usize = 100;
const KEY_BYTES_MAX: u64 = 64 << 10;
const VALUE_BYTES_MAX: u64 = 1 << 30;
const RECORDS_MAX: u64 = 1_000_000_000_000_000;
const MEMORY_BYTES_MIN: u64 = 1 << 20;
const MEMORY_BYTES_MAX: u64 = 1 << 50;
const DRIVE_BYTES_MIN: u64 = 1 << 30;
const DRIVE_BYTES_MAX: u64 = 1 << 60;
const SKEW_MAX: f64 = 4.0;
const CLIENTS_MAX: u32 = 65_536;
const CORES_MAX: u32 = 4096;
const WINDOW_US_MAX: u64 = 60_000_000;
const DRIVE_WRITES_MAX: f64 = 1000.0;
const RATE_MAX: f64 = 1e9;

/// The same workload, after making sure that it can be.
///
/// # Errors
/// [`Error::Field`] with the field and its range.
pub fn checked(mut workload: Workload) -> Result<Workload, Error> {
    check(&workload)?;
    let operations = &mut workload.operations;
    let shares = [
        &mut operations.point_hits,
        &mut operations.point_misses,
        &mut operations.inserts,
        &mut operations.updates,
        &mut operations.deletes,
        &mut operations.ranges,
        &mut workload.skew,
    ];
    // Minus nothing is nothing.
    shares.into_iter().for_each(|share| *share += 0.0);
    Ok(workload)
}

fn check(workload: &Workload) -> Result<(), Error> {
    name(workload)?;
    shares(workload)?;
    whole("memory_bytes", workload.memory_bytes, MEMORY_BYTES_MIN, MEMORY_BYTES_MAX)?;
    records(workload)?;
    ranges(workload)?;
    real("skew", workload.skew, 0.0, SKEW_MAX)?;
    whole("clients", u64::from(workload.clients), 1, u64::from(CLIENTS_MAX))?;
    if let Some(cores) = workload.cores {
        whole("cores", u64::from(cores), 1, u64::from(CORES_MAX))?;
    }
    if let Some(rate) = workload.rate_per_second {
        above_zero("rate_per_second", rate, RATE_MAX)?;
    }
    if let Durability::Group { window_us } = workload.durability {
        whole("durability.window_us", window_us, 1, WINDOW_US_MAX)?;
    }
    if let Some(lifetime) = workload.lifetime {
        above_zero("lifetime.drive_writes_per_day", lifetime.drive_writes_per_day, DRIVE_WRITES_MAX)?;
        whole("lifetime.drive_bytes", lifetime.drive_bytes, DRIVE_BYTES_MIN, DRIVE_BYTES_MAX)?;
        let most = lifetime.drive_bytes / workload.records.record_bytes();
        if workload.records.count > most {
            let allowed = format!("1 to {most}, or the records do not fit on the drive");
            return Err(Error::field("records.count", workload.records.count, allowed));
        }
    }
    Ok(())
}

/// Names stand in comments of files that engines load.
fn name(workload: &Workload) -> Result<(), Error> {
    let name = &workload.name;
    let is_good =
        (1..=NAME_CHARACTERS_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    match is_good {
        true => Ok(()),
        false => {
            let allowed = format!("1 to {NAME_CHARACTERS_MAX} characters, without control characters");
            Err(Error::field("name", format!("{name:?}"), allowed))
        }
    }
}

fn shares(workload: &Workload) -> Result<(), Error> {
    let named = workload.operations.named();
    for (name, share) in named {
        real(&format!("operations.{name}"), share, 0.0, 1.0)?;
    }
    let sum: f64 = named.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > SHARES_TOLERANCE {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let allowed = format!("shares from 0 to 1 whose sum is 1 ({})", names.join(" + "));
        return Err(Error::field("operations", format!("a sum of shares of {sum}"), allowed));
    }
    Ok(())
}

fn records(workload: &Workload) -> Result<(), Error> {
    let records = workload.records;
    whole("records.count", records.count, 1, RECORDS_MAX)?;
    whole("records.key_bytes", records.key_bytes, 1, KEY_BYTES_MAX)?;
    // So many keys of this length there are; all numbers of eight bytes are above the most records.
    let keys = 256u64.checked_pow(records.key_bytes.min(8) as u32).unwrap_or(u64::MAX);
    if records.count > keys {
        let allowed = format!("1 to {keys}, as many as there are keys of {} bytes", records.key_bytes);
        return Err(Error::field("records.count", records.count, allowed));
    }
    bytes("records.value_bytes", records.value_bytes, 0, VALUE_BYTES_MAX)?;
    let most = workload.memory_bytes.saturating_sub(records.key_bytes);
    if records.value_bytes > most {
        let got = format!("{} of a record", Bytes(records.value_bytes));
        let allowed = format!("up to {} (memory_bytes without the key)", Bytes(most));
        return Err(Error::field("records.value_bytes", got, allowed));
    }
    Ok(())
}

fn ranges(workload: &Workload) -> Result<(), Error> {
    let (operations, records) = (workload.operations, workload.records);
    if operations.ranges == 0.0 {
        let allowed = "nothing, as long as operations.ranges is 0";
        return match operations.range_bytes {
            0 => Ok(()),
            other => Err(Error::field("operations.range_bytes", Bytes(other), allowed)),
        };
    }
    let most = (records.data_bytes().min((1u64 << 60) as f64)) as u64;
    bytes("operations.range_bytes", operations.range_bytes, records.record_bytes(), most)
}

fn whole(field: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(Error::field(field, value, format!("{min} to {max}"))),
    }
}

fn bytes(field: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(Error::field(field, Bytes(value), format!("{} to {}", Bytes(min), Bytes(max)))),
    }
}

fn real(field: &str, value: f64, min: f64, max: f64) -> Result<(), Error> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(Error::field(field, value, format!("{min} to {max}"))),
    }
}

fn above_zero(field: &str, value: f64, max: f64) -> Result<(), Error> {
    match value > 0.0 && value <= max {
        true => Ok(()),
        false => Err(Error::field(field, value, format!("more than 0, up to {max}"))),
    }
}
