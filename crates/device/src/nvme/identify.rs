//! A drive's descriptions of itself: identify namespace and identify controller.
//!
//! Offsets are those of the NVM Express Base specification 2.0, figure 275, and of the NVM Command Set
//! specification 1.0, figure 97.

use super::command::STRUCTURE_BYTES;

/// Smallest and largest logical blocks, as powers of two: 512 bytes and 64 KiB.
const BLOCK_SHIFTS: std::ops::RangeInclusive<u8> = 9..=16;

/// The drive's unit of its largest transfer. It is at least this; the exact one is in a register.
const PAGE_BYTES: u64 = 4096;

/// A namespace as its drive describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceFacts {
    /// Logical blocks.
    pub blocks: u64,
    /// A logical block has two to the power of this many bytes.
    pub block_shift: u8,
    /// Whether the drive refuses writes to it.
    pub write_protected: bool,
}

impl NamespaceFacts {
    /// Takes an identify namespace structure apart.
    ///
    /// # Errors
    /// The reason why requests cannot be sent to such a namespace, and a remedy.
    pub fn parse(structure: &[u8]) -> Result<Self, String> {
        let bytes: &[u8; STRUCTURE_BYTES] =
            structure.try_into().map_err(|_| "the drive's description is cut off".to_owned())?;
        let blocks = u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default());
        if blocks == 0 {
            return Err("the namespace is not active: attach it first (`nvme attach-ns`)".into());
        }
        // Bits 5 and 6 extend the index of drives with more than 16 formats.
        let format = usize::from(bytes[26] & 0x0f) | usize::from(bytes[26] >> 5 & 3) << 4;
        let at = 128 + 4 * format;
        let metadata_bytes = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let block_shift = bytes[at + 2];
        if metadata_bytes != 0 {
            return Err(format!(
                "its blocks carry {metadata_bytes} bytes of metadata, which passthrough does not write: use the block device, \
                 or format it without metadata (`nvme format`)"
            ));
        }
        if !BLOCK_SHIFTS.contains(&block_shift) {
            return Err(format!(
                "logical blocks of two to the power of {block_shift} bytes are not supported"
            ));
        }
        if blocks.checked_shl(u32::from(block_shift)).is_none_or(|all| all >> block_shift != blocks) {
            return Err(format!("the drive claims {blocks} blocks, more than there can be"));
        }
        Ok(Self { blocks, block_shift, write_protected: bytes[99] & 1 == 1 })
    }
}

/// The largest transfer of a drive in bytes by its identify controller structure; `None` if there is no
/// limit.
pub(crate) fn transfer_bytes_max(controller: &[u8]) -> Option<u64> {
    let shift = u32::from(*controller.get(77)?);
    (shift > 0).then(|| PAGE_BYTES.checked_shl(shift).filter(|bytes| *bytes > 0)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn namespace(blocks: u64, format: u8, shift: u8, metadata_bytes: u16) -> Vec<u8> {
        let mut bytes = vec![0; STRUCTURE_BYTES];
        bytes[..8].copy_from_slice(&blocks.to_le_bytes());
        bytes[26] = format & 0xf | (format >> 4) << 5;
        let at = 128 + 4 * usize::from(format);
        bytes[at..at + 2].copy_from_slice(&metadata_bytes.to_le_bytes());
        bytes[at + 2] = shift;
        bytes
    }

    #[test]
    fn the_format_in_use_gives_the_block_size() {
        for (format, shift) in [(0, 9), (4, 12), (21, 12)] {
            let facts = NamespaceFacts::parse(&namespace(1000, format, shift, 0)).unwrap();
            assert_eq!(facts, NamespaceFacts { blocks: 1000, block_shift: shift, write_protected: false });
        }
        let mut protected = namespace(1, 0, 12, 0);
        protected[99] = 1;
        assert!(NamespaceFacts::parse(&protected).unwrap().write_protected);
    }

    #[test]
    fn namespaces_that_cannot_be_used_say_why() {
        for (bytes, words) in [
            (namespace(0, 0, 9, 0), "attach"),
            (namespace(1, 0, 9, 8), "8 bytes of metadata"),
            (namespace(1, 0, 0, 0), "not supported"),
            (namespace(u64::MAX, 0, 12, 0), "more than there can be"),
            (vec![0; 100], "cut off"),
        ] {
            let why = NamespaceFacts::parse(&bytes).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn the_controller_gives_its_largest_transfer() {
        let mut bytes = vec![0; STRUCTURE_BYTES];
        assert_eq!(transfer_bytes_max(&bytes), None);
        bytes[77] = 7;
        assert_eq!(transfer_bytes_max(&bytes), Some(512 << 10));
        bytes[77] = 255;
        assert_eq!(transfer_bytes_max(&bytes), None);
        assert_eq!(transfer_bytes_max(&[]), None);
    }

    proptest! {
        #[test]
        fn no_description_panics(bytes in prop::collection::vec(any::<u8>(), STRUCTURE_BYTES)) {
            drop(NamespaceFacts::parse(&bytes));
            transfer_bytes_max(&bytes);
        }
    }
}
