//! The begin of the partition under an engine with pages in place: pages are at hot locations of the drive
//! without a change of the engine if the partition begins at one (hidden-parameters paper, §4.1).

use flashgrain_settings::Bytes;

use crate::drive::{Drive, HotLocations};

/// Place where the partition should begin for pages of `page_bytes`, of an engine whose `setting` has the
/// size of its pages and whose largest are of `page_bytes_max`; `None` where the drive has no known hot
/// locations.
pub(super) fn note(drive: &Drive, setting: &str, page_bytes: u64, page_bytes_max: u64) -> Option<String> {
    let hot = drive.hot_locations()?;
    let HotLocations { chunk_bytes, offset_bytes, latency_drop } = *hot;
    let (chunk, offset) = (Bytes(chunk_bytes), Bytes(offset_bytes));
    let is_everywhere = page_bytes.is_multiple_of(chunk_bytes);
    let place = match offset_bytes {
        0 => format!("at a multiple of {chunk}"),
        _ => format!("{offset} after a multiple of {chunk}"),
    };
    let gain = format!("reads of {chunk} take {:.0} % less time", latency_drop * 100.0);
    if is_everywhere {
        return Some(format!(
            "the partition should begin {place}, and the file system keep files at multiples of {chunk}: pages \
             are at hot locations then, where {gain}"
        ));
    }
    if chunk_bytes > page_bytes_max {
        return None;
    }
    Some(format!(
        "pages of {} share chunks of {chunk}, so that the begin of the partition moves none to a hot location. \
         With {setting} = {}k, for long records, it should begin {place}, on a file system that keeps files at \
         multiples of {chunk} (mkfs.ext4 -O bigalloc -C {chunk_bytes}): {gain} there",
        Bytes(page_bytes),
        chunk_bytes / 1024,
    ))
}
