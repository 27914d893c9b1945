//! How durable commits are, as numbers of C.

use flashgrain::Durability;

use crate::status::{Failure, Status};

/// How durable a commit is when it returns.
#[repr(i32)]
pub enum DurabilityCode {
    /// It survives a power cut.
    Sync = 0,
    /// It is written but not flushed: it survives the end of the process, not a power cut.
    Buffered = 1,
    /// It is in memory only, until a later commit or the background writer takes it along.
    None = 2,
}

/// The durability with this number.
///
/// # Errors
/// [`Status::Argument`] if there is none.
pub fn durability_of(code: i32) -> Result<Durability, Failure> {
    const SYNC: i32 = DurabilityCode::Sync as i32;
    const BUFFERED: i32 = DurabilityCode::Buffered as i32;
    const NONE: i32 = DurabilityCode::None as i32;
    match code {
        SYNC => Ok(Durability::Sync),
        BUFFERED => Ok(Durability::Buffered),
        NONE => Ok(Durability::None),
        _ => Err(Failure::new(Status::Argument, format!("there is no durability {code}"))),
    }
}
