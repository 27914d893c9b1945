//! RAID 0 arithmetic: where a range of the whole lies on the members of a stripe set.
//!
//! Striping inside the engine, rather than in the kernel, keeps one queue per worker to every drive
//! (LeanStore's NVMe paper §3.4).

/// How a device is laid over its members: unit `u` lies on member `u % members`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeSet {
    members: u32,
    unit_bytes: u64,
}

/// A piece of a range that lies on one member without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the member.
    pub member: u32,
    /// Offset on that member.
    pub offset_bytes: u64,
    /// Length; at most one stripe unit, unless there is a single member.
    pub length_bytes: u32,
}

impl StripeSet {
    /// A single member: everything is where it says.
    pub const SINGLE: Self = Self { members: 1, unit_bytes: u64::MAX };

    /// Units of `unit_bytes` dealt out to `members` in turn. Neither may be zero.
    pub fn new(members: u32, unit_bytes: u64) -> Self {
        assert!(members > 0 && unit_bytes > 0, "a stripe set has members and a unit");
        if members == 1 { Self::SINGLE } else { Self { members, unit_bytes } }
    }

    /// Members.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Stripe unit, if there is more than one member.
    pub fn unit_bytes(&self) -> Option<u64> {
        (self.members > 1).then_some(self.unit_bytes)
    }

    /// Usable bytes when the smallest member has `member_bytes`.
    pub fn capacity_bytes(&self, member_bytes: u64) -> u64 {
        match self.unit_bytes() {
            Some(unit) => member_bytes / unit * unit * u64::from(self.members),
            None => member_bytes,
        }
    }

    /// Offset on the whole set of the byte at `offset_bytes` on `member`.
    pub fn whole_offset(&self, member: u32, offset_bytes: u64) -> u64 {
        if self.members == 1 {
            return offset_bytes;
        }
        let unit = offset_bytes / self.unit_bytes * u64::from(self.members) + u64::from(member);
        unit * self.unit_bytes + offset_bytes % self.unit_bytes
    }

    /// The first segment of the range that starts at `offset_bytes` and is `length_bytes` long.
    #[inline]
    pub fn first_segment(&self, offset_bytes: u64, length_bytes: u32) -> Segment {
        if self.members == 1 {
            return Segment { member: 0, offset_bytes, length_bytes };
        }
        let unit = offset_bytes / self.unit_bytes;
        let within = offset_bytes % self.unit_bytes;
        let remaining_in_unit = u32::try_from(self.unit_bytes - within).unwrap_or(u32::MAX);
        Segment {
            member: (unit % u64::from(self.members)) as u32,
            offset_bytes: unit / u64::from(self.members) * self.unit_bytes + within,
            length_bytes: length_bytes.min(remaining_in_unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_single_member_is_the_identity() {
        let whole = Segment { member: 0, offset_bytes: 12345, length_bytes: 678 };
        assert_eq!(StripeSet::new(1, 64).first_segment(12345, 678), whole);
    }

    #[test]
    fn units_go_round_the_members() {
        let set = StripeSet::new(3, 100);
        let members: Vec<u32> = (0..7).map(|unit| set.first_segment(unit * 100, 100).member).collect();
        assert_eq!(members, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(set.first_segment(650, 500), Segment { member: 0, offset_bytes: 250, length_bytes: 50 });
        assert_eq!(set.capacity_bytes(1099), 3000);
    }

    proptest! {
        /// Every byte of the whole has exactly one place, and no two share one.
        #[test]
        fn mapping_is_a_bijection(members in 1u32..6, unit in 1u64..9, member_units in 1u64..6) {
            let set = StripeSet::new(members, unit);
            let capacity = set.capacity_bytes(member_units * unit);
            let mut seen = std::collections::HashSet::new();
            for offset in 0..capacity {
                let place = set.first_segment(offset, 1);
                prop_assert!(place.member < members && place.offset_bytes < member_units * unit);
                prop_assert!(seen.insert((place.member, place.offset_bytes)));
                prop_assert_eq!(set.whole_offset(place.member, place.offset_bytes), offset);
            }
        }

        /// Walking a range segment by segment covers it without gap.
        #[test]
        fn segments_add_up(members in 2u32..6, unit in 1u64..9, start in 0u64..100, length in 1u32..100) {
            let set = StripeSet::new(members, unit);
            let (mut offset, mut remaining) = (start, length);
            while remaining > 0 {
                let segment = set.first_segment(offset, remaining);
                prop_assert!(segment.length_bytes > 0 && segment.length_bytes <= remaining);
                offset += u64::from(segment.length_bytes);
                remaining -= segment.length_bytes;
            }
            prop_assert_eq!(offset, start + u64::from(length));
        }
    }
}
