//! Real files and block devices through every backend that works here: what was written is what is read.

#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use flashgrain_device::{
    Arena, BackendKind, Channel, ChannelOptions, Completion, Device, Error, ErrorKind, FileDevice, Op,
    OpenOptions, Request,
};

const FILE_BYTES: u64 = 1 << 20;
const BLOCK: u32 = 4096;

fn backends() -> impl Iterator<Item = BackendKind> {
    BackendKind::FOR_FILES.into_iter().filter(|backend| backend.available().is_ok())
}

fn directory() -> PathBuf {
    env!("CARGO_TARGET_TMPDIR").into()
}

/// A file of zeros, which loses its name with the returned directory.
fn file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(directory()).unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![0; FILE_BYTES as usize]).unwrap();
    (directory, path)
}

fn open(path: &Path, backend: BackendKind, write: bool) -> FileDevice {
    let options = OpenOptions { backend: Some(backend), write, ..OpenOptions::default() };
    FileDevice::existing(&[path.into()], &[path.into()], &options).unwrap()
}

/// A channel with its memory: `blocks` blocks that tests fill before submitting and look at after reaping.
struct Fixture {
    channel: Box<dyn Channel>,
    arena: Arc<Arena>,
    completions: Vec<Completion>,
}

impl Fixture {
    fn new(device: &FileDevice, depth: u32, registered: bool) -> Self {
        let arena = Arc::new(Arena::new(FILE_BYTES as usize).unwrap());
        let options = ChannelOptions { depth, arena: registered.then(|| Arc::clone(&arena)), polled: false };
        let channel = device.open_channel(&options).unwrap();
        Self { channel, arena, completions: Vec::with_capacity(depth as usize) }
    }

    fn submit(&mut self, op: Op, block: u64, tag: u64) -> Result<(), Error> {
        let offset_bytes = block * u64::from(BLOCK);
        let memory = self.arena.as_ptr().wrapping_add(offset_bytes as usize);
        // SAFETY: the block lies in the arena, which outlives the channel (field order), and is looked at
        // only after reaping.
        unsafe { self.channel.submit(Request { op, offset_bytes, length_bytes: BLOCK, memory, tag }) }
    }

    fn all(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        while self.channel.in_flight() > 0 {
            self.channel.wait(1, None, &mut self.completions).unwrap();
            all.append(&mut self.completions);
            self.completions.reserve(self.channel.depth());
        }
        all
    }

    fn one(&mut self, op: Op, block: u64) -> Result<(), i32> {
        self.submit(op, block, 0).unwrap();
        self.all()[0].result
    }

    fn block(&mut self, block: u64) -> &mut [u8] {
        assert_eq!(self.channel.in_flight(), 0);
        let start = self.arena.as_ptr().wrapping_add((block * u64::from(BLOCK)) as usize);
        // SAFETY: inside the arena; nothing is in flight and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(start, BLOCK as usize) }
    }
}

#[test]
fn what_was_written_is_what_is_read() {
    for backend in backends() {
        for registered in [true, false] {
            let (_directory, path) = file();
            let mut fixture = Fixture::new(&open(&path, backend, true), 64, registered);
            let blocks = FILE_BYTES / u64::from(BLOCK);
            for block in 0..blocks {
                fixture.block(block).fill(block as u8);
            }
            let ops = [Op::Write, Op::WriteDsync, Op::WriteThenFlush];
            for block in 0..blocks {
                while fixture.channel.in_flight() == 64 {
                    let mut completions = Vec::with_capacity(64);
                    fixture.channel.wait(1, None, &mut completions).unwrap();
                    assert!(completions.iter().all(|completion| completion.result.is_ok()), "{backend:?}");
                }
                fixture.submit(ops[block as usize % 3], block, block).unwrap();
            }
            assert!(fixture.all().iter().all(|completion| completion.result.is_ok()));
            assert_eq!(fixture.one(Op::Flush, 0), Ok(()));
            for block in 0..blocks {
                fixture.block(block).fill(0xFF);
            }
            for block in (0..blocks).rev().take(64) {
                fixture.submit(Op::Read, block, block).unwrap();
            }
            let read = fixture.all();
            assert_eq!(read.len(), 64);
            for completion in read {
                assert!(completion.result.is_ok() && completion.completed >= completion.submitted);
                assert!(
                    fixture.block(completion.tag).iter().all(|&byte| byte == completion.tag as u8),
                    "{backend:?}"
                );
            }
            let mut seen = vec![0; BLOCK as usize];
            std::fs::File::open(&path).unwrap().read_exact_at(&mut seen, 5 * u64::from(BLOCK)).unwrap();
            assert!(seen.iter().all(|&byte| byte == 5));
        }
    }
}

#[test]
fn a_discarded_range_of_a_file_reads_as_zeros() {
    for backend in backends() {
        let (_directory, path) = file();
        let mut fixture = Fixture::new(&open(&path, backend, true), 4, true);
        fixture.block(3).fill(7);
        assert_eq!(fixture.one(Op::Write, 3), Ok(()));
        match fixture.one(Op::Discard, 3) {
            Ok(()) => {}
            Err(libc::EOPNOTSUPP) => continue, // the file system cannot punch holes
            Err(errno) => panic!("{backend:?}: errno {errno}"),
        }
        fixture.block(3).fill(9);
        assert_eq!(fixture.one(Op::Read, 3), Ok(()));
        assert!(fixture.block(3).iter().all(|&byte| byte == 0), "{backend:?}");
    }
}

#[test]
fn a_full_channel_says_so() {
    for backend in backends() {
        let (_directory, path) = file();
        let mut fixture = Fixture::new(&open(&path, backend, false), 3, true);
        for block in 0..3 {
            fixture.submit(Op::Read, block, block).unwrap();
        }
        assert_eq!(fixture.submit(Op::Read, 3, 3).unwrap_err().kind(), ErrorKind::QueueFull);
        assert_eq!(fixture.all().len(), 3);
    }
}

#[test]
fn a_file_that_shrank_is_an_error_and_not_a_short_read() {
    for backend in backends() {
        let (_directory, path) = file();
        let device = open(&path, backend, false);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(6 * 4096 + 100).unwrap();
        let mut fixture = Fixture::new(&device, 2, true);
        assert_eq!(fixture.one(Op::Read, 5), Ok(()));
        assert_eq!(fixture.one(Op::Read, 6), Err(libc::EIO), "{backend:?}: ends inside the block");
        assert_eq!(fixture.one(Op::Read, 7), Err(libc::EIO), "{backend:?}: ends before the block");
    }
}

#[test]
fn dropping_a_channel_waits_for_what_is_in_flight() {
    for backend in backends() {
        let (_directory, path) = file();
        let device = open(&path, backend, true);
        let mut fixture = Fixture::new(&device, 32, true);
        for block in 0..32 {
            fixture.block(block).fill(1);
        }
        for block in 0..32 {
            fixture.submit(Op::Write, block, block).unwrap();
        }
        drop(fixture); // unmaps the memory that the writes use
        let written = std::fs::read(&path).unwrap();
        let whole = written[..32 * BLOCK as usize].chunks(BLOCK as usize);
        assert!(whole.into_iter().all(|block| block.iter().all(|&byte| byte == block[0])), "{backend:?}");
    }
}

#[test]
fn a_wait_ends_at_its_time() {
    for backend in backends() {
        let (_directory, path) = file();
        let mut fixture = Fixture::new(&open(&path, backend, false), 2, true);
        let until = fixture.channel.now() + flashgrain_device::Nanos(2_000_000);
        assert_eq!(fixture.channel.wait(1, Some(until), &mut Vec::with_capacity(2)).unwrap(), 0);
        assert!(fixture.channel.now() >= until);
    }
}

#[test]
fn writing_needs_consent_for_exactly_this_path() {
    let (_directory, path) = file();
    let options = OpenOptions { write: true, ..OpenOptions::default() };
    let error = FileDevice::existing(from_ref(&path), &["/other".into()], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Target);
    assert!(error.to_string().contains("destroys its data"), "{error}");
    let reader = FileDevice::existing(&[path], &[], &OpenOptions::default()).unwrap();
    let mut fixture = Fixture::new(&reader, 1, true);
    assert_eq!(fixture.submit(Op::Write, 0, 0).unwrap_err().kind(), ErrorKind::Request);
    assert_eq!(fixture.submit(Op::Discard, 0, 0).unwrap_err().kind(), ErrorKind::Request);
}

#[test]
fn without_direct_io_the_page_cache_is_used_and_noted() {
    // /dev/shm is a tmpfs, which has nothing to bypass to.
    let Ok(device) = FileDevice::scratch(&["/dev/shm".into()], FILE_BYTES, &OpenOptions::default()) else {
        eprintln!("skipped: no /dev/shm here");
        return;
    };
    assert!(!device.geometry().direct);
    assert!(device.identity().notes.iter().any(|note| note.contains("lives in memory")));
    let mut fixture = Fixture::new(&device, 1, true);
    fixture.block(9).fill(3);
    assert_eq!(fixture.one(Op::Write, 9), Ok(()));
    fixture.block(9).fill(0);
    assert_eq!(fixture.one(Op::Read, 9), Ok(()));
    assert!(fixture.block(9).iter().all(|&byte| byte == 3));
}

#[test]
fn scratch_files_have_no_name() {
    let directory = tempfile::tempdir_in(directory()).unwrap();
    let device =
        FileDevice::scratch(&[directory.path().into()], FILE_BYTES, &OpenOptions::default()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    assert_eq!(device.geometry().capacity_bytes, FILE_BYTES);
}

#[test]
fn a_growing_file_begins_empty_and_takes_what_is_written() {
    let directory = tempfile::tempdir_in(directory()).unwrap();
    let scratch =
        FileDevice::scratch(&[directory.path().into()], FILE_BYTES, &OpenOptions::default()).unwrap();
    let growing = scratch.growing().unwrap().unwrap();
    assert_eq!(growing.geometry().capacity_bytes, FILE_BYTES);
    let mut fixture = Fixture::new(&growing, 1, false);
    assert!(fixture.one(Op::Read, 0).is_err(), "there is nothing to read yet");
    for block in 0..4 {
        fixture.block(block).fill(block as u8 + 1);
        assert_eq!(fixture.one(Op::Write, block), Ok(()));
    }
    fixture.block(3).fill(0);
    assert_eq!(fixture.one(Op::Read, 3), Ok(()));
    assert!(fixture.block(3).iter().all(|&byte| byte == 4));
    assert!(fixture.one(Op::Read, 4).is_err(), "the file ends behind the last write");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A loop device over a file, for root on a machine that has them; detached when dropped.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn attach(file: &Path) -> Option<Self> {
        let answer =
            std::process::Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8(answer.stdout).ok()?;
        answer.status.success().then(|| Self(name.trim().into()))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = std::process::Command::new("losetup").arg("--detach").arg(&self.0).status();
        assert!(detached.is_ok_and(|status| status.success()), "detach {}", self.0.display());
    }
}

#[test]
fn a_block_device_is_driven_like_a_file() {
    let (_directory, path) = file();
    let Some(disk) = LoopDevice::attach(&path) else {
        eprintln!("skipped: no loop devices here");
        return;
    };
    for backend in backends() {
        let device = open(&disk.0, backend, true);
        assert_eq!(
            (device.geometry().capacity_bytes, device.identity().kind.as_str()),
            (FILE_BYTES, "block device")
        );
        let mut fixture = Fixture::new(&device, 4, true);
        fixture.block(8).fill(8);
        assert_eq!(fixture.one(Op::WriteThenFlush, 8), Ok(()));
        fixture.block(8).fill(0);
        assert_eq!(fixture.one(Op::Read, 8), Ok(()));
        assert!(fixture.block(8).iter().all(|&byte| byte == 8));
        // A second writer is kept out while the first is there.
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let error = FileDevice::existing(from_ref(&disk.0), from_ref(&disk.0), &options).unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
    }
}

#[test]
fn missing_and_unfit_targets_are_named() {
    let options = OpenOptions::default();
    for (path, expected) in
        [("/nowhere/at/all", "No such file"), ("/dev/null", "neither a file nor a block device")]
    {
        for write in [false, true] {
            let options = OpenOptions { write, ..OpenOptions::default() };
            let error = FileDevice::existing(&[path.into()], &[], &options).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(expected), "{error}");
        }
    }
    let (_directory, path) = file();
    let error = FileDevice::scratch(&[path], FILE_BYTES, &options).unwrap_err().to_string();
    assert!(error.contains("not a directory"), "{error}");
}

#[test]
fn completions_that_cannot_be_polled_for_are_noted() {
    let (_directory, path) = file();
    for polled in [false, true] {
        let options = OpenOptions { backend: Some(BackendKind::Sync), polled, ..OpenOptions::default() };
        let device = FileDevice::existing(from_ref(&path), &[], &options).unwrap();
        assert!(device.shortages().is_empty());
        let options = ChannelOptions { depth: 1, arena: None, polled: false };
        drop((device.open_channel(&options).unwrap(), device.open_channel(&options).unwrap()));
        let noted = device.shortages();
        assert_eq!(noted.len(), usize::from(polled), "{noted:?}");
        assert!(noted.iter().all(|note| note.contains("not polled for")), "{noted:?}");
    }
}
