//! Loading a checkpoint at opening: from the superblock to the page table.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;

use super::Superblock;
use super::map::{Change, MapPage, MapPageLocation, page_id, places};
use super::run::Base;
use crate::Error;
use crate::io_context::Block;
use crate::pool::Pool;
use crate::segment::{DEVICE_BYTES_MAX, Segments, UnitSequence};
use crate::task::{Executor, JoinHandle};

/// Map pages that are read at a time.
const READS: usize = 32;

/// An upper bound for the segments that a device has had.
const SEGMENTS_MAX: u64 = DEVICE_BYTES_MAX / 4096;

/// Restores the superblock's checkpoint into the pool and the segments, which are new, and returns the base
/// of the next checkpoint.
///
/// # Errors
/// [`Error::Corrupt`] and [`Error::Io`] if the map cannot be read.
pub(crate) fn load(
    superblock: Superblock,
    segments: &Arc<Segments>,
    pool: &Pool,
    executor: &Executor,
) -> Result<Base, Error> {
    let state = superblock.state;
    let chain = match state.map {
        None => Vec::new(),
        Some(map) => {
            let last = MapPageLocation { serial: map.last_serial, location: map.last };
            places(last, map.first_serial, &mut |place, see| {
                see(segments.reader.read_block(place.location, page_id(place.serial))?.page())
            })?
        }
    };
    let segment_count = segments.usage().segments;
    let (mut openings, mut scratch) = (Vec::new(), Vec::new());
    for_each_block(&chain, segments, executor, &mut |place, block| {
        let mut restoring = pool.opening().restoring();
        MapPage::new(block.page(), place).changes(&mut scratch, &mut |change| {
            match change {
                Change::Page(id, location) => {
                    within("pages", id.0, state.next_page.0)?;
                    restoring.restore(id, location);
                }
                Change::Segment(index, opening) => {
                    within("segments", index, SEGMENTS_MAX)?;
                    // The device may have had more.
                    if index < segment_count {
                        note_opening(&mut openings, index, opening);
                    }
                }
            }
            Ok(())
        })
    })?;
    let numbered: Vec<(u64, UnitSequence)> = (0..).zip(openings.iter().copied()).collect();
    segments.opening.restore_sequences(state.next_sequence, &numbered);
    pool.opening().restored(state.epoch, state.next_page);
    segments.reclaim.begin_epoch(pool.epoch());
    for place in &chain {
        segments.opening.adopt_map(place.location)?;
    }
    let mut adoption = segments.opening.adoption();
    pool.checkpoints().snapshot(state.epoch, &mut |id, location| adoption.add(id, location))?;
    adoption.finish()?;
    let pack_bytes = superblock.layout.pack_bytes;
    let chain_bytes =
        chain.iter().map(|place| u64::from(place.location.length_bytes().next_multiple_of(pack_bytes))).sum();
    Ok(Base {
        next_serial: state.map.map_or(1, |map| map.last_serial + 1),
        superblock,
        priors: chain.into_iter().rev().take(super::map::PRIORS).collect(),
        chain_bytes,
        openings,
    })
}

/// Refuses numbers in the map that were never given out.
fn within(what: &str, number: u64, limit: u64) -> Result<(), Error> {
    if number < limit {
        return Ok(());
    }
    Err(Error::Corrupt {
        what: "the map".into(),
        offset_bytes: 0,
        expected: format!("{what} below {limit}"),
        got: number.to_string(),
    })
}

fn note_opening(openings: &mut Vec<UnitSequence>, index: u64, opening: UnitSequence) {
    let index = index as usize;
    if openings.len() <= index {
        openings.resize(index + 1, UnitSequence(0));
    }
    openings[index] = opening;
}

/// Reads the chain's pages, several at a time, and shows them in their order.
fn for_each_block(
    chain: &[MapPageLocation],
    segments: &Arc<Segments>,
    executor: &Executor,
    see: &mut dyn FnMut(MapPageLocation, &mut Block) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut coming: VecDeque<(MapPageLocation, JoinHandle<Result<Block, Error>>)> = VecDeque::new();
    let mut remaining = chain.iter().copied();
    loop {
        while coming.len() < READS
            && let Some(place) = remaining.next()
        {
            let segments = Arc::clone(segments);
            let read = move || segments.reader.read_block(place.location, page_id(place.serial));
            coming.push_back((place, executor.run(read)));
        }
        let Some((place, handle)) = coming.pop_front() else { return Ok(()) };
        let mut block = handle.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        see(place, &mut block)?;
    }
}
