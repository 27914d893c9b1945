//! The rare operations of a task: those that concern a whole tree, or the store.

use std::sync::Arc;

use flashgrain::testing::Small;
use flashgrain::{Builder, Db, Error, Readable};
use rand::RngExt;

use super::feature::Feature;
use super::reads::Records;
use super::site::{LOG_BLOCK_BYTES_MAX, LOG_BLOCKS_MIN};
use super::slots::temporary_name;
use super::work::{LOGGED_VALUE_BYTES, Work};
use crate::media::Disk;
use crate::world::{Change, Stop};

/// Most records of a load that is one commit.
const LOADED_RECORDS: u64 = 200;

/// And most bytes: a sixteenth of the smallest log without its two spare blocks, as the store loads in steps.
const LOADED_BYTES: usize = (LOG_BLOCKS_MIN as usize - 2) * LOG_BLOCK_BYTES_MAX as usize / 16;

/// Bytes that the store counts for a record in addition to its key and value.
const OVERHEAD_BYTES: usize = 16;

/// Segments of copies.
const COPY_SEGMENTS: u64 = 80;

/// The id of copies.
const COPY_ID: [u8; 16] = [6; 16];

impl Work {
    /// Sorted records, few enough for one commit.
    pub(super) fn load(&mut self) -> Result<(), Stop> {
        let (_, slot) = self.maker.slots.clone().any(&mut self.random);
        let Some(slot) = slot else { return Ok(()) };
        let (mut records, mut bytes) = (Vec::new(), 0);
        for key in slot.data.keys.clone().run(&mut self.random, LOADED_RECORDS) {
            let mut value = self.value(&slot);
            value.truncate(LOGGED_VALUE_BYTES / 8);
            bytes += key.len() + value.len() + OVERHEAD_BYTES;
            if bytes > LOADED_BYTES {
                break;
            }
            records.push((key.clone(), value));
        }
        let change = |(key, value): &(Vec<u8>, Vec<u8>)| {
            Change::Write(slot.identity.clone(), key.clone(), Some(value.clone()))
        };
        let changes = records.iter().map(change).collect();
        let durable = self.durability == flashgrain::Durability::Sync;
        Ok(self.shared().commit(changes, durable, || slot.tree.load(records).map(drop))?)
    }

    /// The records of a tree go into one of other options, which gets its name. Writes of other tasks to the
    /// old one meanwhile are lost, as it is to a tree that is dropped.
    pub(super) fn convert(&mut self) -> Result<(), Stop> {
        let maker = self.maker.clone();
        let (index, Some(old)) = maker.slots.any(&mut self.random) else { return Ok(()) };
        let Some(defining) = maker.slots.define(index) else { return Ok(()) };
        let temporary = temporary_name(index);
        let made = maker.make(&self.db, &mut self.random, &temporary, Some(old.data.clone()))?;
        let Some(mut new) = made else { return Ok(()) };
        let snapshot = self.db.snapshot()?;
        let mut records = Records::new();
        for record in snapshot.iter(&old.tree)? {
            let (key, value) = record?;
            records.insert(key.to_vec(), value.to_vec());
        }
        drop(snapshot);
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let (mut part, mut bytes) = (Vec::new(), 0);
            let fits = |bytes: usize, (key, value): &(Vec<u8>, Vec<u8>)| {
                bytes == 0 || bytes + key.len() + value.len() + OVERHEAD_BYTES <= LOADED_BYTES
            };
            while let Some((key, value)) = records.next_if(|record| fits(bytes, record)) {
                bytes += key.len() + value.len() + OVERHEAD_BYTES;
                part.push((key, value));
            }
            let change = |(key, value): &(Vec<u8>, Vec<u8>)| {
                Change::Write(new.identity.clone(), key.clone(), Some(value.clone()))
            };
            let changes = part.iter().map(change).collect();
            self.shared().commit(changes, false, || new.tree.load(part).map(drop))?;
        }
        let name = old.tree.name().to_owned();
        if self.random.random() {
            maker.replace(&self.db, (&name, &old.identity), (&temporary, &new.identity))?;
        } else {
            maker.drop_tree(&self.db, &name, &old.identity)?;
            defining.set(None);
            maker.rename(&self.db, &temporary, &name, &new.identity)?;
        }
        new.tree = self.db.existing_tree(&name)?;
        defining.set(Some(new));
        Ok(())
    }

    pub(super) fn rename(&mut self) -> Result<(), Stop> {
        let maker = self.maker.clone();
        let (index, Some(mut slot)) = maker.slots.any(&mut self.random) else { return Ok(()) };
        let Some(defining) = maker.slots.define(index) else { return Ok(()) };
        let name = defining.other_name(&mut self.random);
        maker.drop_leftover(&self.db, &name)?;
        maker.rename(&self.db, slot.tree.name(), &name, &slot.identity)?;
        slot.tree = self.db.existing_tree(&name)?;
        defining.set(Some(slot));
        Ok(())
    }

    pub(super) fn drop_tree(&mut self) -> Result<(), Stop> {
        let maker = self.maker.clone();
        let (index, Some(slot)) = maker.slots.any(&mut self.random) else { return Ok(()) };
        let Some(defining) = maker.slots.define(index) else { return Ok(()) };
        if self.random.random() {
            // No other task has a handle by then, more often than not, and the last writes are under way.
            defining.set(None);
            self.burst(&slot)?;
        }
        maker.drop_tree(&self.db, slot.tree.name(), &slot.identity)?;
        defining.set(None);
        drop((slot, defining));
        if self.random.random() {
            self.make(index)?;
        }
        Ok(())
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), Stop> {
        Ok(self.shared().durable(|| self.db.checkpoint())?)
    }

    pub(super) fn compact(&mut self) -> Result<(), Stop> {
        let compacted = self.db.compact()?;
        // Others may write meanwhile, or have a compaction of theirs under way.
        if self.is_alone && compacted.after_bytes > compacted.before_bytes {
            return Err(Stop::Wrong(format!("it has made the store longer: {compacted:?}")));
        }
        Ok(())
    }

    pub(super) fn check(&mut self) -> Result<(), Stop> {
        match self.random.random_range(0..3) {
            0 => self.db.check().map(drop)?,
            1 => self.db.reclaim().map(drop)?,
            _ => self.shared().durable(|| self.db.sync())?,
        }
        Ok(())
    }

    /// A copy while others go on; it is compared at the end of the run.
    pub(super) fn back_up(&mut self) -> Result<(), Stop> {
        let from = self.shared().get().returned();
        let is_public = self.features().has(Feature::PublicLayout);
        let disk = Disk::new(vec![0; copy_of(is_public).bytes(COPY_SEGMENTS) as usize]);
        let copy = copy_on(&disk, is_public).merge_operator(self.operator.clone());
        match self.db.backup(copy) {
            // The numbers of a tree do not fit the copy's layout.
            Err(Error::Options(_)) => return Ok(()),
            ended => ended?,
        };
        let mut history = self.shared().get();
        let to = history.newest();
        history.copies.push((disk, from..=to));
        Ok(())
    }
}

fn copy_of(is_public: bool) -> Small {
    let small = Small { id: COPY_ID, cache_bytes: 8 << 20, log_bytes: 1 << 20, ..Small::default() };
    // With room for the largest nodes.
    match is_public {
        true => Small { unit_bytes: 256 << 10, segment_bytes: 512 << 10, ..small },
        false => Small { segment_bytes: 128 << 10, ..small },
    }
}

/// The store of a copy.
pub fn copy_on(disk: &Disk, is_public: bool) -> Builder {
    Db::builder().device(Arc::new(disk.clone())).small(&copy_of(is_public))
}
