//! The five rules of the hidden-parameters paper (§3.2.1), for one request after the other.
//!
//! A rule whose parameter is unknown judges nothing. "Of chunk size" in Rules 2 and 4 means exactly that
//! size, as in the paper's reading of its own traces: unaligned 64 KiB writes to a drive with chunks of 4 KiB
//! break Rules 1 and 3 in its Figure 7, but not Rule 4.

use std::num::NonZeroU64;

use crate::Operation;

/// The parameters of a drive, in bytes; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grain {
    /// Smallest desirable write.
    pub desirable_write_bytes: Option<NonZeroU64>,
    /// Size of a chunk.
    pub chunk_bytes: Option<NonZeroU64>,
    /// Offset of the hot locations into a chunk.
    pub hot_offset_bytes: Option<u64>,
    /// Size of a stripe.
    pub stripe_bytes: Option<NonZeroU64>,
    /// Size of a flash page.
    pub flash_page_bytes: Option<NonZeroU64>,
}

/// A rule, by the paper's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Rule 1: writes are multiples of the smallest desirable write.
    DesirableWrites,
    /// Rule 2: reads of chunk size begin at hot locations.
    HotReads,
    /// Rule 3: writes begin at stripe boundaries.
    AlignedWrites,
    /// Rule 4: writes of chunk size are aligned with chunks.
    AlignedChunks,
    /// Rule 5: writes modify as few flash pages as their length allows.
    FewFlashPages,
}

impl Rule {
    /// All rules, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::DesirableWrites,
        Self::HotReads,
        Self::AlignedWrites,
        Self::AlignedChunks,
        Self::FewFlashPages,
    ];

    /// Its demand, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::DesirableWrites => "writes are multiples of the smallest desirable write",
            Self::HotReads => "reads of chunk size begin at hot locations",
            Self::AlignedWrites => "writes begin at stripe boundaries",
            Self::AlignedChunks => "writes of chunk size are aligned with chunks",
            Self::FewFlashPages => "writes modify no more flash pages than they need",
        }
    }

    /// The paper's number, from 1 on.
    pub fn number(self) -> usize {
        self as usize + 1
    }
}

impl Grain {
    /// Whether everything is known that `rule` needs.
    pub fn knows(&self, rule: Rule) -> bool {
        match rule {
            Rule::DesirableWrites => self.desirable_write_bytes.is_some(),
            Rule::HotReads => self.chunk_bytes.is_some() && self.hot_offset_bytes.is_some(),
            Rule::AlignedWrites => self.stripe_bytes.is_some(),
            Rule::AlignedChunks => self.chunk_bytes.is_some(),
            Rule::FewFlashPages => self.flash_page_bytes.is_some(),
        }
    }

    /// For each rule, in the order of [`Rule::ALL`], whether a request breaks it; `None` if the rule is not
    /// about such requests, or a parameter is unknown that it needs.
    pub fn verdicts(&self, operation: Operation, offset: u64, length: u64) -> [Option<bool>; 5] {
        match operation {
            _ if length == 0 => [None; 5],
            Operation::Read => [None, self.hot_read(offset, length), None, None, None],
            Operation::Write => self.write(offset, length),
            Operation::Flush | Operation::Discard => [None; 5],
        }
    }

    /// Whether an address is a hot location; `None` if the hot locations are unknown.
    pub fn is_hot(&self, offset: u64) -> Option<bool> {
        let (chunk, hot) = (self.chunk_bytes?, self.hot_offset_bytes?);
        Some(offset % chunk == hot % chunk)
    }

    fn hot_read(&self, offset: u64, length: u64) -> Option<bool> {
        let is_hot = self.is_hot(offset)?;
        self.chunk_bytes.filter(|chunk| length == chunk.get()).map(|_| !is_hot)
    }

    fn write(&self, offset: u64, length: u64) -> [Option<bool>; 5] {
        let chunk = self.chunk_bytes.filter(|chunk| length == chunk.get());
        [
            self.desirable_write_bytes.map(|desirable| length % desirable != 0),
            None,
            self.stripe_bytes.map(|stripe| offset % stripe != 0),
            chunk.map(|chunk| offset % chunk != 0),
            self.flash_page_bytes.map(|page| {
                let (touched, least) = units(offset, length, page);
                touched > least
            }),
        ]
    }
}

/// The units (flash pages, chunks, stripes) that a range of at least a byte touches, and the fewest that its
/// length allows.
pub fn units(offset: u64, length: u64, unit: NonZeroU64) -> (u64, u64) {
    let last = offset.saturating_add(length.saturating_sub(1));
    (last / unit - offset / unit + 1, length.div_ceil(unit.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Toshiba XG5, SSD-T of the paper.
    fn toshiba() -> Grain {
        let kib = |kib: u64| NonZeroU64::new(kib * 1024);
        Grain {
            desirable_write_bytes: kib(64),
            chunk_bytes: kib(4),
            hot_offset_bytes: Some(0),
            stripe_bytes: kib(64),
            flash_page_bytes: kib(4),
        }
    }

    /// Samsung 960 EVO, SSD-S of the paper, whose flash page could not be learned.
    fn samsung() -> Grain {
        let kib = |kib: u64| NonZeroU64::new(kib * 1024);
        Grain {
            desirable_write_bytes: kib(32),
            chunk_bytes: kib(64),
            hot_offset_bytes: Some(32 * 1024),
            stripe_bytes: kib(64),
            flash_page_bytes: None,
        }
    }

    fn broken(grain: Grain, operation: Operation, offset_bytes: u64, length_bytes: u64) -> Vec<usize> {
        let verdicts = grain.verdicts(operation, offset_bytes, length_bytes);
        let is_broken = |rule: &&Rule| verdicts[**rule as usize] == Some(true);
        Rule::ALL.iter().filter(is_broken).map(|rule| rule.number()).collect()
    }

    #[test]
    fn database_pages_of_64_kib_break_rule_2_on_the_samsung_only() {
        assert_eq!(broken(samsung(), Operation::Read, 65536, 65536), [2]);
        assert_eq!(broken(samsung(), Operation::Read, 65536 + 32768, 65536), [0; 0]);
        assert_eq!(broken(toshiba(), Operation::Read, 65536, 65536), [0; 0]);
        assert_eq!(broken(samsung(), Operation::Write, 65536, 65536), [0; 0]);
        assert_eq!(broken(samsung(), Operation::Read, 0, 100), [0; 0]);
    }

    #[test]
    fn log_frames_break_rules_1_and_3() {
        assert_eq!(broken(toshiba(), Operation::Write, 32, 24), [1, 3]);
        assert_eq!(broken(toshiba(), Operation::Write, 512, 512), [1, 3]);
    }

    #[test]
    fn a_record_across_two_flash_pages_breaks_rule_5_too() {
        assert_eq!(broken(toshiba(), Operation::Write, 4000, 275), [1, 3, 5]);
    }

    #[test]
    fn an_unaligned_chunk_breaks_rule_4() {
        assert_eq!(broken(toshiba(), Operation::Write, 512, 4096), [1, 3, 4, 5]);
    }

    #[test]
    fn rules_without_their_parameter_say_nothing() {
        assert!(!samsung().knows(Rule::FewFlashPages));
        assert_eq!(samsung().verdicts(Operation::Write, 4000, 275)[4], None);
        assert_eq!(Grain::default().verdicts(Operation::Write, 1, 1), [None; 5]);
    }
}
