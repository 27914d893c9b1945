//! Pages of the kernel's ring buffers (Linux, Documentation/trace/ring-buffer-design.rst and
//! `events/header_page`, `events/header_event`): a time, how many bytes follow, and events whose times are
//! differences. Taking pages out costs the kernel no formatting.

/// How many bytes of a page are used; above them are flags.
const USED_MASK: u64 = (1 << 20) - 1;
/// Events were lost before this page.
const HAS_MISSED: u64 = 1 << 31;
/// Their number follows the used bytes.
const HAS_COUNT: u64 = 1 << 30;

/// Bits of an event's first word that are its difference of time.
const DELTA_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bytes of a page before its events.
const HEAD_BYTES: usize = 16;

/// Events of a page, by their times, and how many were lost before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page<'a> {
    pub events: Vec<(u64, &'a [u8])>,
    pub lost: u64,
    /// Whether the page could be understood to its end.
    pub is_whole: bool,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Takes a page apart.
pub fn parse(page: &[u8]) -> Page<'_> {
    let mut found = Page::default();
    let Some((time, commit)) = long(page, 0).zip(long(page, 8)) else { return found };
    let used = (commit & USED_MASK) as usize;
    if commit & HAS_MISSED != 0 {
        let count = (commit & HAS_COUNT != 0).then(|| long(page, HEAD_BYTES + used)).flatten();
        found.lost = count.unwrap_or(1).max(1);
    }
    if let Some(data) = page.get(HEAD_BYTES..HEAD_BYTES + used) {
        found.is_whole = events(data, time, &mut found.events).is_some();
    }
    found
}

fn events<'a>(data: &'a [u8], mut time: u64, found: &mut Vec<(u64, &'a [u8])>) -> Option<()> {
    let mut at = 0;
    while at < data.len() {
        let head = word(data, at)?;
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        at += 4;
        match kind {
            PADDING if delta == 0 => return Some(()),
            PADDING => at = at.checked_add(word(data, at)? as usize)?,
            TIME_EXTEND => {
                time = time.wrapping_add((u64::from(word(data, at)?) << DELTA_BITS).wrapping_add(delta));
                at += 4;
            }
            TIME_STAMP => {
                // The highest bits do not fit, and do not change while a machine runs.
                let stamp = (u64::from(word(data, at)?) << DELTA_BITS) | delta;
                time = time & (0x1f << 59) | stamp;
                at += 4;
            }
            kind => {
                time = time.wrapping_add(delta);
                // A length of its own, which counts itself, or words.
                let (begin, length) = match kind {
                    0 => (at + 4, (word(data, at)? as usize).checked_sub(4)?),
                    words => (at, words as usize * 4),
                };
                let event = data.get(begin..begin.checked_add(length)?)?;
                found.push((time, event));
                at = begin + length;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = 1000_u64.to_ne_bytes().to_vec();
        page.extend(commit.to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page
    }

    fn head(kind: u32, delta: u32) -> u32 {
        delta << 5 | kind
    }

    #[test]
    fn times_are_differences_that_extend() {
        let words = [
            head(1, 5),
            7,
            head(TIME_EXTEND, 1),
            2,
            head(0, 3),
            12,
            8,
            9,
            head(PADDING, 1),
            8,
            0,
            head(2, 1),
            1,
            2,
        ];
        let bytes = page(words.len() as u64 * 4, &words);
        let found = parse(&bytes);
        let times: Vec<_> = found.events.iter().map(|(time, event)| (*time, event.len())).collect();
        let extended = 1005 + (2 << 27) + 1;
        assert_eq!(times, [(1005, 4), (extended + 3, 8), (extended + 4, 8)]);
        assert!(found.is_whole && found.lost == 0);
    }

    #[test]
    fn losses_are_counted_and_cut_pages_are_known() {
        let bytes = page(4 | HAS_MISSED | HAS_COUNT, &[head(PADDING, 0), 77, 0]);
        let found = parse(&bytes);
        assert_eq!((found.lost, found.is_whole), (77, true));
        assert!(!parse(&page(8, &[head(20, 1), 0])).is_whole);
        assert!(!parse(&[1, 2, 3]).is_whole);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }
    }
}
