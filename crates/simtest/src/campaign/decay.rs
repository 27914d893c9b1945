//! Media that lose or mistake writes: the store may report damage, and must not take it for data.
//!
//! This campaign covers cases that [rot](super::Rot) cannot: images of other pages and older images, which
//! lost and misdirected writes leave, and drives that became shorter; it makes its stores so that there are
//! such images.

use std::ops::Range;
use std::sync::Arc;

use flashgrain::{CpuCosts, Db, Durability, Error, Simulated};
use flashgrain_device::Device;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::Failure;
use super::life::work_on;
use super::run::Campaign;
use crate::media::{Choice, Disk, Moment, Recorder, SECTOR_BYTES, Tape, Timeline};
use crate::world::{CASES, Change, Content, Counts, Habits, Shape, Shared, drive, quietly, same, small};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Decay {
    /// Damages to each store that has lived.
    pub damages: u64,
}

impl Default for Decay {
    fn default() -> Self {
        Self { damages: 300 }
    }
}

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x0064_6563_6179;

/// The tree whose pages all look alike: full, of the same length, and written again in the same order.
const ALIKE: &str = "alike";

/// Its records: about as many leaves as fill a segment.
const ALIKE_RECORDS: u16 = 600;

/// No leaf has fewer records than this: one record in this number in a row reaches every leaf.
const ALIKE_STEP: u16 = 20;

/// Number of times that they are written.
const ALIKE_ROUNDS: u32 = 5;

/// How many of them are written together.
const ALIKE_PER_COMMIT: usize = 100;

impl Campaign for Decay {
    fn name(&self) -> &'static str {
        "decay"
    }

    fn habits(&self, seed: u64) -> Habits {
        // Overflow values and trees that come and go are in pages of other sorts.
        Habits { steps: 20, overflow: [0.03, 0.3][seed as usize % 2], ..Habits::default() }
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let random = &mut Pcg64::seed_from_u64(seed ^ STREAM);
        let mut counts = Counts::default();
        let shape = Shape::draw(random);
        let shape = if random.random() { shape.growing() } else { shape };
        let lived = quietly(|| live(seed, self.habits(seed), &shape, random)).and_then(|result| result);
        let old = lived.map_err(|what| Failure::new(seed, "before any damage", what))?;
        for _ in 0..self.damages {
            if !goes_on() {
                break;
            }
            let damage = old.draw(random);
            counts.add(CASES, 1);
            old.do_to(damage);
            let seen = quietly(|| old.look(&shape, damage)).and_then(|result| result);
            old.disk.back();
            match seen {
                Ok(false) if matches!(damage, Damage::Shorter { .. }) => {
                    let what = "a drive that has become shorter is not refused";
                    return Err(Failure::new(seed, format!("{damage:?}"), what));
                }
                Ok(true) if damage.is_of_superblock() => {
                    let what = "lost by a single damage to a superblock despite its two copies";
                    return Err(Failure::new(seed, format!("{damage:?}"), what));
                }
                Ok(is_noticed) => counts.add("damages reported", u64::from(is_noticed)),
                Err(what) => return Err(Failure::new(seed, format!("{damage:?}"), what)),
            }
        }
        Ok(counts)
    }
}

/// A store that is no longer open, its content, and its drive.
struct Old {
    /// How long the drive was at first and in the end, if it has grown and the store was closed after that.
    grown: Option<Range<u64>>,
    disk: Disk,
    bytes: Vec<u8>,
    last: u64,
    content: Arc<Content>,
    /// By region: bytes that are not zero.
    written: [Vec<usize>; 3],
    /// Images in segments.
    images: Vec<ImageAt>,
    /// The drive some time before, and the images that were on it then.
    before: (Vec<u8>, Vec<ImageAt>),
    /// Start of the segments, and length of each, in bytes.
    segments: (usize, usize),
}

/// A page's image on a drive.
#[derive(Clone, Copy, Debug)]
struct ImageAt {
    offset: usize,
    length: usize,
    page: u64,
    sequence: u64,
}

/// Units are numbered with gaps of no more than this.
const SEQUENCE_GAP: u64 = 256;

/// Damage to a drive.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A bit flips.
    Flip { bit: u64 },
    /// A page's image is where another one belongs: a misdirected write leaves it there, or a misdirected
    /// read finds it there.
    Stray { from: usize, to: usize, length: usize },
    /// An older image of the same page is there: a lost write leaves it there.
    Stale { from: usize, to: usize, length: usize },
    /// The drive has become shorter.
    Shorter { capacity_bytes: u64 },
}

/// Offsets of the copies of superblocks, and their length (see the store's format).
const SUPERBLOCKS: [u64; 4] = [0, 16 << 10, 64 << 10, 80 << 10];
const SUPERBLOCK_BYTES: u64 = 512;

impl Damage {
    fn is_of_superblock(self) -> bool {
        let within = |bit: u64| {
            SUPERBLOCKS.iter().any(|start| (*start..start + SUPERBLOCK_BYTES).contains(&(bit / 8)))
        };
        matches!(self, Self::Flip { bit } if within(bit))
    }
}

/// Has a store live, and end in a close or idle.
fn live(seed: u64, habits: Habits, shape: &Shape, random: &mut Pcg64) -> Result<Old, String> {
    let text = |error: Error| error.to_string();
    let tape = Tape::default();
    let shared = Shared::listen(&tape);
    let first_bytes = shape.first_bytes();
    let device = Arc::new(Recorder::new(drive(shape.bytes(), seed), first_bytes, tape.clone()));
    let store = small(shape, Arc::clone(&device) as _);
    let mut simulated = Simulated::create(store, CpuCosts::default()).map_err(text)?;
    simulated.set_schedule(random.random());
    work_on(&mut simulated, shape, &shared, habits, seed)?;
    let mut before = 0;
    for round in 0..ALIKE_ROUNDS {
        let writer = shared.clone();
        let written = simulated.run(move |db| {
            write_alike(db, &writer, round)?;
            // The last ones stay in the log.
            if round + 1 < ALIKE_ROUNDS { db.checkpoint() } else { Ok(()) }
        });
        written.map_err(text)?;
        if round == 0 {
            before = tape.length();
        }
    }
    simulated.run_until_idle();
    let is_closed = random.random();
    if is_closed {
        drop(simulated)
    } else {
        simulated.abandon()
    }
    let grown = first_bytes..device.capacity_bytes();
    let grown = Some(grown).filter(|grown| is_closed && !grown.is_empty());
    let mut timeline = Timeline::new(vec![0; shape.bytes() as usize], shape.bytes(), Moment::default());
    let mut older = Vec::new();
    for (position, event) in tape.take().iter().enumerate() {
        if position == before {
            older = all_of(&timeline);
        }
        timeline.play(event);
    }
    let last = shared.get().newest();
    let content = shared.get().content(last);
    Ok(Old { grown, ..Old::new((older, all_of(&timeline)), shape, last, content) })
}

/// Gives records of every page of the tree of like pages another value of the same length.
fn write_alike(db: &Db, shared: &Shared, round: u32) -> Result<(), Error> {
    let tree = match db.existing_tree(ALIKE) {
        Ok(tree) => tree,
        Err(_) => {
            let mut made = None;
            shared.commit(vec![Change::Create(ALIKE.into())], true, || {
                made = Some(db.tree(ALIKE)?);
                Ok::<_, Error>(())
            })?;
            made.ok_or(Error::Closed)?
        }
    };
    // Once all are there, one of each leaf is enough to have all leaves written again.
    let numbers: Vec<u16> =
        (0..ALIKE_RECORDS).filter(|number| round == 0 || number % ALIKE_STEP == 0).collect();
    for some in numbers.chunks(ALIKE_PER_COMMIT) {
        let mut batch = db.batch().durability(Durability::Sync);
        let mut changes = Vec::new();
        for number in some {
            let (key, value) = (number.to_be_bytes().to_vec(), format!("{round:080}").into_bytes());
            batch.insert(&tree, &key, value.clone())?;
            changes.push(Change::Write(ALIKE.into(), key, Some(value)));
        }
        shared.commit(changes, true, || batch.commit())?;
    }
    Ok(())
}

/// The bytes of a drive whose writes have all survived.
fn all_of(timeline: &Timeline) -> Vec<u8> {
    let all = Choice { kept: vec![true; timeline.uncertain().len()], ..Choice::default() };
    let bytes = timeline.leave(&all).bytes();
    timeline.disk().back();
    bytes
}

impl Old {
    /// From the drive's bytes some time before and at the end.
    fn new((older, bytes): (Vec<u8>, Vec<u8>), shape: &Shape, last: u64, content: Arc<Content>) -> Self {
        let (log, segments) = (shape.small.bytes(0) - shape.small.log_bytes, shape.small.bytes(0));
        let mut written = [const { Vec::new() }; 3];
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            let region = usize::from(at as u64 >= log) + usize::from(at as u64 >= segments);
            written[region].push(at);
        }
        let [before, images] = [&older, &bytes].map(|bytes| images(bytes, segments as usize));
        Self {
            grown: None,
            disk: Disk::new(bytes.clone()),
            bytes,
            last,
            content,
            written,
            images,
            before: (older, before),
            segments: (segments as usize, shape.small.segment_bytes as usize),
        }
    }

    fn draw(&self, random: &mut Pcg64) -> Damage {
        match random.random_range(0..24) {
            0 => self.shorter(random),
            1..4 => self.stray(random),
            4..8 => self.stale(random),
            _ => None,
        }
        .unwrap_or_else(|| self.flip(random))
    }

    fn shorter(&self, random: &mut Pcg64) -> Option<Damage> {
        let Range { start, end } = self.grown.clone()?;
        let sectors = random.random_range(1..=(end - start) / SECTOR_BYTES as u64);
        Some(Damage::Shorter { capacity_bytes: end - sectors * SECTOR_BYTES as u64 })
    }

    fn stray(&self, random: &mut Pcg64) -> Option<Damage> {
        let own = pick(&self.images, random)?;
        let is_like = |image: &&ImageAt| image.length == own.length && image.page != own.page;
        let like: Vec<ImageAt> = self.images.iter().filter(is_like).copied().collect();
        pick(&like, random).map(|other| Damage::Stray {
            from: other.offset,
            to: own.offset,
            length: own.length,
        })
    }

    /// Only an image that is older than all in the segment can be told from the newest one.
    fn stale(&self, random: &mut Pcg64) -> Option<Damage> {
        let own = pick(&self.images, random)?;
        let segment = |image: &ImageAt| (image.offset - self.segments.0) / self.segments.1;
        let neighbours = self.images.iter().filter(|image| segment(image) == segment(&own));
        let oldest = neighbours.map(|image| image.sequence).min()?;
        let is_older = |image: &&ImageAt| {
            (image.length, image.page) == (own.length, own.page) && image.sequence + SEQUENCE_GAP <= oldest
        };
        let older: Vec<ImageAt> = self.before.1.iter().filter(is_older).copied().collect();
        pick(&older, random).map(|other| Damage::Stale {
            from: other.offset,
            to: own.offset,
            length: own.length,
        })
    }

    fn flip(&self, random: &mut Pcg64) -> Damage {
        let region = loop {
            let region = &self.written[random.random_range(0..3)];
            if !region.is_empty() {
                break region;
            }
        };
        let byte = region[random.random_range(0..region.len())];
        Damage::Flip { bit: byte as u64 * 8 + random.random_range(0..8) }
    }

    fn do_to(&self, damage: Damage) {
        match damage {
            Damage::Flip { bit } => self.disk.flip(bit),
            Damage::Stray { from, to, length } => self.disk.put(to, &self.bytes[from..from + length]),
            Damage::Shorter { .. } => {}
            Damage::Stale { from, to, length } => self.disk.put(to, &self.before.0[from..from + length]),
        }
    }

    /// Whether the damage is reported; if it is not, everything is there.
    fn look(&self, shape: &Shape, damage: Damage) -> Result<bool, String> {
        let device = Arc::new(match damage {
            Damage::Shorter { capacity_bytes } => self.disk.of_bytes(capacity_bytes),
            _ => self.disk.clone(),
        });
        let is_shorter = matches!(damage, Damage::Shorter { .. });
        let mut simulated = match Simulated::open(small(shape, device), CpuCosts::default()) {
            Ok(simulated) => simulated,
            Err(error) if is_shorter && !matches!(error, Error::Member { .. }) => {
                return Err(format!("the drive has become shorter; the error: {error}"));
            }
            Err(_) => return Ok(true),
        };
        let (last, content) = (self.last, self.content.clone());
        let seen = simulated.run(move |db| {
            let got = flashgrain::testing::last_commit(db);
            if got < last {
                return Ok(Some(format!("silently lost: {got} commits of {last}")));
            }
            same(db, &content)
        });
        simulated.abandon();
        match seen {
            Err(_) => Ok(true),
            Ok(None) => Ok(false),
            Ok(Some(what)) => Err(format!("silently wrong: {what}")),
        }
    }
}

fn pick(images: &[ImageAt], random: &mut Pcg64) -> Option<ImageAt> {
    (!images.is_empty()).then(|| images[random.random_range(0..images.len())])
}

/// Byte sequences in the segments that look like images of pages (see the store's format).
fn images(bytes: &[u8], from: usize) -> Vec<ImageAt> {
    let mut found = Vec::new();
    let mut at = from;
    while let Some(header) = bytes.get(at..at + 32) {
        let length = usize::from(u16::from_le_bytes([header[4], header[5]])) * 64;
        let (class, kind) = (header[6], header[7]);
        let is_image = length > 0 && class < 8 && (1..=2).contains(&kind) && length <= 4096 << class;
        if is_image && at + length <= bytes.len() {
            let long = |from: usize| header[from..from + 8].try_into().map_or(0, u64::from_le_bytes);
            found.push(ImageAt { offset: at, length, page: long(8), sequence: long(16) });
            at += length;
        } else if length == 0 {
            at = (at + 1).next_multiple_of(SECTOR_BYTES);
        } else {
            at += length.min(4096);
        }
    }
    found
}
