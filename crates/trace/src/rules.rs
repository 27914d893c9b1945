//! The five rules of the hidden-parameters paper (§3.2.1), for one request after the other.
//!
//! A rule whose parameter is unknown judges nothing. "Of chunk size" in Rules 2 and 4 means exactly that size,
//! as in the paper's reading of its own traces: unaligned 64 KiB writes to a drive with chunks of 4 KiB break
//! Rules 1 and 3 in its Figure 7, but not Rule 4.

use std::num::NonZeroU64;

use crate::{Operation, Request};

/// The parameters of a drive, in bytes; `None` is what nobody knows.
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

    /// The paper's number, from 1 on.
    pub fn number(self) -> usize {
        self as usize + 1
    }
}

/// How many requests a rule has judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that the rule is about.
    pub judged: u64,
    /// Requests among them that break it.
    pub broken: u64,
    /// Bytes of requests that break it.
    pub broken_bytes: u64,
}

/// All five rules on one drive, and what they have found.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    grain: Grain,
    tallies: [Tally; 5],
    written_bytes: u64,
    flash_pages_modified: u64,
    flash_pages_least: u64,
}

impl Rules {
    /// Rules for a drive with `grain`.
    pub fn new(grain: Grain) -> Self {
        Self { grain, ..Self::default() }
    }

    /// What `rule` has found; `None` if a parameter that it needs is unknown.
    pub fn tally(&self, rule: Rule) -> Option<Tally> {
        let grain = &self.grain;
        let is_known = match rule {
            Rule::DesirableWrites => grain.desirable_write_bytes.is_some(),
            Rule::HotReads => grain.chunk_bytes.is_some() && grain.hot_offset_bytes.is_some(),
            Rule::AlignedWrites => grain.stripe_bytes.is_some(),
            Rule::AlignedChunks => grain.chunk_bytes.is_some(),
            Rule::FewFlashPages => grain.flash_page_bytes.is_some(),
        };
        is_known.then(|| self.tallies[rule as usize])
    }

    /// Bytes of all writes.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Flash pages that the writes have modified, each write by itself; `None` if their size is unknown.
    pub fn flash_pages_modified(&self) -> Option<u64> {
        self.grain.flash_page_bytes.map(|_| self.flash_pages_modified)
    }

    /// Flash pages that the same writes would have modified, had each begun at a flash page.
    pub fn flash_pages_least(&self) -> Option<u64> {
        self.grain.flash_page_bytes.map(|_| self.flash_pages_least)
    }

    /// Judges `request` and returns for each rule, in the order of [`Rule::ALL`], whether it is broken.
    /// Flushes, discards, and requests without an address or bytes are not judged.
    pub fn judge(&mut self, request: &Request) -> [bool; 5] {
        let mut broken = [false; 5];
        let Some(address) = request.judged_address().filter(|_| request.length_bytes > 0) else {
            return broken;
        };
        let (offset, length) = (address.offset_bytes, request.length_bytes);
        let verdicts = match request.operation {
            Operation::Read => [None, self.hot_read(offset, length), None, None, None],
            Operation::Write => self.write(offset, length),
            Operation::Flush | Operation::Discard => return broken,
        };
        for ((tally, verdict), broken) in self.tallies.iter_mut().zip(verdicts).zip(&mut broken) {
            let Some(is_broken) = verdict else { continue };
            *broken = is_broken;
            tally.judged += 1;
            if is_broken {
                tally.broken += 1;
                tally.broken_bytes = tally.broken_bytes.saturating_add(length);
            }
        }
        broken
    }

    fn hot_read(&self, offset: u64, length: u64) -> Option<bool> {
        let (chunk, hot) = (self.grain.chunk_bytes?, self.grain.hot_offset_bytes?);
        (length == chunk.get()).then(|| offset % chunk != hot % chunk)
    }

    fn write(&mut self, offset: u64, length: u64) -> [Option<bool>; 5] {
        self.written_bytes = self.written_bytes.saturating_add(length);
        let grain = self.grain;
        let chunk = grain.chunk_bytes.filter(|chunk| length == chunk.get());
        [
            grain.desirable_write_bytes.map(|desirable| length % desirable != 0),
            None,
            grain.stripe_bytes.map(|stripe| offset % stripe != 0),
            chunk.map(|chunk| offset % chunk != 0),
            grain.flash_page_bytes.map(|page| self.flash_pages(offset, length, page)),
        ]
    }

    /// Counts the flash pages of a write; whether they are more than its length needs.
    fn flash_pages(&mut self, offset: u64, length: u64, page: NonZeroU64) -> bool {
        let last = offset.saturating_add(length - 1);
        let modified = last / page - offset / page + 1;
        let least = length.div_ceil(page.get());
        self.flash_pages_modified = self.flash_pages_modified.saturating_add(modified);
        self.flash_pages_least = self.flash_pages_least.saturating_add(least);
        modified > least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Names};

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
        let name = Names::default().id("file");
        let request = Request {
            time_ns: 0,
            operation,
            on_device: None,
            in_file: Some(Address { name, offset_bytes }),
            length_bytes,
            process: None,
            latency_ns: None,
        };
        let verdicts = Rules::new(grain).judge(&request);
        Rule::ALL.iter().filter(|rule| verdicts[**rule as usize]).map(|rule| rule.number()).collect()
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
        let rules = Rules::new(samsung());
        assert_eq!(rules.tally(Rule::FewFlashPages), None);
        assert_eq!(rules.flash_pages_modified(), None);
        assert_eq!(rules.tally(Rule::AlignedWrites), Some(Tally::default()));
        assert_eq!(broken(Grain::default(), Operation::Write, 1, 1), [0; 0]);
    }

    #[test]
    fn of_275_byte_records_6_7_percent_straddle_a_flash_page() {
        let mut rules = Rules::new(toshiba());
        let name = Names::default().id("binlog");
        for record in 0..1_000_000 {
            let in_file = Some(Address { name, offset_bytes: record * 275 });
            rules.judge(&Request {
                time_ns: 0,
                operation: Operation::Write,
                on_device: None,
                in_file,
                length_bytes: 275,
                process: None,
                latency_ns: None,
            });
        }
        let tally = rules.tally(Rule::FewFlashPages).unwrap();
        let percent = tally.broken as f64 / tally.judged as f64 * 100.0;
        assert!((percent - 6.7).abs() < 0.05, "{percent}");
        let modified = rules.flash_pages_modified().unwrap();
        assert_eq!(modified - rules.flash_pages_least().unwrap(), tally.broken);
    }
}
