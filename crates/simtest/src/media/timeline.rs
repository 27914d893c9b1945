//! Possible states of a drive after a power cut, moment by moment.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

use flashgrain_device::Op;

use super::SECTOR_BYTES;
use super::choice::Choice;
use super::disk::Disk;
use super::tape::{Event, Write};

/// Plays a tape and knows at every moment which writes are certainly on the medium, and which may be: a write
/// is uncertain until a flush that began after it was answered is answered itself (or, for a durable write,
/// until it is answered). Surviving writes, and surviving sectors of them, replace the certain content, and
/// later writes replace earlier ones. The range of a write that does not survive holds its previous content,
/// or nonsense.
pub struct Timeline {
    /// Content that is certain and older than all uncertain writes.
    disk: Disk,
    /// Print of each sector of `disk`.
    prints: Vec<u64>,
    /// Print of all sectors.
    print: u64,
    /// Later writes, in the order of submission.
    tail: Vec<Pending>,
    /// How large the drive is without a power cut.
    length_bytes: u64,
    /// The least and the most that it may have after one.
    lengths: [u64; 2],
    /// How often it has become shorter.
    cuts: u64,
    /// Writes that become certain when a flush under way completes.
    flushes: HashMap<u64, Covered>,
    /// Sectors as a choice leaves them, while it is looked at.
    chosen: Chosen,
    moment: Moment,
}

/// The numbers of the commits at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Events before it.
    pub position: usize,
    /// Whether the store had been made.
    pub created: bool,
    /// The last commit that got a number.
    pub given: u64,
    /// All commits up to this one were acknowledged as durable.
    pub acknowledged: u64,
}

/// Writes, and the length of the drive, that a flush makes certain.
#[derive(Clone, Debug, Default)]
struct Covered {
    writes: Vec<u64>,
    length_bytes: u64,
    /// [`Timeline::cuts`] when it began.
    cuts: u64,
}

/// Prints by sector.
struct Chosen {
    prints: Vec<Option<u64>>,
    /// Sectors that have a print.
    put: Vec<usize>,
}

impl Chosen {
    /// Sets the print of a sector and returns its previous one.
    fn put(&mut self, sector: usize, print: u64) -> Option<u64> {
        let before = self.prints[sector].replace(print);
        if before.is_none() {
            self.put.push(sector);
        }
        before
    }

    fn clear(&mut self) {
        self.put.drain(..).for_each(|sector| self.prints[sector] = None);
    }
}

struct Pending {
    number: u64,
    write: Write,
    prints: Vec<u64>,
    answered: bool,
    certain: bool,
}

/// The fate of a written sector in a power cut, unless it keeps its previous content.
#[derive(Clone, Copy)]
enum Left {
    Whole,
    Spoilt,
}

/// Nonsense.
const SPOILT: [u8; SECTOR_BYTES] = [0xb5; SECTOR_BYTES];

/// Of a sector at a place; nothing for zeros, so that untouched disks need not be looked at.
fn print_of(sector: usize, bytes: &[u8]) -> u64 {
    if bytes.iter().all(|byte| *byte == 0) {
        return 0;
    }
    BuildHasherDefault::<DefaultHasher>::default().hash_one((sector, bytes))
}

fn prints_of(first: usize, bytes: &[u8]) -> Vec<u64> {
    let sectors = bytes.chunks(SECTOR_BYTES).enumerate();
    sectors.map(|(number, bytes)| print_of(first + number, bytes)).collect()
}

impl Pending {
    fn first_sector(&self) -> usize {
        self.write.offset_bytes as usize / SECTOR_BYTES
    }
}

impl Timeline {
    /// A drive with these bytes on its medium; the first `length_bytes` are there until it grows.
    pub fn new(bytes: Vec<u8>, length_bytes: u64, moment: Moment) -> Self {
        let prints = prints_of(0, &bytes);
        let print = prints.iter().fold(0, |all, print| all ^ print);
        let sectors = prints.len();
        let disk = Disk::new(bytes);
        Self {
            disk,
            prints,
            print,
            tail: Vec::new(),
            length_bytes,
            lengths: [length_bytes; 2],
            cuts: 0,
            flushes: HashMap::new(),
            chosen: Chosen { prints: vec![None; sectors], put: Vec::new() },
            moment,
        }
    }

    /// The drive that [`Timeline::leave`] changes.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The numbers of the commits now.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// Plays the next event. Whether a power cut could leave something else than before.
    pub fn play(&mut self, event: &Event) -> bool {
        self.moment.position += 1;
        match event {
            Event::Created => self.moment.created = true,
            Event::Given(commit) => self.moment.given = self.moment.given.max(*commit),
            Event::Acknowledged(commit) => {
                self.moment.acknowledged = self.moment.acknowledged.max(*commit);
            }
            Event::Written(number, write) => {
                if write.op == Op::WriteThenFlush {
                    self.begin_flush(*number);
                }
                let first = write.offset_bytes as usize / SECTOR_BYTES;
                let prints = prints_of(first, &write.bytes);
                let write = write.clone();
                self.tail.push(Pending { number: *number, write, prints, answered: false, certain: false });
                return true;
            }
            Event::Grown(bytes) => {
                self.length_bytes = *bytes;
                self.lengths[1] = self.lengths[1].max(*bytes);
                return true;
            }
            Event::Shrunk(bytes) => {
                self.length_bytes = *bytes;
                self.lengths[0] = self.lengths[0].min(*bytes);
                self.cuts += 1;
                return true;
            }
            Event::Flush(number) => self.begin_flush(*number),
            Event::Answered { number, done: true } => return self.answer(*number),
            // A failed request makes nothing certain.
            Event::Answered { number, done: false } => drop(self.flushes.remove(number)),
        }
        false
    }

    /// Writes that have completed by now become certain when the flush completes; whether it covers others is
    /// not known.
    fn begin_flush(&mut self, number: u64) {
        let answered = self.tail.iter().filter(|pending| pending.answered);
        let writes = answered.map(|pending| pending.number).collect();
        self.flushes.insert(number, Covered { writes, length_bytes: self.length_bytes, cuts: self.cuts });
    }

    /// A request was done. Whether something became certain by that.
    fn answer(&mut self, number: u64) -> bool {
        let Covered { writes: mut certain, length_bytes, cuts } =
            self.flushes.remove(&number).unwrap_or_default();
        let before = self.lengths;
        // Nothing is known of a length that was given up while the flush went on.
        if cuts == self.cuts && length_bytes > 0 {
            // A later flush may have been answered before.
            self.lengths = [self.lengths[0].max(length_bytes), self.length_bytes];
        }
        let is_length_known = self.lengths != before;
        if let Some(pending) = self.tail.iter_mut().find(|pending| pending.number == number) {
            pending.answered = true;
            if matches!(pending.write.op, Op::WriteDsync | Op::WriteThenFlush) {
                certain.push(number);
            }
        }
        if certain.is_empty() {
            return is_length_known;
        }
        for pending in &mut self.tail {
            pending.certain |= certain.contains(&pending.number);
        }
        self.settle();
        true
    }

    /// Applies the writes that are certain and older than everything uncertain to the disk, for good.
    fn settle(&mut self) {
        let count = self.tail.iter().take_while(|pending| pending.certain).count();
        for pending in self.tail.drain(..count) {
            self.disk.put(pending.write.offset_bytes as usize, &pending.write.bytes);
            let first = pending.first_sector();
            for (old, new) in self.prints[first..].iter_mut().zip(&pending.prints) {
                self.print ^= *old ^ new;
                *old = *new;
            }
        }
        self.disk.mark();
    }

    /// Sectors of each uncertain write.
    pub fn uncertain(&self) -> Vec<usize> {
        self.tail.iter().filter(|pending| !pending.certain).map(|pending| pending.prints.len()).collect()
    }

    /// The numbers of the uncertain writes.
    pub fn uncertain_numbers(&self) -> Vec<u64> {
        self.tail.iter().filter(|pending| !pending.certain).map(|pending| pending.number).collect()
    }

    /// Bytes that the drive has after any power cut.
    pub fn certain_bytes(&self) -> u64 {
        self.lengths[0]
    }

    /// Whether a power cut may leave the drive shorter, or longer, than it is.
    pub fn is_length_uncertain(&self) -> bool {
        self.lengths[0] < self.lengths[1]
    }

    /// How large a choice leaves the drive.
    fn length(&self, choice: &Choice) -> u64 {
        self.lengths[usize::from(!choice.is_shorter)]
    }

    /// Calls `act` with everything that a choice leaves of the tail, in order: a write, sectors of it, and
    /// whether they are its own or spoilt.
    fn each_left(
        tail: &[Pending],
        choice: &Choice,
        length_bytes: u64,
        mut act: impl FnMut(&Pending, Range<usize>, Left),
    ) {
        let end = length_bytes as usize / SECTOR_BYTES;
        let mut uncertain = 0;
        for pending in tail {
            let there = pending.prints.len().min(end.saturating_sub(pending.first_sector()));
            if pending.certain {
                act(pending, 0..there, Left::Whole);
                continue;
            }
            let whole = 0..there;
            let left = match &choice.tear {
                Some(tear) if tear.write == uncertain => tear.left.as_slice(),
                _ if choice.kept.get(uncertain).is_some_and(|kept| *kept) => std::slice::from_ref(&whole),
                _ => &[],
            };
            if choice.is_spoilt && left != [whole.clone()] {
                act(pending, whole.clone(), Left::Spoilt);
            }
            for part in left {
                act(pending, part.start.min(there)..part.end.min(there), Left::Whole);
            }
            uncertain += 1;
        }
    }

    /// A number that two choices share, here or elsewhere, if they leave the same bytes.
    pub fn print(&mut self, choice: &Choice) -> u64 {
        let length = self.length(choice);
        let Self { tail, chosen, prints, .. } = self;
        let mut print = self.print;
        Self::each_left(tail, choice, length, |pending, part, left| {
            let first = pending.first_sector();
            for sector in part {
                let after = match left {
                    Left::Whole => pending.prints[sector],
                    Left::Spoilt => print_of(first + sector, &SPOILT),
                };
                let before = chosen.put(first + sector, after);
                print ^= before.unwrap_or(prints[first + sector]) ^ after;
            }
        });
        chosen.clear();
        print ^ length.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Applies the choice to the disk, until [`Disk::back`] is called.
    pub fn leave(&self, choice: &Choice) -> Disk {
        let length = self.length(choice);
        Self::each_left(&self.tail, choice, length, |pending, part, left| {
            let at = pending.write.offset_bytes as usize + part.start * SECTOR_BYTES;
            match left {
                Left::Whole => {
                    let bytes = part.start * SECTOR_BYTES..part.end * SECTOR_BYTES;
                    self.disk.put(at, &pending.write.bytes[bytes]);
                }
                Left::Spoilt => self.disk.put(at, &SPOILT.repeat(part.len())),
            }
        });
        self.disk.of_bytes(length)
    }
}
