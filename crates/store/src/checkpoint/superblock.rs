//! The superblock: it names the current checkpoint, and everything that is needed before anything else can be
//! read.
//!
//! ```text
//! byte  bytes  field
//!    0      8  magic "flshgrn" and a zero
//!    8      4  CRC-32C of bytes 12 to 512
//!   12      4  version of the format
//!   16     16  the store's id
//!   32      8  generation: counts superblocks, from 1 on
//!   40      8  nothing that is read
//!   48      1  1 if the store was closed, so that the log need not be searched for its end; 2 while it is
//!              being made and is no store yet; else 0
//!   49      1  placement: 1 out of place, 2 in place
//!   50      1  how the log is made durable: 1 dsync, 2 linked flush, 3 fdatasync
//!   51      1  1 if the log has a device of its own; else 0
//!   52      4  sector_bytes
//!   56      4  unit_bytes
//!   60      4  pack_bytes
//!   64      8  segment_bytes
//!   72      8  segments_start_bytes
//!   80      8  first byte of the log
//!   88      8  bytes of the log
//!   96      4  log_block_bytes
//!  100      4  node_bytes
//!  104      4  read_ahead_bytes
//!  108      4  in_flight
//!  112      8  bytes of the data device that are in use: it must not have become shorter
//!  120      8  stripe unit of the data device; 0: one member
//!  128      4  members of the data device
//!  132      4  members of the log's device, if it has one of its own
//!  136      8  stripe unit of the log's device; 0: one member
//!  144      8  root page of the catalog
//!  152      8  its size class
//!  160      8  epoch of the cut
//!  168      8  the log from here on is to be replayed
//!  176      8  the log up to here was durable when this was written
//!  184      8  timestamp of the last record before the replay start, or of a later one; 0: none
//!  192      8  page ids from here on were never used
//!  200      8  write sequences from here on were never used by what the map refers to
//!  208      8  location of the map's last page; 0: there is no map yet
//!  216      8  serial number of that page
//!  224      8  serial number of the first page of the map's chain
//!  232      8  first_segment_bytes; 0: segment_bytes
//!  240      8  first byte of the log's first place; with the next two fields 0: the log stays where it is
//!  248      8  bytes of that
//!  256      8  the most bytes of the log
//!  264      4  half_bandwidth_bytes; 0: no profile says it
//!  268    244  zeros
//! ```

use std::ops::RangeInclusive;

use crate::class::CLASSES;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::layout::sizes::Sizes;
use crate::layout::{Layout, LogExtent, NODE_BYTES, Placement, SyncMethod};
use crate::log::{Lsn, Timestamp};
use crate::sector::{Fields, Found, Reader, SECTOR_BYTES};
use crate::segment::{DEVICE_BYTES_MAX, Location, UnitSequence};
use crate::store_id::StoreId;

/// In the place of the flag for a closed store.
const UNFINISHED: u8 = 2;

pub(crate) const MAGIC: [u8; 8] = *b"flshgrn\0";

/// Number of members of a device, and their striping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub members: u32,
    /// 0 for one member.
    pub stripe_unit_bytes: u64,
}

/// The persistent page table's chain of pages, by its last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapHead {
    pub last: Location,
    pub last_serial: u64,
    pub first_serial: u64,
}

/// A consistent state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointState {
    pub epoch: Epoch,
    pub replay_start: Lsn,
    /// The log up to here was durable.
    pub log_durable: Lsn,
    /// The timestamp of the last record before `replay_start`, or of a later one.
    pub newest: Timestamp,
    pub next_page: PageId,
    pub next_sequence: UnitSequence,
    pub map: Option<MapHead>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub store: StoreId,
    pub generation: u64,
    pub closed: bool,
    /// Whether the store is the target of a running backup, and must not be opened. Closing it makes it a
    /// store.
    pub unfinished: bool,
    pub layout: Layout,
    pub data_bytes: u64,
    pub data_shape: Shape,
    pub log_shape: Option<Shape>,
    pub catalog: PageId,
    pub catalog_class: u8,
    pub state: CheckpointState,
}

impl Superblock {
    /// The one that follows when the store is opened, before anything else is written: the log may go on from
    /// now on, and write sequences below `next_sequence` may be on the device.
    pub fn opened(&self, next_sequence: UnitSequence) -> Self {
        let state = CheckpointState { next_sequence, ..self.state };
        let generation = self.generation + 1;
        let closed = self.closed && planted!(StaysClosedWhenOpened);
        Self { generation, closed, state, ..self.clone() }
    }

    /// The bytes of a copy on the device.
    pub fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut fields = Fields::new(MAGIC);
        fields.put(self.store.0);
        fields.long(self.generation);
        fields.long(0);
        fields.byte(if self.unfinished { UNFINISHED } else { self.closed.into() });
        self.encode_layout(&mut fields);
        fields.long(self.data_bytes);
        fields.long(self.data_shape.stripe_unit_bytes);
        fields.word(self.data_shape.members);
        let log_shape = self.log_shape.unwrap_or(Shape { members: 0, stripe_unit_bytes: 0 });
        fields.word(log_shape.members);
        fields.long(log_shape.stripe_unit_bytes);
        fields.long(self.catalog.0);
        fields.long(self.catalog_class.into());
        let CheckpointState { epoch, replay_start, log_durable, newest, next_page, next_sequence, map } =
            self.state;
        fields.long(epoch.0.into());
        fields.long(replay_start.0);
        fields.long(log_durable.0);
        fields.long(newest.0);
        fields.long(next_page.0);
        fields.long(next_sequence.0);
        fields.long(map.map_or(0, |map| map.last.bits()));
        fields.long(map.map_or(0, |map| map.last_serial));
        fields.long(map.map_or(0, |map| map.first_serial));
        let layout = &self.layout;
        fields.long(layout.first_segment_bytes);
        fields.long(layout.log_at_creation.start_bytes);
        fields.long(layout.log_at_creation.bytes);
        fields.long(layout.log_bytes_max);
        fields.word(layout.half_bandwidth_bytes);
        fields.seal()
    }

    fn encode_layout(&self, fields: &mut Fields) {
        let layout = &self.layout;
        fields.byte(match layout.placement {
            Placement::OutOfPlace => 1,
            Placement::InPlace => 2,
        });
        fields.byte(match layout.sync_method {
            SyncMethod::Dsync => 1,
            SyncMethod::LinkedFlush => 2,
            SyncMethod::Fdatasync => 3,
        });
        fields.byte(self.log_shape.is_some().into());
        fields.word(layout.sector_bytes);
        fields.word(layout.unit_bytes);
        fields.word(layout.pack_bytes);
        fields.long(layout.segment_bytes);
        fields.long(layout.segments_start_bytes);
        fields.long(layout.log.start_bytes);
        fields.long(layout.log.bytes);
        fields.word(layout.log_block_bytes);
        fields.word(layout.node_bytes);
        fields.word(layout.read_ahead_bytes);
        fields.word(layout.in_flight);
    }

    /// Decodes a sector.
    pub(crate) fn decode(bytes: &[u8]) -> Found<Self> {
        match Reader::open(bytes, MAGIC) {
            Found::Whole(fields) => Self::from_fields(fields).map_or(Found::Damaged, Found::Whole),
            Found::Foreign => Found::Foreign,
            Found::Version(version) => Found::Version(version),
            Found::Damaged => Found::Damaged,
        }
    }

    /// `None` for fields that this version never wrote.
    fn from_fields(mut fields: Reader<'_>) -> Option<Self> {
        let store = StoreId(fields.take());
        let (generation, _) = (fields.long(), fields.long());
        let state = fields.byte();
        let unfinished = state == UNFINISHED;
        let closed = !unfinished && flag(state)?;
        let (mut layout, own_log) = decode_layout(&mut fields)?;
        let data_bytes = fields.long();
        let stripe_unit_bytes = fields.long();
        let data_shape = Shape { members: fields.word(), stripe_unit_bytes };
        let members = fields.word();
        let log_shape = Shape { members, stripe_unit_bytes: fields.long() };
        let catalog = PageId(fields.long());
        let catalog_class = u8::try_from(fields.long()).ok()?;
        let mut state = CheckpointState {
            epoch: Epoch(u32::try_from(fields.long()).ok()?),
            replay_start: Lsn(fields.long()),
            log_durable: Lsn(fields.long()),
            newest: Timestamp(fields.long()),
            next_page: PageId(fields.long()),
            next_sequence: UnitSequence(fields.long()),
            map: None,
        };
        let (last, last_serial, first_serial) = (fields.long(), fields.long(), fields.long());
        if last != 0 {
            state.map = Some(MapHead { last: Location::decode(last)?, last_serial, first_serial });
        }
        // Version 3, where nothing grew but the number of segments, has zeros from here on.
        let [first_segment_bytes, first_start_bytes, first_bytes, log_bytes_max] =
            [(); 4].map(|()| fields.long());
        if first_segment_bytes > 0 {
            layout.first_segment_bytes = first_segment_bytes;
        }
        if log_bytes_max > 0 {
            layout.log_at_creation = LogExtent { start_bytes: first_start_bytes, bytes: first_bytes };
            layout.log_bytes_max = log_bytes_max;
        }
        layout.half_bandwidth_bytes = fields.word();
        if !is_sound(&layout, own_log) {
            return None;
        }
        let superblock = Self {
            store,
            generation,
            closed,
            unfinished,
            layout,
            data_bytes,
            data_shape,
            log_shape: own_log.then_some(log_shape),
            catalog,
            catalog_class,
            state,
        };
        superblock.is_possible().then_some(superblock)
    }

    /// On a data device of `data_bytes`, no page has this number or a higher one: numbers are used again, so
    /// that they are about as many as the pages that fit, plus those that were made and freed while the log
    /// came round.
    pub fn page_limit(&self, data_bytes: u64) -> PageId {
        let bytes = data_bytes.saturating_add(self.layout.log_bytes_max);
        PageId((bytes / BYTES_PER_PAGE_MIN).saturating_add(SPARE_PAGES))
    }

    /// Whether a store can have this state, so that going on from it overwrites nothing, and needs no more
    /// memory than a store of its size.
    fn is_possible(&self) -> bool {
        let state = &self.state;
        let counters = [
            self.generation,
            state.replay_start.0,
            state.log_durable.0,
            state.next_sequence.0,
            self.data_bytes,
            self.data_shape.stripe_unit_bytes,
        ];
        let map_is_chain =
            |map: MapHead| map.first_serial <= map.last_serial && map.last_serial < COUNTER_MAX;
        counters.iter().all(|counter| *counter < COUNTER_MAX)
            && state.epoch <= EPOCH_MAX
            && state.newest <= Timestamp::MAX
            && state.next_page.0 > 0
            && state.next_page <= self.page_limit(self.data_bytes)
            && self.catalog.0 < state.next_page.0
            && usize::from(self.catalog_class) < CLASSES
            && state.map.is_none_or(map_is_chain)
    }
}

/// No counter ever reaches this.
const COUNTER_MAX: u64 = 1 << 62;

/// No epoch that is read from a device is later.
pub(crate) const EPOCH_MAX: Epoch = Epoch(u32::MAX / 2);

/// Every page takes at least this number of bytes of device and log.
const BYTES_PER_PAGE_MIN: u64 = 16;

/// Pages besides, in small stores.
const SPARE_PAGES: u64 = 1 << 20;

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Whether a store could have been made like this.
fn is_sound(layout: &Layout, own_log: bool) -> bool {
    let (unit, sector) = (u64::from(layout.unit_bytes), u64::from(layout.sector_bytes));
    let LogExtent { start_bytes: log_start_bytes, bytes: log_bytes } = layout.log;
    [512, 4096].contains(&sector)
        && layout.unit_bytes.is_power_of_two()
        && UNIT_BYTES.contains(&layout.unit_bytes)
        && (unit..=SEGMENT_BYTES_MAX).contains(&layout.segment_bytes)
        && layout.segment_bytes.is_multiple_of(unit)
        && (unit..=layout.segment_bytes).contains(&layout.first_segment_bytes)
        && layout.first_segment_bytes.is_multiple_of(unit)
        && layout.segments_start_bytes <= DEVICE_BYTES_MAX
        // Only then does every unit have a place for each image that is not longer.
        && layout.segments_start_bytes.is_multiple_of(unit)
        && (layout.sector_bytes..=layout.unit_bytes).contains(&layout.pack_bytes)
        && layout.pack_bytes.is_power_of_two()
        && LOG_BLOCK_BYTES.contains(&layout.log_block_bytes)
        && u64::from(layout.log_block_bytes).is_multiple_of(sector)
        && log_start_bytes.is_multiple_of(sector)
        && log_bytes > 2 * u64::from(layout.log_block_bytes)
        && log_bytes.is_multiple_of(layout.log_block_bytes.into())
        && layout.log.end_bytes() <= DEVICE_BYTES_MAX
        && layout.log_bytes_max <= DEVICE_BYTES_MAX
        && is_log_in_its_place(layout, own_log)
        && layout.node_bytes.is_power_of_two()
        && (NODE_BYTES.0..=NODE_BYTES.1).contains(&layout.node_bytes)
}

/// Whether the log is where it was at first, or fills segments.
fn is_log_in_its_place(layout: &Layout, own_log: bool) -> bool {
    let LogExtent { start_bytes, bytes } = layout.log;
    if layout.log == layout.log_at_creation {
        return own_log || layout.log.end_bytes() <= layout.segments_start_bytes;
    }
    let sizes = Sizes::of(layout);
    let is_border = |at: u64| sizes.index_of(at).is_some_and(|index| sizes.range(index).start == at);
    let is_first_in_front = layout.log_at_creation.end_bytes() <= layout.segments_start_bytes;
    !own_log && is_first_in_front && bytes > 0 && is_border(start_bytes) && is_border(layout.log.end_bytes())
}

/// Valid write units; the range when a store is made is narrower.
const UNIT_BYTES: RangeInclusive<u32> = 4 << 10..=64 << 20;

/// Blocks of the log likewise.
const LOG_BLOCK_BYTES: RangeInclusive<u32> = 512..=1 << 20;

/// The longest segment that there may be.
const SEGMENT_BYTES_MAX: u64 = 1 << 40;

fn decode_layout(fields: &mut Reader<'_>) -> Option<(Layout, bool)> {
    let placement = match fields.byte() {
        1 => Placement::OutOfPlace,
        2 => Placement::InPlace,
        _ => return None,
    };
    let sync_method = match fields.byte() {
        1 => SyncMethod::Dsync,
        2 => SyncMethod::LinkedFlush,
        3 => SyncMethod::Fdatasync,
        _ => return None,
    };
    let own_log = flag(fields.byte())?;
    let [sector_bytes, unit_bytes, pack_bytes] = [(); 3].map(|()| fields.word());
    let [segment_bytes, segments_start_bytes, start_bytes, bytes] = [(); 4].map(|()| fields.long());
    let log = LogExtent { start_bytes, bytes };
    let [log_block_bytes, node_bytes, read_ahead_bytes, in_flight] = [(); 4].map(|()| fields.word());
    let layout = Layout {
        sector_bytes,
        unit_bytes,
        segment_bytes,
        first_segment_bytes: segment_bytes,
        segments_start_bytes,
        pack_bytes,
        log,
        log_at_creation: log,
        log_bytes_max: bytes,
        log_block_bytes,
        placement,
        sync_method,
        read_ahead_bytes,
        in_flight,
        half_bandwidth_bytes: 0,
        node_bytes,
    };
    Some((layout, own_log))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some superblock, different for each seed.
    pub fn sample(seed: u64) -> Superblock {
        let layout = Layout {
            sector_bytes: 512,
            unit_bytes: 1 << 17,
            segment_bytes: 3 << 20,
            segments_start_bytes: (4 << 20) + ((seed % 1024) << 17),
            pack_bytes: 16384,
            log: LogExtent { start_bytes: seed % 512 * 4096, bytes: 1 << 20 },
            log_at_creation: LogExtent { start_bytes: seed % 512 * 4096, bytes: 1 << 20 },
            log_bytes_max: (1 << 20) + seed % 3,
            first_segment_bytes: [3 << 20, 1 << 20][seed as usize % 2],
            log_block_bytes: 4096,
            placement: if seed.is_multiple_of(2) { Placement::OutOfPlace } else { Placement::InPlace },
            sync_method: SyncMethod::LinkedFlush,
            read_ahead_bytes: 5,
            in_flight: 6,
            half_bandwidth_bytes: seed as u32 % 7,
            node_bytes: 4096 << (seed % 5),
        };
        let map =
            MapHead { last: Location::new(512 * (seed >> 24), 4096, 3), last_serial: 9, first_serial: 8 };
        Superblock {
            store: StoreId([seed as u8; 16]),
            generation: seed >> 3,
            closed: seed % 5 == 3,
            unfinished: seed % 5 == 4,
            layout,
            data_bytes: seed >> 3,
            data_shape: Shape { members: 3, stripe_unit_bytes: seed >> 4 },
            log_shape: seed.is_multiple_of(5).then_some(Shape { members: 2, stripe_unit_bytes: seed >> 5 }),
            catalog: PageId(seed % 1000),
            catalog_class: 2,
            state: CheckpointState {
                epoch: Epoch(seed as u32 >> 2),
                replay_start: Lsn(seed >> 7),
                log_durable: Lsn(seed >> 11),
                newest: Timestamp(seed >> 9),
                next_page: PageId(1000 + seed % 1000),
                next_sequence: UnitSequence(seed >> 10),
                map: seed.is_multiple_of(7).then_some(map),
            },
        }
    }

    /// Each sets one field to an impossible value; the number is high.
    const SPOILS: &[fn(&mut Superblock, u64)] = &[
        |superblock, high| superblock.generation = high,
        |superblock, high| superblock.data_bytes = high,
        |superblock, high| superblock.state.replay_start = Lsn(high),
        |superblock, high| superblock.state.log_durable = Lsn(high),
        |superblock, high| superblock.state.newest = Timestamp(high),
        |superblock, high| superblock.state.next_page = PageId(high),
        |superblock, high| superblock.state.next_sequence = UnitSequence(high),
        |superblock, _| superblock.state.epoch = Epoch(u32::MAX),
        |superblock, _| superblock.state.next_page = PageId(0),
        |superblock, _| superblock.catalog = superblock.state.next_page,
        |superblock, _| superblock.catalog_class = CLASSES as u8,
        |superblock, _| superblock.layout.sector_bytes = 1024,
        |superblock, _| superblock.layout.unit_bytes = 1,
        |superblock, _| superblock.layout.unit_bytes = 1 << 31,
        |superblock, high| superblock.layout.segment_bytes = high,
        |superblock, high| superblock.layout.segments_start_bytes = high,
        |superblock, _| superblock.layout.segments_start_bytes += 4096,
        |superblock, _| superblock.layout.pack_bytes = 0,
        |superblock, _| superblock.layout.pack_bytes = 12544,
        |superblock, high| superblock.layout.log.start_bytes = high,
        |superblock, high| superblock.layout.log.bytes = high,
        |superblock, high| superblock.layout.log_bytes_max = high,
        |superblock, high| superblock.layout.first_segment_bytes = high,
        |superblock, _| superblock.layout.first_segment_bytes += 4096,
        // Neither where it was at first, nor in whole segments.
        |superblock, _| superblock.layout.log_at_creation.bytes += 4096,
        |superblock, _| superblock.layout.log_block_bytes = 48,
        |superblock, _| superblock.layout.node_bytes = 1 << 31,
    ];

    proptest! {
        #[test]
        fn a_superblock_comes_back(seed: u64) {
            prop_assert_eq!(Superblock::decode(&sample(seed).encode()), Found::Whole(sample(seed)));
        }

        #[test]
        fn a_superblock_that_no_store_came_to_is_damaged(seed: u64, which in 0..SPOILS.len(), high in 62..64_u32) {
            let mut superblock = sample(seed);
            SPOILS[which](&mut superblock, 1 << high);
            prop_assert_eq!(Superblock::decode(&superblock.encode()), Found::Damaged);
        }

        #[test]
        fn nonsense_is_not_a_superblock(bytes: Vec<u8>) {
            prop_assert!(!matches!(Superblock::decode(&bytes), Found::Whole(_)));
        }

        /// Fields that no version wrote, under a right checksum, are damage at worst.
        #[test]
        fn nonsense_with_a_checksum_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 496)) {
            let mut fields = Fields::new(MAGIC);
            bytes.iter().for_each(|byte| fields.byte(*byte));
            let _whatever = Superblock::decode(&fields.seal());
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let sector = sample(12345).encode();
        for bit in 0..SECTOR_BYTES * 8 {
            let mut flipped = sector;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = Superblock::decode(&flipped);
            assert!(matches!(found, Found::Foreign | Found::Damaged), "bit {bit}: {found:?}");
        }
    }

    /// Of version 3, whose superblocks end earlier, with zeros.
    #[test]
    fn a_log_that_does_not_say_that_it_grows_stays_where_it_is() {
        let superblock = sample(2);
        let mut sector = superblock.encode();
        sector[232..264].fill(0);
        sector[12] = 3;
        let checksum = crate::checksum::crc32c(&sector[12..]);
        sector[8..12].copy_from_slice(&checksum.to_le_bytes());
        let Found::Whole(found) = Superblock::decode(&sector) else { panic!("it is opened") };
        assert_eq!(found.layout.first_segment_bytes, found.layout.segment_bytes);
        assert_eq!((found.layout.log_at_creation, found.layout.log_grows()), (superblock.layout.log, false));
    }

    /// As it is written when the log has moved.
    #[test]
    fn a_log_in_segments_fills_them() {
        let mut superblock = Superblock { log_shape: None, ..sample(1) };
        let sizes = Sizes::of(&superblock.layout);
        let (start_bytes, bytes) = (sizes.range(3).start, sizes.range(20).end - sizes.range(3).start);
        superblock.layout.log = LogExtent { start_bytes, bytes };
        assert_eq!(Superblock::decode(&superblock.encode()), Found::Whole(superblock.clone()));
        for wrong in [
            (start_bytes, bytes + 4096),
            (start_bytes + 4096, bytes),
            (start_bytes - (1 << 20), bytes + (1 << 20)),
        ] {
            superblock.layout.log = LogExtent { start_bytes: wrong.0, bytes: wrong.1 };
            let expected = wrong.0 < start_bytes;
            let found = Superblock::decode(&superblock.encode());
            assert_eq!(found == Found::Whole(superblock.clone()), expected, "{wrong:?}");
        }
    }

    #[test]
    fn another_version_of_the_format_is_told_from_damage() {
        let mut sector = sample(1).encode();
        let next = crate::sector::FORMAT_VERSION + 1;
        sector[12..16].copy_from_slice(&next.to_le_bytes());
        let checksum = crate::checksum::crc32c(&sector[12..]);
        sector[8..12].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Superblock::decode(&sector), Found::Version(next));
    }
}
