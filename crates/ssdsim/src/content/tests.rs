use proptest::prelude::*;

use super::*;

const SECTOR: usize = SECTOR_BYTES as usize;
const SECTORS: usize = 40;
const CAPACITY: usize = SECTORS * SECTOR;

/// A step on a drive of [`SECTORS`] sectors.
#[derive(Clone, Debug)]
enum Step {
    Write {
        first: usize,
        sectors: usize,
        fill: u8,
    },
    /// Settles the writes until `back` writes ago.
    Settle {
        first: usize,
        sectors: usize,
        back: u64,
    },
    Discard {
        first: usize,
        sectors: usize,
    },
    Put {
        first: usize,
        fill: u8,
    },
    Doom,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..SECTORS, 1..20_usize).prop_map(|(first, count)| (first, count.min(SECTORS - first)));
    let step = prop_oneof![
        6 => (range(), any::<u8>()).prop_map(|((first, sectors), fill)| Step::Write { first, sectors, fill }),
        3 => (range(), 0..4_u64).prop_map(|((first, sectors), back)| Step::Settle { first, sectors, back }),
        1 => range().prop_map(|(first, sectors)| Step::Discard { first, sectors }),
        1 => (0..SECTORS, any::<u8>()).prop_map(|(first, fill)| Step::Put { first, fill }),
        1 => Just(Step::Doom),
    ];
    proptest::collection::vec(step, 0..25)
}

/// Version, value, and whether the drive has lost it.
type Written = (u64, u8, bool);

/// The obvious way: per sector, all values since it was last settled.
#[derive(Clone, Default)]
struct Model {
    /// Settled value, and the writes since.
    sectors: Vec<(u8, Vec<Written>)>,
}

impl Model {
    fn new() -> Self {
        Self { sectors: vec![(0, Vec::new()); SECTORS] }
    }

    fn settle(&mut self, sector: usize, version: u64) {
        let (settled, writes) = &mut self.sectors[sector];
        if let Some(last) = writes.iter().rposition(|(at, _, doomed)| *at <= version && !doomed) {
            *settled = writes[last].1;
            writes.drain(..=last);
        }
    }

    fn newest(&self, sector: usize) -> u8 {
        let (settled, writes) = &self.sectors[sector];
        writes.last().map_or(*settled, |(_, value, _)| *value)
    }

    fn after_cut(&self, sector: usize, survives: impl Fn(u64) -> bool) -> u8 {
        let (settled, writes) = &self.sectors[sector];
        let last = writes.iter().rev().find(|(version, _, doomed)| !doomed && survives(*version));
        last.map_or(*settled, |(_, value, _)| *value)
    }
}

/// Lets all steps happen to both.
fn run(steps: &[Step]) -> (Content, Model, u64) {
    let mut content = Content::new(CAPACITY as u64, true);
    let mut model = Model::new();
    let mut version = 0;
    let bytes_of = |first: usize, sectors: usize| ((first * SECTOR) as u64, (sectors * SECTOR) as u64);
    for step in steps {
        match *step {
            Step::Write { first, sectors, fill } => {
                version += 1;
                let data: Vec<u8> =
                    (0..sectors * SECTOR).map(|at| fill.wrapping_add((at / SECTOR) as u8)).collect();
                content.write(version, bytes_of(first, sectors).0, &data);
                for at in 0..sectors {
                    model.sectors[first + at].1.push((version, fill.wrapping_add(at as u8), false));
                }
            }
            Step::Settle { first, sectors, back } => {
                let until = version.saturating_sub(back);
                let (offset, length) = bytes_of(first, sectors);
                content.settle(offset, length, until);
                (first..first + sectors).for_each(|sector| model.settle(sector, until));
            }
            Step::Discard { first, sectors } => {
                let (offset, length) = bytes_of(first, sectors);
                content.discard(offset, length);
                model.sectors[first..first + sectors].fill((0, Vec::new()));
            }
            Step::Put { first, fill } => {
                content.put(bytes_of(first, 1).0, &[fill; SECTOR]);
                model.sectors[first] = (fill, Vec::new());
            }
            Step::Doom => {
                content.doom_unsettled(|_| false);
                let writes = model.sectors.iter_mut().flat_map(|(_, writes)| writes);
                writes.for_each(|(.., doomed)| *doomed = true);
            }
        }
    }
    (content, model, version)
}

fn all_bytes(content: &Content) -> Vec<u8> {
    let mut bytes = vec![0xee; CAPACITY];
    content.read(0, &mut bytes);
    bytes
}

fn expand(sectors: impl Iterator<Item = u8>) -> Vec<u8> {
    sectors.flat_map(|value| [value; SECTOR]).collect()
}

/// Writes that a cut may undo, in the model's eyes.
fn unsettled(model: &Model) -> Vec<u64> {
    let writes = model.sectors.iter().flat_map(|(_, writes)| writes);
    let mut versions: Vec<u64> =
        writes.filter(|(.., doomed)| !doomed).map(|(version, ..)| *version).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

proptest! {
    /// Reads see the newest bytes, whatever is settled, discarded or lost.
    #[test]
    fn reads_return_what_was_written_last(steps in steps()) {
        let (content, model, _) = run(&steps);
        prop_assert_eq!(all_bytes(&content), expand((0..SECTORS).map(|sector| model.newest(sector))));
    }

    /// Every subset of the unsettled writes gives exactly the bytes of the obvious model, whole and torn by
    /// sectors.
    #[test]
    fn every_subset_of_unsettled_writes_may_survive(steps in steps(), torn in any::<u64>()) {
        let (content, model, _) = run(&steps);
        let pending = unsettled(&model);
        prop_assert_eq!(content.unsettled().keys().copied().collect::<Vec<_>>(), pending.clone());
        for subset in 0_u32..1 << pending.len().min(6) {
            let chosen = |version: u64| {
                pending.iter().position(|other| *other == version).is_some_and(|at| at >= 6 || subset >> at & 1 == 1)
            };
            let kept = |version: u64, sector: u64| chosen(version) && (version.wrapping_mul(torn) >> (sector % 61)) & 1 == 0;
            let mut whole = content.clone();
            whole.cut_power(|version, _| chosen(version));
            prop_assert_eq!(all_bytes(&whole), expand((0..SECTORS).map(|at| model.after_cut(at, chosen))));
            prop_assert!(whole.unsettled().is_empty() && whole.history.is_empty());
            let mut shorn = content.clone();
            shorn.cut_power(kept);
            let expected = expand((0..SECTORS).map(|at| model.after_cut(at, |version| kept(version, at as u64))));
            prop_assert_eq!(all_bytes(&shorn), expected);
        }
    }

    /// Changes to a copy do not change the original, nor the other way round.
    #[test]
    fn copies_are_independent(before in steps(), after in steps()) {
        let (mut content, _, version) = run(&before);
        let (copy, bytes) = (content.clone(), all_bytes(&content));
        let unsettled = content.unsettled();
        for (number, step) in after.iter().enumerate() {
            match *step {
                Step::Write { first, fill, .. } | Step::Put { first, fill } => {
                    content.write(version + 1 + number as u64, (first * SECTOR) as u64, &[fill; SECTOR]);
                }
                Step::Settle { .. } => content.settle(0, CAPACITY as u64, u64::MAX),
                Step::Discard { first, sectors } => content.discard((first * SECTOR) as u64, (sectors * SECTOR) as u64),
                Step::Doom => content.doom_unsettled(|_| false),
            }
        }
        prop_assert_eq!(all_bytes(&copy), bytes);
        prop_assert_eq!(copy.unsettled(), unsettled);
        prop_assert!(copy.same_bytes(&copy.clone()));
        prop_assert_eq!(copy.same_bytes(&content), all_bytes(&copy) == all_bytes(&content));
    }
}

#[test]
fn memory_is_proportional_to_what_is_stored() {
    let mut content = Content::new(1 << 44, true);
    assert_eq!(content.stored_bytes(), 0);
    for version in 0..100 {
        content.write(version, version << 36, &[1; 512]);
    }
    assert_eq!(content.stored_bytes(), 100 * 4096);
    content.discard(4 << 36, 46 << 36);
    assert_eq!(content.stored_bytes(), 54 * 4096);
    content.discard(0, 1 << 44);
    assert_eq!(content.stored_bytes(), 0);
    assert!(content.history.is_empty());
}

#[test]
fn a_place_that_is_written_over_and_over_takes_bounded_memory() {
    let mut content = Content::new(1 << 20, true);
    for version in 1..=1000 {
        content.write(version, 4096, &[version as u8; 4096]);
    }
    assert_eq!(content.history.slots(), UNSETTLED_PER_PAGE_MAX + 1);
    assert_eq!(content.unsettled().len(), UNSETTLED_PER_PAGE_MAX);
    content.cut_power(|_, _| false);
    let mut byte = [0; 512];
    content.read(4096, &mut byte);
    assert_eq!(byte[0], (1000 - UNSETTLED_PER_PAGE_MAX) as u8);
}

#[test]
fn pages_are_used_again() {
    let mut content = Content::new(1 << 20, true);
    content.write(1, 0, &[1; 4096]);
    content.write(2, 0, &[2; 4096]);
    let first = content.history.iter().find_map(|entry| entry.before.as_ref()).map(Arc::as_ptr);
    content.settle(0, 4096, 2);
    content.write(3, 8192, &[3; 4096]);
    let third = content.table.get(2).and_then(|slot| slot.page.as_ref()).map(Arc::as_ptr);
    assert!(first.is_some());
    assert_eq!(first, third);
}

#[test]
fn a_drive_without_a_volatile_cache_loses_nothing() {
    let mut content = Content::new(1 << 20, false);
    content.write(1, 512, &[7; 8192]);
    content.write(2, 512, &[8; 512]);
    assert!(content.unsettled().is_empty());
    content.cut_power(|_, _| false);
    let mut bytes = [0; 1536];
    content.read(0, &mut bytes);
    assert_eq!((bytes[0], bytes[512], bytes[1024]), (0, 8, 7));
}

#[test]
fn what_is_written_from_the_same_memory_takes_memory_once() {
    for volatile in [false, true] {
        let mut content = Content::new(1 << 40, volatile);
        let mut memory = vec![0; 4 * 4096 + 512];
        memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 4096 + 1) as u8);
        for version in 0..1000 {
            content.write(version, version * 1_000_448 / 4096 * 4096, &memory[..16384]);
        }
        assert_eq!(content.stored_bytes(), 16384);
        // One place is changed in part, and the memory as a whole: nothing else changes.
        content.write(1000, 512, &[9; 512]);
        memory.fill(7);
        content.write(1001, 1 << 30, &memory[..16384]);
        let mut bytes = vec![0; 16384];
        content.read(1_000_448 / 4096 * 4096, &mut bytes);
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (at / 4096 + 1) as u8));
        content.read(0, &mut bytes);
        assert_eq!((bytes[0], bytes[512], bytes[1024]), (1, 9, 1));
        content.read(1 << 30, &mut bytes);
        assert!(bytes == memory[..16384]);
    }
}
