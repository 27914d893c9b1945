//! The operands of the campaigns, and the operator that applies them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{MergeOperator, OperatorError};

/// First byte of an operand that appends itself to the value, as the store's own operator does with all.
pub const APPENDS: u8 = b'+';

/// First byte of an operand that lengthens the value to the length that follows, 4 bytes in little-endian
/// order.
pub const GROWS: u8 = b'g';

/// First byte of an operand that removes the record.
pub const REMOVES: u8 = b'-';

/// The value of a key after an operand was written over `existing`.
pub fn applied(existing: Option<Vec<u8>>, operand: &[u8]) -> Option<Vec<u8>> {
    match operand {
        [REMOVES, ..] => None,
        [GROWS, length @ ..] => {
            let mut value = existing.unwrap_or_default();
            let length = length.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
            value.resize(length.max(value.len()), GROWS);
            Some(value)
        }
        _ => {
            let mut value = existing.unwrap_or_default();
            value.extend_from_slice(operand);
            Some(value)
        }
    }
}

/// Appends, lengthens and removes; fails for as long as it is told to.
#[derive(Clone, Default)]
pub struct MixedOperator {
    fails: Arc<AtomicBool>,
}

impl MixedOperator {
    /// Its name.
    pub const NAME: &str = "simtest.mixed";

    /// From now on it fails, or no longer does.
    pub fn set_failing(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }
}

impl MergeOperator for MixedOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, OperatorError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err("it was told to fail".into());
        }
        let existing = existing.map(<[u8]>::to_vec);
        Ok(operands.iter().fold(existing, |value, operand| applied(value, operand)))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let last = operands.last()?;
        if last.first() == Some(&REMOVES) {
            return Some(last.to_vec());
        }
        let all_append = operands.iter().all(|operand| operand.first() == Some(&APPENDS));
        (all_append && !self.fails.load(Ordering::Relaxed)).then(|| operands.concat())
    }
}
