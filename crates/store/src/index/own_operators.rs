//! The merge operators that every store knows.

use super::operator::{MergeOperator, OperatorError, Operators};
use crate::sync::Arc;

/// Adds numbers of eight bytes, little-endian, signed or not: a counter. Its name is `flashgrain.add`.
///
/// The sum wraps around at its bounds. A record that is not there counts as 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddOperator;

impl AddOperator {
    /// For [`TreeOptions::merge_operator`](crate::TreeOptions::merge_operator).
    pub const NAME: &str = "flashgrain.add";

    fn sum<'a>(numbers: impl Iterator<Item = &'a [u8]>) -> Result<u64, OperatorError> {
        let mut sum = 0_u64;
        for number in numbers {
            let bytes = <[u8; 8]>::try_from(number)
                .map_err(|_| format!("a number has 8 bytes, and this one {}", number.len()))?;
            sum = sum.wrapping_add(u64::from_le_bytes(bytes));
        }
        Ok(sum)
    }
}

impl MergeOperator for AddOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, OperatorError> {
        let sum = Self::sum(existing.into_iter().chain(operands.iter().copied()))?;
        Ok(Some(sum.to_le_bytes().to_vec()))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Self::sum(operands.iter().copied()).ok().map(|sum| sum.to_le_bytes().to_vec())
    }
}

/// Appends bytes to the value. Its name is `flashgrain.append`.
///
/// A record that is not there counts as empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppendOperator;

impl AppendOperator {
    /// For [`TreeOptions::merge_operator`](crate::TreeOptions::merge_operator).
    pub const NAME: &str = "flashgrain.append";
}

impl MergeOperator for AppendOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, OperatorError> {
        let mut value = existing.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| value.extend_from_slice(operand));
        Ok(Some(value))
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

/// The operators that every store knows.
pub(crate) fn own_operators() -> Operators {
    let mut operators = Operators::default();
    operators.add(Arc::new(AddOperator));
    operators.add(Arc::new(AppendOperator));
    operators
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_whatever_their_sign() {
        let bytes = |number: i64| number.to_le_bytes().to_vec();
        let merge =
            |existing: Option<&[u8]>, operands: &[&[u8]]| AddOperator.full_merge(b"k", existing, operands);
        assert_eq!(merge(None, &[&bytes(-3)]).unwrap(), Some(bytes(-3)));
        assert_eq!(merge(Some(&bytes(5)), &[&bytes(-3), &bytes(-9)]).unwrap(), Some(bytes(-7)));
        assert_eq!(AddOperator.partial_merge(b"k", &[&bytes(-1), &bytes(1)]), Some(bytes(0)));
        assert!(merge(Some(b"seven"), &[&bytes(1)]).unwrap_err().to_string().contains("this one 5"));
        assert_eq!(AddOperator.partial_merge(b"k", &[b"x", &bytes(1)]), None);
    }

    #[test]
    fn bytes_are_appended() {
        let merged = AppendOperator.full_merge(b"k", Some(b"a"), &[b"b", b"cd"]).unwrap();
        assert_eq!(merged, Some(b"abcd".to_vec()));
        assert_eq!(AppendOperator.partial_merge(b"k", &[b"b", b"cd"]), Some(b"bcd".to_vec()));
    }
}
