//! Segments that are owned whole: their blocks, and that others leave them alone.

use flashgrain_device::MemoryDevice;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::model::{Durable, Model, small};
use super::*;
use crate::ErrorKind;
use crate::io_context::Block;
use crate::segment::owned::{BLOCK_HEADER_BYTES, OwnedBlock};

type Blocks = Vec<(OwnedBlock, Vec<u8>)>;

/// Takes a segment and fills it with blocks of all sizes.
fn filled(segments: &Segments, seed: u64) -> Result<(OwnedSegment, Blocks), Error> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut writer = segments.owned.take(Purpose::Flush)?;
    let mut blocks = Blocks::new();
    loop {
        let aligned = [1, 1, 512, 4096][random.random_range(0..4)];
        writer.align(aligned)?;
        let most = if random.random_bool(0.1) { 40_000 } else { 3000 };
        let content: Vec<u8> = (0..random.random_range(0..most)).map(|_| random.random()).collect();
        let room = writer.room();
        match writer.append(&content)? {
            Some(block) => {
                assert!(content.len() as u64 <= room && block.start.is_multiple_of(aligned));
                assert_eq!(block.length, content.len() as u32 + BLOCK_HEADER_BYTES);
                blocks.push((block, content));
            }
            None => {
                assert!(content.len() as u64 > room, "seed {seed}");
                break;
            }
        }
    }
    Ok((writer.finish()?, blocks))
}

fn assert_read(segment: &OwnedSegment, blocks: &Blocks) {
    for (block, content) in blocks {
        assert!(segment.read(*block).unwrap() == *content, "{block:?}");
    }
}

#[test]
fn what_an_owner_writes_is_read_block_by_block_and_several_at_once() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        let segments = world.segments(&small(&world));
        let own = Arc::clone(&segments);
        world.harness.run(move || {
            let (segment, blocks) = filled(&own, seed).unwrap();
            assert_read(&segment, &blocks);
            for several in blocks.chunks(3) {
                let wanted: Vec<OwnedBlock> = several.iter().map(|(block, _)| *block).collect();
                let mut seen = Vec::new();
                segment.read_all(&wanted, &mut |content| seen.push(content.to_vec())).unwrap();
                assert!(seen.iter().eq(several.iter().map(|(_, content)| content)), "seed {seed}");
            }
            segment.read_all(&[], &mut |_| panic!("nothing was asked for")).unwrap();
            let behind = OwnedBlock { start: (64 << 10) - 4, length: 8 };
            assert_eq!(segment.read(behind).unwrap_err().kind(), ErrorKind::Corrupt);
        });
        let written = segments.written();
        assert!(written.by_stream_bytes[Stream::Owned as usize] > 16 << 10);
        assert!(written.partial_unit_bytes < 16 << 10, "all requests but the last are whole units");
    }
}

#[test]
fn a_block_that_is_elsewhere_damaged_or_an_earlier_owners_is_refused() {
    let mut world = World::new(1);
    let layout = small(&world);
    let segments = world.segments(&layout);
    let devices = world.devices.clone();
    world.harness.run(move || {
        let write = |content: &[u8]| {
            let mut writer = segments.owned.take(Purpose::Flush).unwrap();
            let block = writer.append(content).unwrap().unwrap();
            (writer.finish().unwrap(), block)
        };
        let ((one, block), (other, same)) = (write(b"content of the one"), write(b"content of another"));
        assert_eq!(block, same);
        assert_eq!(
            one.read(OwnedBlock { length: block.length - 1, ..block }).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
        let [first, second] = [&one, &other].map(|segment| segment.location().offset_bytes());
        let mut sector = Block::new(512).unwrap();
        // A write that went to the other segment.
        sector.read(&devices, Role::Data, first).unwrap();
        sector.write(&devices, Role::Data, second).unwrap();
        assert_eq!(other.read(block).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(one.read(block).unwrap(), b"content of the one");
        for byte in [0, 5, 12] {
            sector.bytes()[byte] ^= 4;
            sector.write(&devices, Role::Data, first).unwrap();
            assert_eq!(one.read(block).unwrap_err().kind(), ErrorKind::Corrupt, "byte {byte}");
            sector.bytes()[byte] ^= 4;
        }
        sector.write(&devices, Role::Data, first).unwrap();
        assert_eq!(one.read(block).unwrap(), b"content of the one");
        // The next owner of the same segment, whose write was lost.
        drop(one);
        let (next, block) = write(b"content of the one");
        assert_eq!(next.location().offset_bytes(), first);
        sector.write(&devices, Role::Data, first).unwrap();
        assert_eq!(next.read(block).unwrap_err().kind(), ErrorKind::Corrupt);
    });
}

#[test]
fn what_nobody_records_is_free_again_and_what_is_recorded_only_after_a_checkpoint() {
    let mut world = World::new(1);
    let segments = world.segments(&small(&world));
    let own = Arc::clone(&segments);
    let before = segments.usage();
    let recorded = world.harness.run(move || {
        let mut abandoned = own.owned.take(Purpose::Flush).unwrap();
        abandoned.append(&[1; 40_000]).unwrap().unwrap();
        let (written, _) = filled(&own, 1).unwrap();
        let (recorded, blocks) = filled(&own, 2).unwrap();
        assert_eq!(own.usage().owned_bytes, 3 * (64 << 10));
        drop((abandoned, written));
        recorded.set_recorded();
        let location = recorded.location();
        drop(recorded);
        // Another one may open it.
        assert_read(&own.owned.open(location).unwrap(), &blocks);
        let elsewhere = Location::of_segment(location.offset_bytes() + 64);
        assert_eq!(own.owned.open(elsewhere).err().unwrap().kind(), ErrorKind::Corrupt);
        location
    });
    world.harness.run_until_idle();
    let usage = segments.usage();
    assert_eq!((usage.free, usage.owned_bytes), (before.free - 1, 64 << 10));
    segments.reclaim.begin_epoch(Epoch(5));
    segments.gatherer.release(recorded);
    assert!(segments.owned.open(recorded).is_err());
    segments.reclaim.free_pending(Epoch(4));
    assert_eq!((segments.usage().free, segments.usage().pending), (before.free - 1, 1));
    segments.reclaim.free_pending(Epoch(5));
    assert_eq!(segments.usage(), before);
}

#[test]
fn while_a_store_is_opened_a_segment_has_one_owner_and_no_pages() {
    let world = World::new(1);
    let layout = small(&world);
    let segments = world.segments(&layout);
    let start = |index: u64| layout.segments_start_bytes + index * layout.segment_bytes;
    let adopt = |location| segments.opening.adopt(PageId(1), location);
    adopt(Location::of_segment(start(3))).unwrap();
    for location in [
        Location::of_segment(start(3)),
        Location::of_segment(start(4) + 64),
        Location::of_segment(start(64)),
        Location::of_segment(64),
        Location::new(start(3) + 128, 4096, 0),
    ] {
        assert_eq!(adopt(location).unwrap_err().kind(), ErrorKind::Corrupt, "{location:?}");
    }
    adopt(Location::new(start(5), 4096, 0)).unwrap();
    assert_eq!(adopt(Location::of_segment(start(5))).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(segments.usage().owned_bytes, layout.segment_bytes);
}

/// A third of the segments is owned; the others are cleaned again and again.
#[test]
fn the_cleaner_leaves_owned_segments_alone() {
    let mut world = World::new(1);
    let model = Model::new(&world, &small(&world), Durable::default());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        let mut random = Pcg64::seed_from_u64(1);
        (1..=300).for_each(|id| own.change(id, 0, 2000).unwrap());
        let owned: Vec<_> = (0..20).map(|seed| filled(&own.segments, seed).unwrap()).collect();
        owned.iter().for_each(|(segment, _)| segment.set_recorded());
        for _ in 0..8000 {
            own.change(random.random_range(1..=600), 0, 2000).unwrap();
        }
        own.segments.gatherer.write_all().unwrap();
        own.verify_all().unwrap();
        owned.iter().for_each(|(segment, blocks)| assert_read(segment, blocks));
    });
    assert!(model.segments.written().cleaned_segments > 50, "{:?}", model.segments.written());
    assert_eq!(model.segments.usage().owned_bytes, 20 * (64 << 10));
}

#[test]
fn owners_leave_pages_what_they_need_and_are_told_when_there_is_no_more() {
    let mut world = World::new(1);
    let model = Model::new(&world, &small(&world), Durable::default());
    let own = Arc::clone(&model);
    world.harness.run(move || {
        (1..=100).for_each(|id| own.change(id, 0, 2000).unwrap());
        let mut owned = Vec::new();
        let refused = loop {
            match own.segments.owned.take(Purpose::Flush) {
                Ok(writer) => owned.push(writer.finish().unwrap()),
                Err(error) => break error,
            }
        };
        assert!(refused.kind() == ErrorKind::Full && owned.len() > 40, "{refused}, {} taken", owned.len());
        let usage = own.segments.usage();
        assert_eq!(usage.owned_bytes, owned.len() as u64 * (64 << 10));
        assert!(usage.free_bytes >= usage.reserved_bytes, "{usage:?}");
        // Those that are there can be changed further.
        (0..1000).for_each(|turn| own.change(1 + turn % 100, 0, 2000).unwrap());
        drop(owned);
        assert_eq!(own.segments.usage().owned_bytes, 0);
        (101..=900).for_each(|id| own.change(id, 0, 2000).unwrap());
        own.segments.gatherer.write_all().unwrap();
        own.verify_all().unwrap();
    });
}

#[test]
fn a_device_that_may_grow_does_so_for_owners() {
    const SEGMENT_BYTES: u64 = 64 << 10;
    let layout =
        Layout { unit_bytes: 16 << 10, segment_bytes: SEGMENT_BYTES, ..layout(Placement::OutOfPlace) };
    let capacity_bytes = layout.segments_start_bytes + 24 * SEGMENT_BYTES;
    let limit_bytes = layout.segments_start_bytes + 64 * SEGMENT_BYTES;
    let devices = Devices::new(Arc::new(MemoryDevice::new(capacity_bytes, limit_bytes).unwrap()), None);
    let harness = Harness::new(&devices, 2);
    let mut world = World { sim: None, devices, harness };
    let model = Model::new(&world, &layout, Durable::default());
    model.segments.growth.set(limit_bytes, 24);
    let own = Arc::clone(&model);
    world.harness.run(move || {
        let mut owned = Vec::new();
        let refused = loop {
            match filled(&own.segments, owned.len() as u64) {
                Ok(filled) => owned.push(filled),
                Err(error) => break error,
            }
        };
        assert!(refused.kind() == ErrorKind::Full && owned.len() > 40, "{refused}, {} taken", owned.len());
        owned.iter().for_each(|(segment, blocks)| assert_read(segment, blocks));
        assert_eq!(own.segments.usage().segments, 64);
    });
}

/// It could not tell the owner where its blocks have gone: only the owner can leave them.
#[test]
fn a_compaction_keeps_the_device_up_to_the_last_owned_segment() {
    const SEGMENT_BYTES: u64 = 64 << 10;
    let layout =
        Layout { unit_bytes: 16 << 10, segment_bytes: SEGMENT_BYTES, ..layout(Placement::OutOfPlace) };
    let capacity_bytes = layout.segments_start_bytes + 64 * SEGMENT_BYTES;
    let device = MemoryDevice::new(capacity_bytes, 2 * capacity_bytes).unwrap();
    let devices = Devices::new(Arc::new(device), None);
    let harness = Harness::new(&devices, 2);
    let mut world = World { sim: None, devices, harness };
    let model = Model::new(&world, &layout, Durable::default());
    model.segments.growth.set(2 * capacity_bytes, 4);
    let own = Arc::clone(&model);
    world.harness.run(move || {
        let segments = &own.segments;
        let mut owned: Vec<_> = (0..30).map(|seed| filled(segments, seed).unwrap()).collect();
        (1..=100).for_each(|id| own.change(id, 0, 2000).unwrap());
        // The first ones are free again, but for the last of them.
        let kept = owned.pop().unwrap();
        drop(owned);
        own.checkpoint().unwrap();
        let compaction = segments.compactor.begin(capacity_bytes).unwrap();
        let keep = compaction.target();
        assert!(keep < 29, "{keep}");
        let had_bytes = compaction.end_bytes(keep - 1);
        drop(compaction);
        // One fewer is dense, and the store had no more.
        let denser = segments.compactor.begin(had_bytes).unwrap();
        assert!(denser.target() == keep - 1 && denser.reaches_behind(), "{keep}");
        drop(denser);
        let compaction = segments.compactor.begin(capacity_bytes).unwrap();
        let end_bytes = compaction.end_bytes(keep);
        assert!(kept.0.end_bytes() > end_bytes && segments.owned.room_before(end_bytes) > 0);
        let rounds = (1..20).find(|_| {
            compaction.move_some(keep).unwrap();
            own.checkpoint().unwrap();
            compaction.remaining_bytes(keep) == kept.0.length()
        });
        assert!(rounds.is_some(), "{:?}", segments.usage());
        let leave = Leave::ForRemoving { first: 4, most: 64 };
        assert_eq!(compaction.leaves(), leave);
        segments.end.cut(compaction.leaves(), |_| Ok(())).unwrap();
        assert_read(&kept.0, &kept.1);
        own.verify_all().unwrap();
    });
    let usage = model.segments.usage();
    assert!((30..64).contains(&usage.segments), "{usage:?}");
}
