//! Messages are added to and removed from a page in place: the other messages are neither read nor copied,
//! only their offsets move. The bytes of a removed message stay unused until there are too many of them, or
//! the page is full: then it is written anew, still without a look at keys.

use std::ops::Range;

use super::content::Group;
use super::messages::{Messages, message_bytes};
use super::part::{self, Left, Part};
use super::part_format::SLOT_BYTES;
use crate::index::Version;
use crate::page::Page;

/// A page is written anew if more than this part of it is left unused by removed messages.
const LEFT_DIVISOR: u64 = 4;

/// Consecutive messages that are removed, and those that replace them.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Number of the first message that goes, or of the message that the new ones come before.
    at: u32,
    gone: u32,
    come: u32,
    /// Whether the new message has exactly as many bytes as the removed one, and takes its place.
    is_replaced: bool,
}

/// The changes of a page, in the order of keys.
#[derive(Debug, Default)]
pub(super) struct Changes {
    steps: Vec<Step>,
    /// The new messages.
    messages: Messages,
    /// Bytes that the new messages need at the back of the page.
    entry_bytes: u64,
    come: u32,
    gone: u32,
    /// Bytes that become unused.
    left_bytes: u64,
    /// Bytes of the messages that come and go, with their offsets.
    come_bytes: u64,
    gone_bytes: u64,
    may_go: bool,
}

/// The source of a message of a changed page.
#[derive(Clone, Copy)]
enum Source {
    /// An old message.
    Old(u32),
    /// A new message.
    New(usize),
    /// A new message that replaces an old one.
    Replaced(u32, usize),
}

impl Changes {
    /// Removes the messages that are on their way to some children. `None` if the page is damaged, or changes
    /// meanwhile.
    pub fn without(page: Part<'_>, groups: &[Group]) -> Option<Self> {
        let mut changes = Self::default();
        for group in groups {
            let mut numbers = group.numbers();
            if numbers.len() > 1 && planted!(MessageStaysAbove) {
                numbers.start += 1;
            }
            changes.replace(page, numbers, &[])?;
        }
        changes.is_possible(page).then_some(changes)
    }

    /// Replaces some of a page's messages by others. `None` as with [`Changes::without`].
    pub fn replace(
        &mut self,
        page: Part<'_>,
        gone: Range<u32>,
        come: &[(&[u8], Version, &[u8])],
    ) -> Option<()> {
        let gone_bytes = page.messages_bytes(gone.clone())?;
        let come_bytes: u64 = come.iter().map(|(key, _, value)| message_bytes(key, value)).sum();
        let is_replaced = gone.len() == 1 && come.len() == 1 && gone_bytes == come_bytes;
        if !is_replaced {
            self.entry_bytes += come_bytes - u64::from(SLOT_BYTES) * come.len() as u64;
            self.left_bytes += gone_bytes - u64::from(SLOT_BYTES) * gone.len() as u64;
        }
        self.gone += gone.len() as u32;
        self.come += come.len() as u32;
        self.come_bytes += come_bytes;
        self.gone_bytes += gone_bytes;
        self.may_go |= come.len() > 1;
        for (key, version, value) in come {
            self.may_go |= version.may_go_alone();
            self.messages.push(key, *version, value);
        }
        self.steps.push(Step {
            at: gone.start,
            gone: gone.len() as u32,
            come: come.len() as u32,
            is_replaced,
        });
        Some(())
    }

    /// Bytes of the page after the changes.
    pub fn page_bytes(&self, before: Part<'_>) -> u64 {
        (before.page_bytes() + self.come_bytes).saturating_sub(self.gone_bytes)
    }

    /// The number of messages of a page after the changes.
    pub fn count(&self, before: Part<'_>) -> u32 {
        (before.messages().len() as u32 + self.come).saturating_sub(self.gone)
    }

    /// Whether the page is not damaged in a way that would matter.
    pub fn is_possible(&self, page: Part<'_>) -> bool {
        !self.is_written_anew(page) || page.adds_up()
    }

    /// Bytes of the page that will be unused by removed messages.
    fn left_bytes(&self, page: Part<'_>) -> u64 {
        u64::from(page.left_bytes()) + self.left_bytes
    }

    fn is_written_anew(&self, page: Part<'_>) -> bool {
        let more_offsets = u64::from(self.come.saturating_sub(self.gone)) * u64::from(SLOT_BYTES);
        self.left_bytes(page) > page.len_bytes() / LEFT_DIVISOR
            || self.entry_bytes + more_offsets > u64::from(page.unused_bytes())
    }

    /// Changes a page that only the caller uses, that has its messages [in place](Part::is_in_place), and
    /// that has [room](Changes::page_bytes). The changes are [possible](Changes::is_possible).
    pub fn make(&self, page: Page<'_>) {
        let part = Part::new(page);
        let sources = self.sources(part);
        if self.is_written_anew(part) {
            return self.write_anew(page, &sources);
        }
        let (mut slots, mut entry) = (Vec::with_capacity(sources.len() * SLOT_BYTES as usize), Vec::new());
        let mut back_start = part.back_start();
        for source in sources {
            let (number, own) = match source {
                Source::Old(number) => {
                    slots.extend_from_slice(&part.entry(number).to_le_bytes());
                    continue;
                }
                Source::New(number) => (number, None),
                Source::Replaced(old, number) => (number, Some(part.entry(old))),
            };
            entry.clear();
            self.put(number, &mut entry);
            let offset = own.unwrap_or_else(|| {
                back_start -= entry.len() as u32;
                back_start
            });
            page.copy_from(offset, &entry);
            slots.extend_from_slice(&offset.to_le_bytes());
        }
        let left_bytes =
            if planted!(LeftBytesNotCounted) { part.left_bytes().into() } else { self.left_bytes(part) };
        let left = Left { bytes: left_bytes as u32, may_go: self.may_go || part.may_go() };
        part::set_entries(page, &slots, part.pivots(), back_start, left);
    }

    /// The page from its pivots and its new messages.
    fn write_anew(&self, page: Page<'_>, sources: &[Source]) {
        let part = Part::new(page);
        let pivots = part.pivots();
        let count = pivots as usize + sources.len();
        let (mut starts, mut entries) =
            (Vec::with_capacity(count), Vec::with_capacity(page.len_bytes() as usize));
        for pivot in 0..pivots {
            starts.push(entries.len() as u32);
            part.copy_entry(pivot, false, &mut entries);
        }
        for source in sources {
            starts.push(entries.len() as u32);
            match source {
                Source::Old(number) => part.copy_entry(*number, true, &mut entries),
                Source::New(number) | Source::Replaced(_, number) => self.put(*number, &mut entries),
            }
        }
        let back_start = page.len_bytes() - entries.len() as u32;
        let slots: Vec<u8> = starts.iter().flat_map(|start| (back_start + start).to_le_bytes()).collect();
        page.copy_from(back_start, &entries);
        let left = Left { bytes: 0, may_go: self.may_go || part.may_go() };
        part::set_entries(page, &slots, 0, back_start, left);
    }

    /// The messages of the page after the changes.
    fn sources(&self, part: Part<'_>) -> Vec<Source> {
        let old = part.messages();
        let mut sources = Vec::with_capacity(self.count(part) as usize);
        let (mut next, mut new) = (old.start, 0);
        for step in &self.steps {
            sources.extend((next..step.at).map(Source::Old));
            if step.is_replaced {
                sources.push(Source::Replaced(step.at, new));
            } else {
                sources.extend((new..new + step.come as usize).map(Source::New));
            }
            new += step.come as usize;
            next = step.at + step.gone;
        }
        sources.extend((next..old.end).map(Source::Old));
        sources
    }

    fn put(&self, number: usize, into: &mut Vec<u8>) {
        if let Some((key, version, value)) = self.messages.get(number) {
            part::put_entry(version.bits(), key, value.len() as u32, value, into);
        }
    }
}
