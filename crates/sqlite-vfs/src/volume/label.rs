//! Labels: each file or drive that a volume is made of says which volume it belongs to, and which of them it
//! is. So a member of another volume, or one in another place, is detected.
//!
//! ```text
//!  0 ┌───────────────────────────────────┐
//!    │ magic "Flashgrain vol.m"          │
//! 16 ├───────────────────────────────────┤
//!    │ identity of the volume            │
//! 32 ├───────────────────────────────────┤
//!    │ members, u32                      │
//! 36 ├───────────────────────────────────┤
//!    │ which of them this is, u32        │ from 0 on
//! 40 ├───────────────────────────────────┤
//!    │ stripe unit, bytes, u64           │ 0 if there is one member
//! 48 ├───────────────────────────────────┤
//!    │ CRC32C of all before, u32         │
//! 52 └───────────────────────────────────┘
//! ```
//!
//! Numbers are little-endian. A label is at byte [`LABEL_AT`] of each member, written once when the volume is
//! made. Volumes of version 2 have none.

use flashgrain_device::{Device, StripeSet};

use super::directory::part;
use super::volume_id::VolumeId;
use super::{BLOCK_BYTES, EXTENT_BYTES, Error, SLOT_BYTES};

const MAGIC: &[u8; 16] = b"Flashgrain vol.m";

/// Bytes that say something.
const ENCODED_BYTES: usize = 52;

/// Where the label of a member is, in bytes of that member: the directory reaches no further on any.
const LABEL_AT: u64 = 2 * SLOT_BYTES;

/// The identity that a member states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub volume: VolumeId,
    pub members: u32,
    pub member: u32,
    pub stripe_unit_bytes: u64,
}

impl Label {
    /// The label's block.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.volume.0);
        bytes.extend(self.members.to_le_bytes());
        bytes.extend(self.member.to_le_bytes());
        bytes.extend(self.stripe_unit_bytes.to_le_bytes());
        bytes.extend(crc_fast::crc32_iscsi(&bytes).to_le_bytes());
        bytes
    }

    /// The label in a block; `None` if there is none, or a damaged one.
    pub fn decode(block: &[u8]) -> Option<Self> {
        let (content, checksum) = block.get(..ENCODED_BYTES)?.split_last_chunk::<4>()?;
        let is_whole = crc_fast::crc32_iscsi(content) == u32::from_le_bytes(*checksum);
        (content.starts_with(MAGIC) && is_whole).then_some(Self {
            volume: VolumeId(part(content, 16)?),
            members: u32::from_le_bytes(part(content, 32)?),
            member: u32::from_le_bytes(part(content, 36)?),
            stripe_unit_bytes: u64::from_le_bytes(part(content, 40)?),
        })
    }
}

/// The files or drives of a device.
#[derive(Clone, Debug)]
pub(super) struct Members {
    stripes: StripeSet,
    target: String,
}

impl Members {
    pub fn of(device: &dyn Device) -> Self {
        let geometry = device.geometry();
        let stripes = StripeSet::new(geometry.members.max(1), geometry.stripe_unit_bytes.unwrap_or(u64::MAX));
        Self { stripes, target: device.identity().target.clone() }
    }

    /// Whether each has whole blocks of its own.
    pub fn have_blocks(&self, align_bytes: u64) -> bool {
        self.stripes.unit_bytes().is_none_or(|unit| unit.is_multiple_of(align_bytes))
    }

    fn numbers(&self) -> std::ops::Range<u32> {
        0..self.stripes.members()
    }

    /// Where the label of each is on the whole device.
    pub fn offsets(&self) -> Vec<u64> {
        self.numbers().map(|member| self.stripes.whole_offset(member, LABEL_AT)).collect()
    }

    /// Where extents begin, after the labels.
    pub fn extents_begin(&self) -> u64 {
        let last = self.offsets().into_iter().max().unwrap_or(LABEL_AT);
        (last + BLOCK_BYTES).next_multiple_of(EXTENT_BYTES)
    }

    /// The labels of a new volume.
    pub fn labels(&self, volume: VolumeId) -> Vec<Label> {
        let members = self.stripes.members();
        let stripe_unit_bytes = self.stripes.unit_bytes().unwrap_or(0);
        self.numbers().map(|member| Label { volume, members, member, stripe_unit_bytes }).collect()
    }

    /// The volume of these labels, one of each member; `None` if there are none at all.
    ///
    /// # Errors
    /// [`Error::Member`] if one of the members is not the one that it is named as.
    pub fn check(&self, labels: &[Option<Label>]) -> Result<Option<VolumeId>, Error> {
        let first = labels.iter().enumerate().find_map(|(member, label)| Some((member, (*label)?)));
        let Some((first_member, first)) = first else { return Ok(None) };
        for (member, (found, expected)) in labels.iter().zip(self.labels(first.volume)).enumerate() {
            let problem = match found {
                Some(found) if *found == expected => continue,
                Some(found) if found.volume != first.volume => {
                    format!("belongs to another volume than {}", self.name(first_member))
                }
                Some(found) => mismatch(found, &expected),
                None => format!("is no part of the volume of {}", self.name(first_member)),
            };
            return Err(Error::Member { path: self.name(member), problem });
        }
        Ok(Some(first.volume))
    }

    /// The name of a member.
    fn name(&self, member: usize) -> String {
        let names: Vec<&str> = self.target.split(',').collect();
        let is_told_apart = names.len() as u64 == u64::from(self.stripes.members());
        let name = names.get(member).filter(|_| is_told_apart);
        name.map_or_else(|| format!("file or drive {} of {}", member + 1, self.target), ToString::to_string)
    }
}

/// The mismatch of a member of the right volume, in words.
fn mismatch(found: &Label, expected: &Label) -> String {
    if found.members != expected.members {
        format!("is one of {} that the volume is made of, and {} are named", found.members, expected.members)
    } else if found.member != expected.member {
        let (is, named) = (u64::from(found.member) + 1, u64::from(expected.member) + 1);
        format!("is number {is} of those that the volume is made of, and is named as number {named}")
    } else {
        let (is, asked) = (found.stripe_unit_bytes, expected.stripe_unit_bytes);
        format!("has a stripe unit of {is} bytes, and was to be opened with one of {asked}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(count: u32, unit: u64) -> Members {
        let names: Vec<String> = (0..count).map(|number| format!("/d/{number}")).collect();
        Members { stripes: StripeSet::new(count, unit), target: names.join(",") }
    }

    const ID: VolumeId = VolumeId([7; 16]);

    #[test]
    fn a_label_is_on_its_member_and_in_nobody_s_way() {
        for (count, unit) in [(1, 1), (2, 64 << 10), (3, 4096), (5, 96 << 10), (4, 8 << 20)] {
            let members = members(count, unit);
            for (member, offset) in members.offsets().into_iter().enumerate() {
                let segment = members.stripes.first_segment(offset, 4096);
                assert_eq!((segment.member, segment.offset_bytes), (member as u32, LABEL_AT));
                assert_eq!(segment.length_bytes, 4096);
                assert!(offset >= 2 * SLOT_BYTES && offset + 4096 <= members.extents_begin());
            }
        }
    }

    #[test]
    fn members_of_others_and_in_other_places_are_named() {
        let members = members(3, 64 << 10);
        let whole: Vec<Option<Label>> = members.labels(ID).into_iter().map(Some).collect();
        assert_eq!(members.check(&whole).unwrap(), Some(ID));
        assert_eq!(members.check(&[None; 3]).unwrap(), None);
        let refused = |spoil: fn(&mut Vec<Option<Label>>), texts: [&str; 2]| {
            let mut labels = whole.clone();
            spoil(&mut labels);
            let said = members.check(&labels).unwrap_err().to_string();
            assert!(texts.iter().all(|text| said.contains(text)), "{said}");
        };
        refused(|labels| labels.swap(1, 2), ["/d/1 ", "number 3"]);
        refused(|labels| labels[2] = None, ["/d/2 ", "no part"]);
        refused(|labels| labels[0] = None, ["/d/0 ", "no part of the volume of /d/1"]);
        refused(
            |labels| labels[1].iter_mut().for_each(|label| label.volume = VolumeId([8; 16])),
            ["/d/1 ", "another volume than /d/0"],
        );
        refused(
            |labels| labels.iter_mut().flatten().for_each(|label| label.members = 4),
            ["/d/0 ", "one of 4"],
        );
        refused(
            |labels| labels.iter_mut().flatten().for_each(|label| label.stripe_unit_bytes = 4096),
            ["/d/0 ", "stripe unit of 4096"],
        );
    }

    proptest! {
        #[test]
        fn every_flipped_bit_shows(member in 0_u32..9, unit: u64, bit in 0_usize..ENCODED_BYTES * 8) {
            let label = Label { volume: ID, members: 9, member, stripe_unit_bytes: unit };
            let mut bytes = label.encode();
            prop_assert_eq!(bytes.len(), ENCODED_BYTES);
            prop_assert_eq!(Label::decode(&bytes), Some(label));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Label::decode(&bytes), None);
        }
    }
}
