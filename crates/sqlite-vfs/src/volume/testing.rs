//! A volume's directory and labels of any bytes.

use super::directory::{Directory, part};
use super::label::Label;
use super::volume_id::VolumeId;

/// More extents than this tell nothing more.
const EXTENTS_MAX: u32 = 1 << 12;

/// A slot of a volume's directory, or the label of a member: with the length and the checksum that it has,
/// and with the right ones.
pub fn volume_directory(bytes: &[u8]) {
    directory(bytes);
    if let Some(label) = Label::decode(bytes) {
        assert!(bytes.starts_with(&label.encode()), "a label comes back");
    }
    let Some(end) = bytes.len().checked_sub(4).filter(|end| *end >= 40) else { return };
    let mut sealed = bytes.to_vec();
    sealed[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    let checksum = crc_fast::crc32_iscsi(&sealed[..end]);
    sealed[end..].copy_from_slice(&checksum.to_le_bytes());
    directory(&sealed);
}

fn directory(bytes: &[u8]) {
    let Some(extents) = part(bytes, 40).map(u32::from_le_bytes).filter(|extents| *extents <= EXTENTS_MAX)
    else {
        return;
    };
    let own = part(bytes, 44).map(VolumeId);
    for volume in [None, own] {
        let Some(directory) = Directory::decode(bytes, volume, extents) else { continue };
        let again = directory.encode(extents).unwrap_or_default();
        assert!(bytes.starts_with(&again) && !again.is_empty(), "a directory comes back");
        let runs = directory.entries.iter().flat_map(|entry| &entry.runs);
        let taken: u64 = runs.map(|run| u64::from(run.count)).sum();
        assert!(taken <= u64::from(extents), "no extent is that of two files");
        assert!(directory.entries.iter().all(|entry| entry.length_bytes <= entry.room_bytes()));
    }
}
