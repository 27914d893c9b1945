//! Operands of a key that are kept together, in the order of their writes.
//!
//! ```text
//! | bytes of the first, varint | the first | bytes of the second, varint | the second | …
//! ```
//!
//! The concatenation of two lists is a list.

use crate::varint;

/// Appends an operand to a list.
pub(crate) fn push(list: &mut Vec<u8>, operand: &[u8]) {
    varint::put(operand.len() as u64, list);
    list.extend_from_slice(operand);
}

/// Bytes of an operand in a list.
pub(crate) fn length(operand: &[u8]) -> usize {
    varint::length(operand.len() as u64) as usize + operand.len()
}

/// The operands of a list; `None` if it is none, or has no operand.
pub(crate) fn all(mut list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !list.is_empty() {
        let length = usize::try_from(varint::take(&mut list)?).ok()?;
        let (operand, rest) = list.split_at_checked(length)?;
        found.push(operand);
        list = rest;
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn operands_come_back_in_their_order(one: Vec<Vec<u8>>, other: Vec<Vec<u8>>) {
            let list = |operands: &[Vec<u8>]| {
                let mut list = Vec::new();
                operands.iter().for_each(|operand| push(&mut list, operand));
                list
            };
            prop_assert_eq!(list(&one).len(), one.iter().map(|operand| length(operand)).sum::<usize>());
            let both = [list(&one), list(&other)].concat();
            let expected: Vec<&[u8]> = one.iter().chain(&other).map(Vec::as_slice).collect();
            prop_assert_eq!(all(&both), Some(expected).filter(|expected| !expected.is_empty()));
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>) {
            if let Some(operands) = all(&bytes) {
                prop_assert!(operands.iter().map(|operand| operand.len()).sum::<usize>() < bytes.len());
            }
        }
    }
}
