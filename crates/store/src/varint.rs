//! Numbers in as few bytes as they need: seven bits per byte, the lowest first; the highest bit says that
//! more follow (LEB128).

/// Appends `number`.
#[inline]
pub(crate) fn put(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Bytes that [`put`] appends.
#[inline]
pub(crate) fn length(number: u64) -> u64 {
    u64::from((u64::BITS - (number | 1).leading_zeros()).div_ceil(7))
}

/// Takes a number off the front. `None` if `bytes` does not begin with one of at most 64 bits; `bytes` is
/// unspecified then.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number that may be negative as one that is small if it is near zero.
#[inline]
pub(crate) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Back.
#[inline]
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<u64>, shift in 0_u32..64) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(number >> shift, &mut bytes));
            let mut rest = bytes.as_slice();
            for number in &numbers {
                prop_assert_eq!(take(&mut rest), Some(number >> shift));
            }
            prop_assert_eq!((take(&mut rest), rest.len()), (None, 0));
        }

        #[test]
        fn zigzag_comes_back(number: i64) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while take(&mut rest).is_some() {}
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(
            take(&mut [0xff; 9].iter().copied().chain([1]).collect::<Vec<_>>().as_slice()),
            Some(u64::MAX)
        );
        assert_eq!(take(&mut [0xff; 9].iter().copied().chain([2]).collect::<Vec<_>>().as_slice()), None);
    }
}
