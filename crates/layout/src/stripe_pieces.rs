//! Rule 3 of the hidden-parameters paper (§3.2.1): writes do not cross a stripe's boundary.

/// The parts of a range that lie in one stripe each, as offset and length, in order.
///
/// With *use-hot-locations*, pages lie across stripes, and their writes are split like this (Figure 9b).
pub fn stripe_pieces(offset: u64, length_bytes: u64, stripe_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset.saturating_add(length_bytes);
    let stripe_bytes = stripe_bytes.max(1);
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let next = (at / stripe_bytes).saturating_add(1).saturating_mul(stripe_bytes).min(end);
            let piece = (at, next - at);
            at = next;
            piece
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shifted_page_is_written_in_two_pieces() {
        let pieces: Vec<_> = stripe_pieces(32 << 10, 64 << 10, 64 << 10).collect();
        assert_eq!(pieces, [(32 << 10, 32 << 10), (64 << 10, 32 << 10)]);
    }

    proptest! {
        #[test]
        fn pieces_are_the_range_and_cross_nothing(
            offset in 0_u64..1 << 30, length in 0_u64..1 << 20, stripe in 512_u64..1 << 18,
        ) {
            let mut at = offset;
            for (piece, bytes) in stripe_pieces(offset, length, stripe) {
                prop_assert_eq!(piece, at);
                prop_assert!(bytes > 0);
                prop_assert_eq!(piece / stripe, (piece + bytes - 1) / stripe);
                at += bytes;
            }
            prop_assert_eq!(at, offset + length);
        }
    }
}
