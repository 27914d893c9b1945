//! The numbers of a Bε-tree.

use flashgrain_device::bytes_text;
use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::lsm_usual::{MEMTABLE_BYTES_MAX, MEMTABLE_DIVISOR};
use flashgrain_settings::{Bytes, Count};

use super::shape::Shape;
use crate::buffered::Room;
use crate::{Error, varint};

/// B, unless it is given.
const NODE_BYTES: u64 = 1 << 20;
const NODE_BYTES_MIN: u64 = 32 << 10;
const NODE_BYTES_MAX: u64 = 64 << 20;

/// F, unless it is given.
const FANOUT: u32 = 8;
const FANOUT_MIN: u32 = 2;
const FANOUT_MAX: u32 = 1024;

/// A memtable has at most this part of the cache and of the log.
const MEMTABLE_DIVISOR_MIN: u64 = 4;
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;
/// On a small device a memtable has at most this part of it.
const DEVICE_DIVISOR: u64 = 128;

/// How a Bε-tree is kept, as far as one wants to say. Fixed when the tree is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeTreeOptions {
    node_bytes: Option<u64>,
    fanout: Option<u32>,
    memtable_bytes: Option<u64>,
    /// If these are those of a tree: the bits of those that were given when it was made.
    given_before: Option<u64>,
}

impl BeTreeOptions {
    /// Everything as the store decides.
    pub fn new() -> Self {
        Self::default()
    }

    /// B: bytes of a node, all its parts together, and of a leaf; from 32 KiB to 64 MiB.
    pub fn node_bytes(mut self, bytes: u64) -> Self {
        self.node_bytes = Some(bytes);
        self
    }

    /// F: the children of a node, from 2 to 1024. B/F are the bytes of a part, which a query reads on each
    /// level; a power of two of these is taken.
    pub fn fanout(mut self, fanout: u32) -> Self {
        self.fanout = Some(fanout);
        self
    }

    /// Bytes of a memtable, the part of the root's buffer that is not in pages: at most a quarter of the
    /// cache and of the log; an eighth of the cache of each opening unless given.
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = Some(bytes);
        self
    }
}

mod bit {
    pub const NODE: u64 = 1;
    pub const FANOUT: u64 = 1 << 1;
    pub const MEMTABLE: u64 = 1 << 2;
}

/// The numbers of a tree, as the catalog has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(super) node_bytes: u64,
    pub(super) fanout: u32,
    /// 0: as each opening has room for.
    memtable_bytes: u64,
    given_bits: u64,
}

impl Decided {
    /// What is given, and the rest for this room.
    ///
    /// # Errors
    /// [`Error::Options`] says what is wrong with what is given.
    pub fn of(given: BeTreeOptions, room: Room) -> Result<Self, Error> {
        let bits = [
            (bit::NODE, given.node_bytes.is_some()),
            (bit::FANOUT, given.fanout.is_some()),
            (bit::MEMTABLE, given.memtable_bytes.is_some()),
        ];
        let given_bits = bits.iter().filter(|(_, is_given)| *is_given).map(|(bit, _)| bit).sum();
        let decided = Self {
            node_bytes: given.node_bytes.unwrap_or(NODE_BYTES),
            fanout: given.fanout.unwrap_or(FANOUT),
            memtable_bytes: given.memtable_bytes.unwrap_or(0),
            given_bits: given.given_before.unwrap_or(given_bits),
        };
        decided.check(room)?;
        Ok(decided)
    }

    fn check(&self, room: Room) -> Result<(), Error> {
        let most_bytes = room.cache_bytes.min(room.log_bytes) / MEMTABLE_DIVISOR_MIN;
        let least_bytes = MEMTABLE_BYTES_MIN.min(most_bytes);
        let memtable_bytes = self.memtable_bytes;
        let problem = if !(NODE_BYTES_MIN..=NODE_BYTES_MAX).contains(&self.node_bytes) {
            format!(
                "nodes of {} bytes: a Bε-tree's must have from {NODE_BYTES_MIN} to {NODE_BYTES_MAX}",
                self.node_bytes
            )
        } else if !(FANOUT_MIN..=FANOUT_MAX).contains(&self.fanout) {
            format!("a fanout of {}: a Bε-tree's must be from {FANOUT_MIN} to {FANOUT_MAX}", self.fanout)
        } else if memtable_bytes > 0 && !(least_bytes..=most_bytes).contains(&memtable_bytes) {
            format!(
                "memtables of {memtable_bytes} bytes: they must have from {least_bytes} to {most_bytes} bytes, a quarter of the cache of {} and of the log of {}",
                room.cache_bytes, room.log_bytes
            )
        } else {
            return Ok(());
        };
        Err(Error::Options(problem))
    }

    /// Bytes of a memtable of this opening.
    pub(super) fn memtable_bytes_in(self, room: Room) -> u64 {
        match self.memtable_bytes {
            0 => usual_memtable_bytes(room),
            bytes => bytes.min((room.cache_bytes / MEMTABLE_DIVISOR_MIN).max(MEMTABLE_BYTES_MIN)),
        }
    }

    /// As options.
    pub fn given(self) -> BeTreeOptions {
        BeTreeOptions {
            node_bytes: Some(self.node_bytes),
            fanout: Some(self.fanout),
            memtable_bytes: (self.memtable_bytes > 0).then_some(self.memtable_bytes),
            given_before: Some(self.given_bits),
        }
    }

    /// The numbers that a tree works with in this room, each with its reason.
    pub fn decisions(&self, basement_class: usize, room: Room) -> Vec<Decision> {
        let shape = Shape::new(*self, basement_class, room);
        let part = bytes_text(shape.part_bytes());
        let of_node = format!("default: {} parts of {part}, each read on its own", self.fanout);
        let of_fanout = "default: a flush moves an eighth of what it rewrites".to_owned();
        let of_memtable = format!("an eighth of the cache of {} at most", bytes_text(room.cache_bytes));
        let settings = [
            (bit::NODE, Setting::Node(Bytes(self.node_bytes)), of_node),
            (bit::FANOUT, Setting::Fanout(Count(self.fanout.into())), of_fanout),
            (bit::MEMTABLE, Setting::Memtable(Bytes(shape.memtable_bytes)), of_memtable),
        ];
        let with_reason = |(bit, setting, because): (u64, Setting, String)| {
            let is_given = self.given_bits & bit != 0;
            Decision { setting, because: if is_given { "set by hand".to_owned() } else { because } }
        };
        let mut decisions: Vec<Decision> = settings.into_iter().map(with_reason).collect();
        let because = "B/F: what a look-up reads on each level".to_owned();
        decisions.push(Decision { setting: Setting::NodePart(Bytes(shape.part_bytes())), because });
        let because = "the tree's node size, or the store's: leaves are read in pieces".to_owned();
        decisions.push(Decision { setting: Setting::Basement(Bytes(shape.basement_bytes())), because });
        decisions
    }

    /// For the catalog.
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.node_bytes, self.fanout.into(), self.memtable_bytes, self.given_bits] {
            varint::put(number, &mut bytes);
        }
        bytes
    }

    /// From the catalog; `None` for what was never written.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut number = || varint::take(&mut bytes);
        let decided = Self {
            node_bytes: number()?,
            fanout: u32::try_from(number()?).ok()?,
            memtable_bytes: number()?,
            given_bits: number()?,
        };
        (bytes.is_empty() && decided.check(Room::UNBOUNDED).is_ok()).then_some(decided)
    }
}

/// Bytes of a memtable whose size is not given.
fn usual_memtable_bytes(room: Room) -> u64 {
    (room.cache_bytes / MEMTABLE_DIVISOR)
        .min(MEMTABLE_BYTES_MAX)
        .min(room.device_bytes / DEVICE_DIVISOR)
        .max(MEMTABLE_BYTES_MIN.min(room.cache_bytes / MEMTABLE_DIVISOR_MIN))
}
