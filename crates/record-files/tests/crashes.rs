//! Lives of a file of records on a drive that loses, tears and reorders whatever was not synchronised: what
//! was synchronised is there, and what else is there was written by the program.
//!
//! `FLASHGRAIN_CASES` lives are tried out; each failure prints its seed.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Result};

use flashgrain_record_files::{Kind, Records, Storage, SyncPoint};

const SECTOR_BYTES: usize = 512;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// From 1 to a limit, small ones as often as large ones.
    fn up_to(&mut self, limit: u64) -> u64 {
        let bits = self.below(u64::from(limit.ilog2()) + 1);
        (1 << bits) + self.below(1 << bits).min(limit - (1 << bits))
    }
}

enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

fn apply(image: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    image.resize(image.len().max(at + bytes.len()), 0);
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

#[derive(Default)]
struct State {
    durable: Vec<u8>,
    now: Vec<u8>,
    changes: Vec<Change>,
}

/// A file on such a drive.
struct Drive {
    state: RefCell<State>,
    /// Requests until power fails.
    requests_left: Cell<u64>,
    /// The next write stops at a sector in its middle, as on a full drive.
    is_full: Cell<bool>,
}

impl Default for Drive {
    fn default() -> Self {
        Self { state: RefCell::default(), requests_left: Cell::new(u64::MAX), is_full: Cell::new(false) }
    }
}

impl Drive {
    /// Another request, unless power has failed.
    fn request(&self) -> Result<()> {
        match self.requests_left.get() {
            0 => Err(ErrorKind::BrokenPipe.into()),
            left => {
                self.requests_left.set(left - 1);
                Ok(())
            }
        }
    }
}

impl Storage for Drive {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let state = self.state.borrow();
        let rest = state.now.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.request()?;
        if self.is_full.take() {
            let middle = sectors(offset as usize, bytes.len()).len() / 2;
            let (from, _) = sectors(offset as usize, bytes.len())[middle];
            self.write_all_at(&bytes[..from], offset)?;
            return Err(ErrorKind::StorageFull.into());
        }
        let mut state = self.state.borrow_mut();
        apply(&mut state.now, offset as usize, bytes);
        state.changes.push(Change::Write { at: offset as usize, bytes: bytes.to_vec() });
        Ok(())
    }

    fn set_len(&self, length_bytes: u64) -> Result<()> {
        self.request()?;
        let mut state = self.state.borrow_mut();
        state.now.resize(length_bytes as usize, 0);
        state.changes.push(Change::Length(length_bytes as usize));
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.request()?;
        let state = &mut *self.state.borrow_mut();
        state.durable.clone_from(&state.now);
        state.changes.clear();
        Ok(())
    }

    fn length_bytes(&self) -> Result<u64> {
        Ok(self.state.borrow().now.len() as u64)
    }
}

impl Drive {
    /// Power fails: of the changes since the last synchronisation, lengths are kept up to some moment, and
    /// any sectors of any writes.
    fn crash(&self, random: &mut Random) {
        self.requests_left.set(u64::MAX);
        let state = &mut *self.state.borrow_mut();
        let lengths = random.below(state.changes.len() as u64 + 1) as usize;
        let kept_of_eight = [0, 1, 4, 7, 8][random.below(5) as usize];
        let tears = random.below(2) == 0;
        let (mut image, mut length) = (state.durable.clone(), state.durable.len());
        for (number, change) in state.changes.drain(..).enumerate() {
            let has_length = number < lengths;
            match change {
                Change::Length(to) if has_length => {
                    image.truncate(to);
                    length = to;
                }
                Change::Length(_) => {}
                Change::Write { at, bytes } => {
                    if has_length {
                        length = length.max(at + bytes.len());
                    }
                    let is_kept = random.below(8) < kept_of_eight;
                    for (from, to) in sectors(at, bytes.len()) {
                        if if tears { random.below(8) < kept_of_eight } else { is_kept } {
                            apply(&mut image, at + from, &bytes[from..to]);
                        }
                    }
                }
            }
        }
        image.resize(length, 0);
        state.now.clone_from(&image);
        state.durable = image;
    }
}

/// The parts of a write that lie in a sector each.
fn sectors(at: usize, length: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < length {
        let to = length.min((at + from) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - at);
        parts.push((from, to));
        from = to;
    }
    parts
}

/// A process that has the file open.
#[derive(Clone)]
struct Process {
    records: Records,
    /// A synchronisation that the drive has done, and that returns a step later, and the number of the
    /// content that is durable then.
    synced: Option<(SyncPoint, usize)>,
}

/// A file, the processes that have it open, and what the program has seen of it.
struct Life {
    random: Random,
    drive: Drive,
    processes: Vec<Process>,
    /// The content after each change since the last synchronisation, and at it.
    contents: Vec<Vec<u8>>,
    /// The number of the first of them.
    first_content: usize,
    record_bytes_max: u64,
    /// The length of all records, if they have one: a page of a lost future may follow a new one then.
    record_bytes: Option<u64>,
    /// Of so many steps, one is each of the rare ones.
    steps: u64,
    steps_between_crashes: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        // A page of one sector may be lost alone.
        let page_bytes = 512 << random.below(12).saturating_sub(6);
        let drive = Drive::default();
        let count = 1 + random.below(3);
        let records = Records::create(&drive, page_bytes).unwrap();
        Self {
            processes: vec![Process { records, synced: None }; count as usize],
            contents: vec![Vec::new()],
            first_content: 0,
            record_bytes_max: 1 << random.below(16),
            record_bytes: (random.below(2) == 0).then(|| 1 + random.below(2 * page_bytes)),
            steps: [10, 16, 96][random.below(3) as usize],
            steps_between_crashes: 1 << random.below(7),
            random,
            drive,
        }
    }

    fn now(&self) -> &[u8] {
        self.contents.last().unwrap()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let drawn = self.random.up_to(self.record_bytes_max);
        let length = self.record_bytes.unwrap_or(drawn);
        (0..length).map(|_| self.random.next() as u8).collect()
    }

    /// A step of one of the processes; `false` if power has failed.
    fn step(&mut self) -> bool {
        let number = self.random.below(self.processes.len() as u64) as usize;
        let mut process = self.processes[number].clone();
        if let Some((point, durable)) = process.synced.take_if(|_| self.random.below(2) == 0) {
            let learned = self.learn(&mut process.records, point, durable);
            self.processes[number] = process;
            return learned.is_ok();
        }
        process.records.refresh(&self.drive).unwrap();
        let length = self.now().len() as u64;
        assert_eq!(process.records.length_bytes(), length, "what others have written is known");
        let learned = process.synced.take();
        let mut content = self.now().to_vec();
        let done = self.act(&mut process, &mut content);
        self.contents.push(content);
        let done = done.and_then(|()| match learned {
            Some((point, durable)) => self.learn(&mut process.records, point, durable),
            None => Ok(()),
        });
        self.processes[number] = process;
        if done.is_ok() && self.random.below(8) == 0 {
            self.check_content();
        }
        done.is_ok()
    }

    /// What was durable when the drive was synchronised is acknowledged.
    fn learn(&mut self, records: &mut Records, point: SyncPoint, durable: usize) -> Result<()> {
        records.synced(&self.drive, point)?;
        self.acknowledge(durable);
        Ok(())
    }

    fn acknowledge(&mut self, durable: usize) {
        self.contents.drain(..durable.saturating_sub(self.first_content));
        self.first_content = self.first_content.max(durable);
    }

    fn act(&mut self, process: &mut Process, content: &mut Vec<u8>) -> Result<()> {
        let (records, drive) = (&mut process.records, &self.drive);
        match self.random.below(self.steps) {
            0 => {
                let drawn = self.random.below(content.len() as u64 * 9 / 8 + 600) as usize;
                let length = if self.random.below(4) == 0 { 0 } else { drawn };
                content.resize(length, 0);
                records.set_length(drive, length as u64)
            }
            1 | 2 => {
                let drawn = self.random.below(content.len() as u64 + 600) as usize;
                let near_the_end = content.len().saturating_sub(self.random.below(100) as usize);
                let at = if self.random.below(2) == 0 { near_the_end } else { drawn };
                let bytes = self.bytes();
                apply(content, at, &bytes);
                process.records.write_at(&self.drive, &bytes, at as u64)
            }
            3 => records.finish(drive),
            4 => {
                let point = records.sync_point();
                drive.sync_data()?;
                process.synced = Some((point, self.first_content + self.contents.len() - 1));
                Ok(())
            }
            rest if rest % 4 == 0 => {
                records.sync(drive)?;
                self.acknowledge(self.first_content + self.contents.len() - 1);
                Ok(())
            }
            5 => {
                let bytes = self.bytes();
                // What an append does before its own write has room.
                let length = process.records.length_bytes();
                process.records.write_at(&self.drive, b"", length)?;
                self.drive.is_full.set(true);
                // A crash may come before it is undone.
                self.contents.push([&content[..], &bytes[..]].concat());
                match process.records.append(&self.drive, &bytes) {
                    // Power may fail while it is undone.
                    Err(error) if error.kind() == ErrorKind::StorageFull => self.drive.request(),
                    other => other,
                }
            }
            _ => {
                let bytes = self.bytes();
                content.extend(&bytes);
                process.records.append(&self.drive, &bytes)
            }
        }
    }

    /// Each process finds what the program has written.
    fn check_content(&mut self) {
        for process in &mut self.processes {
            process.records.refresh(&self.drive).unwrap();
        }
        for process in &self.processes {
            assert!(all(&process.records, &self.drive) == *self.now(), "a process reads what was written");
        }
    }

    fn crash(&mut self) {
        self.drive.crash(&mut self.random);
        assert_eq!(Records::kind_of(&self.drive).unwrap(), Kind::Records);
        let opened = Records::open(&self.drive);
        assert!(opened.is_ok(), "no crash makes a file unreadable: {}", opened.unwrap_err());
        let records = opened.unwrap().unwrap();
        let found = all(&records, &self.drive);
        let lengths = || self.contents.iter().map(Vec::len);
        assert!(
            found.len() >= lengths().min().unwrap(),
            "{} bytes, at least {:?}",
            found.len(),
            lengths().min()
        );
        assert!(
            found.len() <= lengths().max().unwrap(),
            "{} bytes, at most {:?}",
            found.len(),
            lengths().max()
        );
        for (at, byte) in found.iter().enumerate() {
            let was_there = self.contents.iter().any(|content| content.get(at) == Some(byte));
            assert!(was_there, "byte {at} of {} was never written", found.len());
        }
        self.first_content += self.contents.len();
        self.contents = vec![found];
        let count = self.processes.len();
        self.processes = vec![Process { records, synced: None }; count];
    }
}

fn all(records: &Records, drive: &Drive) -> Vec<u8> {
    let mut bytes = vec![0; records.length_bytes() as usize + 10];
    let read = records.read_at(drive, &mut bytes, 0).unwrap();
    bytes.truncate(read);
    bytes
}

fn live(seed: u64) {
    let mut life = Life::new(seed);
    for _ in 0..10 {
        let steps = life.random.below(life.steps_between_crashes);
        // In every other round, power fails within a step.
        let requests = if life.random.below(2) == 0 { life.random.below(2 * steps + 4) } else { u64::MAX };
        life.drive.requests_left.set(requests);
        if (0..steps).all(|_| life.step()) {
            life.check_content();
        }
        life.crash();
    }
}

#[test]
fn what_was_synchronised_is_there_after_any_crash() {
    let cases = std::env::var("FLASHGRAIN_CASES").map_or(1500, |cases| cases.parse().unwrap());
    for seed in 0..cases {
        let lived = std::panic::catch_unwind(|| live(seed));
        assert!(lived.is_ok(), "seed {seed}");
    }
}

/// A crash while a file becomes one of records leaves an empty file, or one of records.
#[test]
fn a_file_is_created_whole_or_not() {
    for seed in 0..200 {
        let drive = Drive::default();
        // As it is written, without the synchronisation.
        let header = flashgrain_layout::header::encode_records(4096);
        drive.write_all_at(&header, 0).unwrap();
        drive.crash(&mut Random(seed));
        let kind = Records::kind_of(&drive).unwrap();
        assert!(matches!(kind, Kind::Empty | Kind::Records), "seed {seed}: {kind:?}");
        Records::create(&drive, 4096).unwrap();
        drive.crash(&mut Random(seed));
        assert_eq!(Records::open(&drive).unwrap().unwrap().length_bytes(), 0);
    }
}
