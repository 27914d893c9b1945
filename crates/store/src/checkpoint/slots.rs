//! The slots of superblocks, and the choice of the current one.
//!
//! ```text
//! byte of the data device
//!        0  slot of even generations, first copy
//!   16 KiB  slot of even generations, second copy
//!   64 KiB  slot of odd generations, first copy
//!   80 KiB  slot of odd generations, second copy
//! ```
//!
//! Each is written as 4 KiB, with the superblock in 512 bytes of it, and lies on a flash page of its own. The
//! copies of a slot are written together. If neither copy is whole, either their writing was interrupted, and
//! the other slot is current, or both were destroyed later. A single damaged copy loses nothing. If both
//! copies of the current slot were destroyed, the other slot refers to log and pages that may have been
//! overwritten since; the log's chain and the pages' write sequences detect that.
//!
//! While a store is being made, each of these places holds a mark instead, and each member's file, also of
//! the log, begins with one. So a store whose making was interrupted by a crash is told from a damaged one,
//! and can be made again. Members whose first bytes are not a superblock's place lose their marks once the
//! first superblock is durable; once a superblock exists, remaining marks are ignored.
//!
//! A superblock counts as written only when it was flushed and read back, because a lost or misdirected write
//! of it would silently take the store back to the previous checkpoint.

use super::area::{COPY_BYTES, END_BYTES};
use super::label::Label;
use super::superblock::Superblock;
use crate::Error;
use crate::io_context::{Block, Devices, Role, flush};
use crate::sector::{Found, SECTOR_BYTES};

/// Distance of the copies of a slot.
const COPY_DISTANCE_BYTES: u64 = 16 << 10;

/// Distance of the slots.
const SLOT_DISTANCE_BYTES: u64 = 64 << 10;

/// Begins a place of a superblock, and every member's file, of a store that is not complete yet.
pub(crate) const MAKING: [u8; 8] = *b"flshgrn0";

fn places(slot: u64) -> [u64; 2] {
    [slot * SLOT_DISTANCE_BYTES, slot * SLOT_DISTANCE_BYTES + COPY_DISTANCE_BYTES]
}

/// The data device's path, for errors.
pub(super) fn path(devices: &Devices) -> String {
    devices.device(Role::Data).identity().target.clone()
}

/// Content of a slot.
enum SlotContent {
    Holds(Box<Superblock>),
    /// Zeros, or bytes from before the store was made.
    Blank,
    /// No copy is whole; the offset of a damaged one.
    Damaged(u64),
}

/// The current superblock.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::FormatVersion`], [`Error::Corrupt`] if a store has no whole superblock,
/// [`Error::Io`] if one that may be current cannot be read.
pub(crate) fn load(devices: &Devices) -> Result<Superblock, Error> {
    let capacity_bytes = devices.device(Role::Data).capacity_bytes();
    if capacity_bytes < END_BYTES {
        let why = format!(
            "it has {capacity_bytes} bytes in whole sectors, a store has at least {END_BYTES}; if it was a store, restore it from a backup, if not, name another place"
        );
        return Err(Error::NotAStore { path: path(devices).into(), why });
    }
    match (slot(devices, 0)?, slot(devices, 1)?) {
        (SlotContent::Holds(even), SlotContent::Holds(odd)) if even.store != odd.store => {
            Err(Error::Corrupt {
                what: "the superblock".into(),
                offset_bytes: SLOT_DISTANCE_BYTES,
                expected: format!("one of the store {:x?}", even.store.0),
                got: format!("one of the store {:x?}", odd.store.0),
            })
        }
        (SlotContent::Holds(even), SlotContent::Holds(odd))
            if even.generation > odd.generation || planted!(OlderSuperblockTaken) =>
        {
            Ok(*even)
        }
        (SlotContent::Holds(_) | SlotContent::Blank | SlotContent::Damaged(_), SlotContent::Holds(only))
        | (SlotContent::Holds(only), SlotContent::Blank | SlotContent::Damaged(_)) => Ok(*only),
        (SlotContent::Blank, SlotContent::Blank) => Err(Error::NotAStore {
            path: path(devices).into(),
            why: "it does not begin with a store's superblock, none of the four copies; if it was a store, restore it from a backup, if not, name another place"
                .into(),
        }),
        (SlotContent::Damaged(offset_bytes), _) | (_, SlotContent::Damaged(offset_bytes)) => {
            Err(Error::Corrupt {
                what: "the superblock".into(),
                offset_bytes,
                expected: "at least one whole copy".into(),
                got: "wrong checksums in all of them; restore the store from a backup".into(),
            })
        }
    }
}

/// Reads both copies of a slot.
///
/// # Errors
/// [`Error::FormatVersion`]; [`Error::Io`] if a copy cannot be read and the other one is not whole: it may be
/// the current one, and the older one must not be used in its place.
fn slot(devices: &Devices, slot: u64) -> Result<SlotContent, Error> {
    let (mut found, mut unreadable) = (SlotContent::Blank, None);
    for offset_bytes in places(slot) {
        let mut block = Block::new(COPY_BYTES as usize)?;
        if let Err(error) = block.read(devices, Role::Data, offset_bytes) {
            unreadable = Some(error);
            continue;
        }
        let bytes = block.bytes();
        match Superblock::decode(bytes) {
            Found::Version(got) => {
                return Err(Error::FormatVersion { got, supported: crate::sector::FORMAT_VERSION });
            }
            // A superblock of the other slot is the result of a misdirected write.
            Found::Whole(superblock) if superblock.generation % 2 == slot => {
                let newer = match &found {
                    SlotContent::Holds(other) => superblock.generation > other.generation,
                    SlotContent::Blank | SlotContent::Damaged(_) => true,
                };
                if newer {
                    found = SlotContent::Holds(Box::new(superblock));
                }
            }
            Found::Foreign if !looks_like_one(bytes) => {}
            Found::Whole(_) | Found::Foreign | Found::Damaged => {
                if let SlotContent::Blank = found {
                    found = SlotContent::Damaged(offset_bytes);
                }
            }
        }
    }
    match (found, unreadable) {
        (SlotContent::Blank | SlotContent::Damaged(_), Some(error)) => Err(error),
        (found, _) => Ok(found),
    }
}

/// Copies, of both slots, that are neither whole nor a mark of a store that is being made.
///
/// # Errors
/// If memory to read them cannot be allocated.
pub(crate) fn damaged_copies(devices: &Devices) -> Result<u64, Error> {
    let mut damaged = 0;
    for slot in [0, 1] {
        for offset_bytes in places(slot) {
            let mut block = Block::new(COPY_BYTES as usize)?;
            let is_read = block.read(devices, Role::Data, offset_bytes).is_ok();
            let is_whole = match Superblock::decode(block.bytes()) {
                Found::Whole(superblock) => superblock.generation % 2 == slot,
                _ => is_mark(&block.bytes()[..SECTOR_BYTES]),
            };
            damaged += u64::from(!is_read || !is_whole);
        }
    }
    Ok(damaged)
}

/// Whether bytes without the right magic may be those of a superblock with damage in just there.
fn looks_like_one(bytes: &[u8]) -> bool {
    let mut mended = [0; SECTOR_BYTES];
    mended.copy_from_slice(&bytes[..SECTOR_BYTES]);
    mended[..super::superblock::MAGIC.len()].copy_from_slice(&super::superblock::MAGIC);
    matches!(Superblock::decode(&mended), Found::Whole(_) | Found::Version(_))
}

/// Makes `superblock` the current one: written, flushed, and read back.
///
/// # Errors
/// Of the device, or [`Error::Corrupt`] if it reads back as something else. The previous superblock still
/// counts then, or this one.
pub(crate) fn save(devices: &Devices, superblock: &Superblock) -> Result<(), Error> {
    let sector = superblock.encode();
    let mut block = Block::new(COPY_BYTES as usize)?;
    let both = places(superblock.generation % 2);
    let offsets = if planted!(SuperblockHasOneCopy) { &both[..1] } else { &both[..] };
    for offset_bytes in offsets.iter().copied() {
        block.bytes()[..SECTOR_BYTES].copy_from_slice(&sector);
        block.write(devices, Role::Data, offset_bytes)?;
    }
    if !planted!(SuperblockNotFlushed) {
        flush(devices, Role::Data).map_err(|failure| failure.error("flush the superblock"))?;
    }
    for offset_bytes in offsets.iter().copied() {
        block.bytes().fill(0);
        block.read(devices, Role::Data, offset_bytes)?;
        if block.bytes()[..SECTOR_BYTES] != sector {
            return Err(Error::Corrupt {
                what: "the superblock".into(),
                offset_bytes,
                expected: format!("generation {}, just written", superblock.generation),
                got: "something else".into(),
            });
        }
    }
    Ok(())
}

/// Erases all superblocks, and writes the marks of a store that is being made.
pub(crate) fn erase(devices: &Devices) -> Result<(), Error> {
    let mut block = Block::new(COPY_BYTES as usize)?;
    block.bytes()[..MAKING.len()].copy_from_slice(&MAKING);
    for offset_bytes in places(0).into_iter().chain(places(1)) {
        block.write(devices, Role::Data, offset_bytes)?;
    }
    flush(devices, Role::Data).map_err(|failure| failure.error("flush the erased superblocks"))
}

/// Ends the making of a store: erases the marks at the beginnings of members' files, except where superblocks
/// are.
///
/// # Errors
/// Of the devices. The store is complete even so, as marks are ignored once a superblock exists.
pub(crate) fn complete(devices: &Devices) -> Result<(), Error> {
    let superblocks = [places(0), places(1)].concat();
    let mut block = Block::new(COPY_BYTES as usize)?;
    for role in [Role::Data, Role::Log] {
        if role == Role::Log && !devices.has_own_log() {
            continue;
        }
        let geometry = devices.device(role).geometry();
        let unit = geometry.stripe_unit_bytes.unwrap_or(0);
        let members = (0..u64::from(geometry.members)).map(|member| member * unit);
        let mut any = false;
        for offset_bytes in members.filter(|at| role == Role::Log || !superblocks.contains(at)) {
            block.read(devices, role, offset_bytes)?;
            if is_mark(&block.bytes()[..SECTOR_BYTES]) {
                block.bytes().fill(0);
                block.write(devices, role, offset_bytes)?;
                any = true;
            }
        }
        if any {
            flush(devices, role).map_err(|failure| failure.error("flush a member's beginning"))?;
        }
    }
    Ok(())
}

fn is_mark(sector: &[u8]) -> bool {
    sector.strip_prefix(&MAKING).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// Whether a member's file with these first [`END_BYTES`] is part of a store whose making was interrupted: it
/// begins with a mark, or has them where superblocks belong, and no complete superblock is, or was, in any
/// place. Other members may have one.
pub(crate) fn is_cut_off(head: &[u8], is_log: bool) -> bool {
    let begins = is_mark(sector_at(head, 0));
    let label = Label::of_member(head);
    if is_log {
        return begins && label.is_none_or(|label| label.is_log);
    }
    let (members, unit, member) = match label {
        Some(label) if label.is_log => return false,
        Some(label) if label.shape.members > 1 => {
            (u64::from(label.shape.members), label.shape.stripe_unit_bytes.max(1), u64::from(label.member))
        }
        _ => (1, u64::MAX, 0),
    };
    let here = places(0).into_iter().chain(places(1));
    let here =
        here.filter(|at| at / unit % members == member).map(|at| at / unit / members * unit + at % unit);
    let sectors: Vec<&[u8]> = here.map(|at| sector_at(head, at)).collect();
    let is_free = |sector: &&[u8]| {
        is_mark(sector)
            || sector.iter().all(|byte| *byte == 0)
            || matches!(Superblock::decode(sector), Found::Whole(superblock) if superblock.unfinished)
    };
    let is_any = |sector: &&[u8]| sector.iter().any(|byte| *byte != 0);
    (begins || sectors.iter().any(is_any)) && sectors.iter().all(is_free)
}

/// A sector of a member's head, or the part of it that the head has.
fn sector_at(head: &[u8], at: u64) -> &[u8] {
    let from = head.get(at as usize..).unwrap_or_default();
    from.get(..SECTOR_BYTES).unwrap_or(from)
}

/// Whether the data device has, or had, a store.
#[cfg(test)]
pub(crate) fn is_taken(devices: &Devices) -> Result<bool, Error> {
    match load(devices) {
        Err(Error::NotAStore { .. }) => Ok(false),
        Ok(_) | Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => Ok(true),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, PowerCut, Survivors, Tear, Trigger};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::super::superblock::tests::sample;
    use super::*;
    use crate::error::ErrorKind;

    fn drive() -> (Arc<SimDevice>, Devices) {
        let config = SimConfig::named("905p").unwrap();
        let device = Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap());
        (Arc::clone(&device), Devices::new(device, None))
    }

    fn generation(number: u64) -> Superblock {
        Superblock { generation: number, ..sample(42) }
    }

    fn overwrite(devices: &Devices, offset_bytes: u64, with: u8) {
        let mut block = Block::new(COPY_BYTES as usize).unwrap();
        block.bytes().fill(with);
        block.write(devices, Role::Data, offset_bytes).unwrap();
    }

    /// A superblock that cannot be read may be newer: with the one before it, the store would be another one.
    #[test]
    fn regression_a_superblock_that_cannot_be_read_is_not_taken_for_an_older_one() {
        let (device, devices) = drive();
        for number in 1..=3 {
            save(&devices, &generation(number)).unwrap();
        }
        let unreadable = |place: u64| {
            let range = place..place + COPY_BYTES;
            device.inject(Fault { range, ..Fault::new(FaultKind::ReadError { done_bytes: 0 }) })
        };
        let [one, other] = places(1);
        // Each fault strikes once.
        unreadable(one);
        assert_eq!(load(&devices).unwrap().generation, 3);
        unreadable(one);
        unreadable(other);
        assert_eq!(load(&devices).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(load(&devices).unwrap().generation, 3);
    }

    #[test]
    fn the_newest_counts_and_single_damages_lose_nothing() {
        let (_, devices) = drive();
        assert_eq!(load(&devices).unwrap_err().kind(), ErrorKind::NotFound);
        for number in 1..=5 {
            save(&devices, &generation(number)).unwrap();
            assert_eq!(load(&devices).unwrap(), generation(number));
        }
        for offset in places(0).into_iter().chain(places(1)) {
            let mut kept = Block::new(COPY_BYTES as usize).unwrap();
            kept.read(&devices, Role::Data, offset).unwrap();
            for with in [0, 0xff] {
                overwrite(&devices, offset, with);
                assert_eq!(load(&devices).unwrap(), generation(5), "{with} at {offset}");
            }
            kept.write(&devices, Role::Data, offset).unwrap();
        }
        // The newer slot is gone as a whole: its writing may have been interrupted.
        places(1).into_iter().for_each(|offset| overwrite(&devices, offset, 0xff));
        assert_eq!(load(&devices).unwrap(), generation(4));
        erase(&devices).unwrap();
        assert!(!is_taken(&devices).unwrap());
    }

    /// A copy that was not written yet is not damaged, whatever the current generation is.
    #[test]
    fn damaged_copies_are_counted() {
        let (_, devices) = drive();
        erase(&devices).unwrap();
        for number in 1..=3 {
            save(&devices, &generation(number)).unwrap();
            assert_eq!(damaged_copies(&devices).unwrap(), 0);
        }
        for (place, with, expected) in [(places(1)[1], 0, 1), (places(0)[0], 0xff, 2), (places(0)[1], 7, 3)] {
            overwrite(&devices, place, with);
            assert_eq!(damaged_copies(&devices).unwrap(), expected);
        }
        assert_eq!(load(&devices).unwrap(), generation(3));
        (4..=5).for_each(|number| save(&devices, &generation(number)).unwrap());
        assert_eq!(damaged_copies(&devices).unwrap(), 0);
    }

    #[test]
    fn damage_everywhere_is_not_taken_for_an_empty_drive() {
        let (device, devices) = drive();
        save(&devices, &generation(7)).unwrap();
        for (copy, bit) in [(0, 3), (1, 100)] {
            let range = places(1)[copy]..places(1)[copy] + 512;
            device.inject(Fault::new(FaultKind::FlipAtRest { bit: Some(bit) }).within(range));
        }
        assert_eq!(load(&devices).unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(is_taken(&devices).unwrap());
    }

    #[test]
    fn one_of_another_place_or_of_another_store_does_not_count() {
        let (_, devices) = drive();
        save(&devices, &generation(2)).unwrap();
        let mut led_astray = Block::new(COPY_BYTES as usize).unwrap();
        led_astray.bytes()[..SECTOR_BYTES].copy_from_slice(&generation(4).encode());
        led_astray.write(&devices, Role::Data, places(1)[0]).unwrap();
        assert_eq!(load(&devices).unwrap(), generation(2));
        let other = Superblock { store: crate::store_id::StoreId([1; 16]), ..generation(3) };
        save(&devices, &other).unwrap();
        assert_eq!(load(&devices).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn one_that_did_not_reach_the_medium_is_not_taken_for_written() {
        for kind in [FaultKind::LostWrite, FaultKind::MisdirectedWrite { by_bytes: 1 << 20 }] {
            let (device, devices) = drive();
            save(&devices, &generation(1)).unwrap();
            device.inject(Fault::new(kind).on(Operation::Write));
            assert_eq!(save(&devices, &generation(2)).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    /// Whatever a power cut leaves of a write, the old one or the new one counts, and the new one if it was
    /// acknowledged.
    #[test]
    fn a_power_cut_leaves_the_old_one_or_the_new_one() {
        let mut seen = [0; 2];
        for case in 0..4000 {
            // Each event in six ways.
            let event = case / 6;
            let (device, devices) = drive();
            save(&devices, &generation(1)).unwrap();
            save(&devices, &generation(2)).unwrap();
            let survivors = [Survivors::None, Survivors::All, Survivors::Random][case as usize % 3].clone();
            let tear = [Tear::Whole, Tear::Prefix { unit_bytes: 512 }][case as usize / 3 % 2];
            let cut = PowerCut { survivors, tear, in_flight: true, seed: case };
            let begin = device.events();
            device.inject(Fault::new(FaultKind::PowerCut(cut)).at(Trigger::Event(begin + event)));
            let saved = save(&devices, &generation(3));
            if device.answers() {
                assert!(saved.is_ok());
                break;
            }
            device.power_on();
            let left = load(&devices).unwrap().generation;
            assert!(left == 3 || (left == 2 && saved.is_err()), "event {event}: {left} after {saved:?}");
            seen[usize::from(left == 3)] += 1;
        }
        assert!(seen[0] > 3 && seen[1] > 3, "{seen:?}");
    }

    #[test]
    fn a_member_is_cut_off_only_while_no_place_has_a_complete_superblock() {
        let mut head = vec![0; END_BYTES as usize];
        assert!(!is_cut_off(&head, false), "blank: a damaged store may be");
        head[..8].copy_from_slice(&MAKING);
        assert!(is_cut_off(&head, false) && is_cut_off(&head, true) && is_cut_off(&MAKING, false));
        let unfinished = Superblock { unfinished: true, closed: false, ..generation(1) };
        for (superblock, expected) in [(unfinished, true), (generation(1), false)] {
            for place in places(1) {
                let mut head = head.clone();
                head[place as usize..][..SECTOR_BYTES].copy_from_slice(&superblock.encode());
                assert_eq!(is_cut_off(&head, false), expected, "at {place}");
                // Damage is not taken for an interrupted creation.
                head[place as usize + 100] ^= 1;
                assert!(!is_cut_off(&head, false));
            }
        }
    }

    /// With small stripe units the superblocks are in several members.
    #[test]
    fn each_member_is_judged_by_the_superblocks_that_belong_into_it() {
        let shape = crate::checkpoint::Shape { members: 2, stripe_unit_bytes: 16 << 10 };
        let label = Label { store: generation(1).store, is_log: false, shape, member: 1 };
        let mut head = vec![0; END_BYTES as usize];
        head[..8].copy_from_slice(&MAKING);
        head[8 << 10..][..SECTOR_BYTES].copy_from_slice(&label.encode());
        // Pages may be where a single member has superblocks.
        head[64 << 10..].fill(7);
        assert!(is_cut_off(&head, false));
        // The second copy of the odd slot is at 80 KiB: unit 5, the third of this member.
        head[32 << 10..][..SECTOR_BYTES].copy_from_slice(&generation(1).encode());
        assert!(!is_cut_off(&head, false));
        assert!(!is_cut_off(&head, true), "a label of data in a log");
    }
}
