//! The numbers of a Bε-tree.

use flashgrain_device::bytes_text;
use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::{BeTreeDesign, BeTreeSurroundings, Bytes, Count, PART_MEMORY_DIVISOR_MIN};

use super::shape::{Shape, record_bytes_max};
use crate::buffered::{Memtable, Room};
use crate::class::{CLASSES, PAGE_BYTES_MIN, class_bytes};
use crate::{Error, varint};

/// Bounds of B.
const NODE_BYTES_MIN: u64 = 8 << 10;
const NODE_BYTES_MAX: u64 = 64 << 20;

/// Bounds of F.
const FANOUT_MIN: u32 = 2;
const FANOUT_MAX: u32 = 1024;

/// A memtable has at most this part of the cache and of the log.
const MEMTABLE_DIVISOR_MIN: u64 = 4;
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;

/// Options of a Bε-tree; all have defaults. Fixed when the tree is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeTreeOptions {
    node_bytes: Option<u64>,
    fanout: Option<u32>,
    memtable_bytes: Option<u64>,
    /// For the options of an existing tree: the bits of those that were given when it was made.
    given_before: Option<u64>,
    /// For the options of an existing tree: the size class of its parts.
    part_class: Option<usize>,
}

impl BeTreeOptions {
    /// Everything as the store decides.
    pub fn new() -> Self {
        Self::default()
    }

    /// B: bytes of a node, all its parts together, and of a leaf; from 8 KiB to 64 MiB. Unless given it
    /// follows from the drive's profile, and without one it is 1 MiB.
    pub fn node_bytes(mut self, bytes: u64) -> Self {
        self.node_bytes = Some(bytes);
        self
    }

    /// F: the children of a node, from 2 to 1024. B/F are the bytes of a part, which a query reads on each
    /// level; a power of two of these is taken, and at most a sixteenth of the cache. Caches of later
    /// openings must have room for eight of them. Unless given it follows as B does; without a profile it
    /// is 8.
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
    /// 0: chosen at each opening.
    memtable_bytes: u64,
    given_bits: u64,
    /// Size class of its parts, which determines the longest key; `None` in trees of format versions before
    /// 12.
    pub(super) part_class: Option<usize>,
}

impl Decided {
    /// The given options, with the rest decided for this room.
    ///
    /// # Errors
    /// [`Error::Options`] describes the problem of the given options.
    pub fn of(given: BeTreeOptions, basement_class: usize, room: Room) -> Result<Self, Error> {
        let bits = [
            (bit::NODE, given.node_bytes.is_some()),
            (bit::FANOUT, given.fanout.is_some()),
            (bit::MEMTABLE, given.memtable_bytes.is_some()),
        ];
        let given_bits = bits.iter().filter(|(_, is_given)| *is_given).map(|(bit, _)| bit).sum();
        let design = design(&given, class_bytes(basement_class), room).unwrap_or(BeTreeDesign::USUAL);
        let mut decided = Self {
            node_bytes: given.node_bytes.unwrap_or(design.node_bytes),
            fanout: given.fanout.unwrap_or(design.fanout),
            memtable_bytes: given.memtable_bytes.unwrap_or(0),
            given_bits: given.given_before.unwrap_or(given_bits),
            part_class: given.part_class,
        };
        match given.given_before {
            Some(_) => decided.check_kept()?,
            None => decided.check(room)?,
        }
        // An opening with less memory that finds the tree in the log alone makes it with the same parts.
        decided.part_class = Some(decided.shape(basement_class, room).part_class);
        Ok(decided)
    }

    fn check(&self, room: Room) -> Result<(), Error> {
        self.check_kept()?;
        let most_bytes = room.cache_bytes.min(room.log_bytes) / MEMTABLE_DIVISOR_MIN;
        let least_bytes = MEMTABLE_BYTES_MIN.min(most_bytes);
        let memtable_bytes = self.memtable_bytes;
        if memtable_bytes == 0 || (least_bytes..=most_bytes).contains(&memtable_bytes) {
            return Ok(());
        }
        Err(Error::Options(format!(
            "memtables of {memtable_bytes} bytes: they must have from {least_bytes} to {most_bytes} bytes, a quarter of the cache of {} and of the log of {}",
            room.cache_bytes, room.log_bytes
        )))
    }

    /// Checks the limits that hold wherever the tree was made. The size of a memtable is not checked: it may
    /// have been chosen for another size of memory or log.
    fn check_kept(&self) -> Result<(), Error> {
        let problem = if !(NODE_BYTES_MIN..=NODE_BYTES_MAX).contains(&self.node_bytes) {
            format!(
                "nodes of {} bytes: a Bε-tree's must have from {NODE_BYTES_MIN} to {NODE_BYTES_MAX}",
                self.node_bytes
            )
        } else if !(FANOUT_MIN..=FANOUT_MAX).contains(&self.fanout) {
            format!("a fanout of {}: a Bε-tree's must be from {FANOUT_MIN} to {FANOUT_MAX}", self.fanout)
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

    /// The shape of a tree that is made in this room.
    pub(super) fn shape(self, basement_class: usize, room: Room) -> Shape {
        let basement_bytes = class_bytes(basement_class);
        let design = BeTreeDesign { node_bytes: self.node_bytes, fanout: self.fanout };
        let part_bytes = design.part_bytes(&surroundings(basement_bytes, room));
        let usual_class = (part_bytes / PAGE_BYTES_MIN).max(1).ilog2() as usize;
        let fits = |class: &usize| {
            class_bytes(*class) <= (room.cache_bytes / PART_MEMORY_DIVISOR_MIN).min(room.unit_bytes)
        };
        let part_class = self.part_class.filter(fits).unwrap_or(usual_class);
        Shape {
            basement_class,
            part_class: part_class.clamp(basement_class, CLASSES - 1),
            fanout: self.fanout,
            basements: (self.node_bytes / basement_bytes).clamp(2, u32::MAX.into()) as u32,
            memtable_bytes: self
                .memtable_bytes_in(room)
                .max(Memtable::bytes_min(record_bytes_max(basement_bytes))),
            class_max: (room.unit_bytes / PAGE_BYTES_MIN).max(1).ilog2().min(CLASSES as u32 - 1) as usize,
        }
    }

    /// The numbers as options.
    pub fn given(self) -> BeTreeOptions {
        BeTreeOptions {
            node_bytes: Some(self.node_bytes),
            fanout: Some(self.fanout),
            memtable_bytes: (self.memtable_bytes > 0).then_some(self.memtable_bytes),
            given_before: Some(self.given_bits),
            part_class: self.part_class,
        }
    }

    /// Explains B and F, if they follow from measurements of the drive.
    fn of_drive(&self, basement_class: usize, room: Room) -> Option<String> {
        let given = BeTreeOptions {
            node_bytes: (self.given_bits & bit::NODE != 0).then_some(self.node_bytes),
            fanout: (self.given_bits & bit::FANOUT != 0).then_some(self.fanout),
            ..BeTreeOptions::default()
        };
        let design = design(&given, class_bytes(basement_class), room)?;
        let half = bytes_text(room.half_bandwidth_bytes.into());
        Some(match (design.node_bytes, design.fanout) == (self.node_bytes, self.fanout) {
            true => format!(
                "the least time of the drive for as many writes as look-ups: busy, it transfers {half} in the time of a setup (1/α, Theorem 9)"
            ),
            false => "decided when the tree was made".to_owned(),
        })
    }

    /// The numbers that a new tree works with in this room, each with its reason.
    pub fn decisions_of_new(&self, basement_class: usize, room: Room) -> Vec<Decision> {
        self.decisions(&self.shape(basement_class, room), room)
    }

    /// The numbers that a tree of this shape works with in this room, each with its reason.
    pub(super) fn decisions(&self, shape: &Shape, room: Room) -> Vec<Decision> {
        let part = bytes_text(shape.part_bytes());
        let (of_node, of_fanout) = match self.of_drive(shape.basement_class, room) {
            Some(because) => (because.clone(), because),
            None => (
                format!("default: {} parts of {part}, each read on its own", self.fanout),
                "default: a flush moves an eighth of the bytes that it rewrites".to_owned(),
            ),
        };
        let given_memtable = (self.memtable_bytes > 0).then_some(self.memtable_bytes);
        let of_memtable = room.memtable_reason(given_memtable, false, shape.memtable_bytes);
        let settings = [
            (bit::NODE, Setting::Node(Bytes(self.node_bytes)), of_node),
            (bit::FANOUT, Setting::Fanout(Count(self.fanout.into())), of_fanout),
            // Its reason says whether it was given.
            (0, Setting::Memtable(Bytes(shape.memtable_bytes)), of_memtable),
        ];
        let with_reason = |(bit, setting, because): (u64, Setting, String)| {
            let is_given = self.given_bits & bit != 0;
            Decision { setting, because: if is_given { "set by hand".to_owned() } else { because } }
        };
        let mut decisions: Vec<Decision> = settings.into_iter().map(with_reason).collect();
        let because = "B/F: the bytes that a look-up reads on each level".to_owned();
        decisions.push(Decision { setting: Setting::NodePart(Bytes(shape.part_bytes())), because });
        let because = "the tree's node size, or the store's: leaves are read in pieces".to_owned();
        decisions.push(Decision { setting: Setting::Basement(Bytes(shape.basement_bytes())), because });
        decisions
    }

    /// The bytes that the catalog has.
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let numbers = [self.node_bytes, self.fanout.into(), self.memtable_bytes, self.given_bits];
        for number in numbers.into_iter().chain(self.part_class.map(|class| class as u64)) {
            varint::put(number, &mut bytes);
        }
        bytes
    }

    /// The numbers that the catalog has as bytes; `None` for bytes that were never written.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut number = || varint::take(&mut bytes);
        let decided = Self {
            node_bytes: number()?,
            fanout: u32::try_from(number()?).ok()?,
            memtable_bytes: number()?,
            given_bits: number()?,
            part_class: None,
        };
        let decided = match bytes.is_empty() {
            true => decided,
            false => Self { part_class: Some(class_of(varint::take(&mut bytes)?)?), ..decided },
        };
        (bytes.is_empty() && decided.check_kept().is_ok()).then_some(decided)
    }
}

/// The size class, if it exists.
fn class_of(number: u64) -> Option<usize> {
    usize::try_from(number).ok().filter(|class| *class < CLASSES)
}

/// B and F for the measured drive; `None` if the drive was not measured. Given options stay.
fn design(given: &BeTreeOptions, basement_bytes: u64, room: Room) -> Option<BeTreeDesign> {
    let wanted = |design: &BeTreeDesign| {
        given.node_bytes.is_none_or(|bytes| bytes == design.node_bytes)
            && given.fanout.is_none_or(|fanout| fanout == design.fanout)
    };
    let is_known = room.half_bandwidth_bytes > 0;
    is_known.then(|| {
        let surroundings = surroundings(basement_bytes, room);
        BeTreeDesign::best_of(&BeTreeDesign::usual_workload(), &surroundings, wanted)
    })
}

/// The surroundings of a tree with basement nodes of this size.
fn surroundings(basement_bytes: u64, room: Room) -> BeTreeSurroundings {
    BeTreeSurroundings {
        half_bandwidth_bytes: f64::from(room.half_bandwidth_bytes),
        cache_bytes: room.cache_bytes,
        unit_bytes: room.unit_bytes,
        basement_bytes,
    }
}

/// Bytes of a memtable whose size is not given.
fn usual_memtable_bytes(room: Room) -> u64 {
    room.usual_memtable().0.max(MEMTABLE_BYTES_MIN.min(room.cache_bytes / MEMTABLE_DIVISOR_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        cache_bytes: 256 << 20,
        log_bytes: 512 << 20,
        segment_bytes: 4 << 20,
        unit_bytes: 256 << 10,
        device_bytes: 1 << 40,
        device_name: "a device",
        in_flight: 64,
        half_bandwidth_bytes: 0,
    };

    fn numbers(given: BeTreeOptions, room: Room) -> (u64, u32) {
        let decided = Decided::of(given, 0, room).unwrap();
        assert_eq!(Decided::decode(&decided.encode()), Some(decided));
        (decided.node_bytes, decided.fanout)
    }

    fn reasons(given: BeTreeOptions, room: Room) -> Vec<String> {
        let decided = Decided::of(given, 0, room).unwrap();
        decided.decisions_of_new(0, room).into_iter().take(2).map(|decision| decision.because).collect()
    }

    #[test]
    fn where_nothing_is_known_of_the_drive_defaults_stay() {
        assert_eq!(numbers(BeTreeOptions::new(), ROOM), (1 << 20, 8));
        assert!(reasons(BeTreeOptions::new(), ROOM).iter().all(|because| because.starts_with("default: ")));
    }

    #[test]
    fn what_was_learned_of_the_drive_decides_what_is_not_given() {
        let learned = |bytes| Room { half_bandwidth_bytes: bytes, ..ROOM };
        let part = |bytes| {
            let decided = Decided::of(BeTreeOptions::new(), 0, learned(bytes)).unwrap();
            decided.shape(0, learned(bytes)).part_bytes()
        };
        assert!(part(4 << 10) <= part(1 << 20), "{} {}", part(4 << 10), part(1 << 20));
        assert_ne!(numbers(BeTreeOptions::new(), learned(4 << 10)), (1 << 20, 8));
        for because in reasons(BeTreeOptions::new(), learned(4 << 10)) {
            assert!(because.contains("transfers 4 KiB in the time of a setup"), "{because}");
        }
        let given = BeTreeOptions::new().node_bytes(2 << 20);
        assert_eq!(numbers(given, learned(4 << 10)).0, 2 << 20);
        let [of_node, of_fanout] = reasons(given, learned(4 << 10)).try_into().unwrap();
        assert!(of_node == "set by hand" && of_fanout.contains("1/α"), "{of_node}, {of_fanout}");
        // The tree's options stay the same in other surroundings.
        let decided = Decided::of(BeTreeOptions::new(), 0, learned(4 << 10)).unwrap();
        let elsewhere = decided.decisions_of_new(2, learned(4 << 10));
        assert_eq!(elsewhere[1].because, "decided when the tree was made");
    }

    /// A short log had refused anything larger, and the next opening refused the tree.
    #[test]
    fn the_largest_memtable_of_a_short_log_comes_back() {
        let short = Room { log_bytes: 108 << 10, ..ROOM };
        let decided = Decided::of(BeTreeOptions::new().memtable_bytes(27 << 10), 0, short).unwrap();
        assert_eq!(Decided::decode(&decided.encode()), Some(decided));
        assert!(Decided::of(BeTreeOptions::new().memtable_bytes(26 << 10), 0, short).is_err());
    }

    #[test]
    fn numbers_that_were_given_have_a_part_of_their_own() {
        let given = BeTreeOptions::new().node_bytes(3 << 20).fanout(5);
        assert_eq!(numbers(given, Room { half_bandwidth_bytes: 8192, ..ROOM }), (3 << 20, 5));
    }
}
