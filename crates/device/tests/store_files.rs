//! The files of a store: made, locked, striped and grown.

#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{
    BackendKind, Channel, ChannelOptions, Claim, Device, Error, ErrorKind, FileDevice, Op, OpenOptions,
    Request,
};

const MIB: u64 = 1 << 20;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn members(directory: &Path, count: usize) -> Vec<PathBuf> {
    (0..count).map(|member| directory.join(format!("member-{member}"))).collect()
}

fn options() -> OpenOptions {
    OpenOptions { write: true, stripe_unit_bytes: 64 << 10, ..OpenOptions::default() }
}

fn create(paths: &[PathBuf], bytes: u64, options: &OpenOptions) -> Result<FileDevice, Error> {
    FileDevice::create_store(paths, &Arc::default(), b"mark", bytes, options)
}

fn open_store(paths: &[PathBuf], options: &OpenOptions) -> Result<FileDevice, Error> {
    FileDevice::open_store(paths, &Arc::default(), options)
}

fn open(device: &FileDevice) -> Box<dyn Channel> {
    device.open_channel(&ChannelOptions { depth: 8, arena: None, polled: false }).unwrap()
}

/// Reads or writes one block and waits.
fn move_block(channel: &mut dyn Channel, op: Op, block: u64, value: u8) -> Result<bool, Error> {
    let mut memory = vec![if op == Op::Write { value } else { !value }; 8192];
    let start = memory.as_ptr().align_offset(4096);
    let request = Request {
        op,
        offset_bytes: block * 4096,
        length_bytes: 4096,
        memory: memory[start..].as_mut_ptr(),
        tag: 0,
    };
    // SAFETY: the block lies within `memory`, which lives until the request has been answered.
    unsafe { channel.submit(request)? };
    let mut completions = Vec::with_capacity(8);
    while completions.is_empty() {
        channel.wait(1, None, &mut completions)?;
    }
    completions[0].result.unwrap();
    Ok(memory[start..start + 4096].iter().all(|byte| *byte == value))
}

#[test]
fn what_one_has_written_the_next_one_reads_striped_or_not() {
    for count in [1, 3] {
        let directory = directory();
        let paths = members(directory.path(), count);
        let made = create(&paths, 2 * MIB, &options()).unwrap();
        assert!(made.capacity_bytes() >= 2 * MIB && made.capacity_bytes() < 3 * MIB);
        let mut writing = open(&made);
        for block in 0..512 {
            move_block(&mut *writing, Op::Write, block, block as u8).unwrap();
        }
        drop((writing, made));
        let opened = open_store(&paths, &options()).unwrap();
        let mut reading = open(&opened);
        assert!((0..512).all(|block| move_block(&mut *reading, Op::Read, block, block as u8).unwrap()));
    }
}

#[test]
fn it_belongs_to_one_at_a_time_even_if_a_channel_lives_on() {
    let directory = directory();
    let paths = members(directory.path(), 2);
    let first = create(&paths, MIB, &options()).unwrap();
    let refused = open_store(&paths, &options()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked);
    assert!(refused.to_string().contains("member-0"), "{refused}");
    let _idle = open(&first);
    let clone = first.clone();
    drop(first);
    assert_eq!(open_store(&paths, &options()).unwrap_err().kind(), ErrorKind::Locked);
    drop(clone);
    open_store(&paths, &options()).unwrap();
}

#[test]
fn what_is_there_is_not_overwritten_and_what_is_missing_is_named() {
    let directory = directory();
    let paths = members(directory.path(), 2);
    std::fs::write(&paths[1], "precious").unwrap();
    let refused = create(&paths, MIB, &options()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert_eq!(std::fs::read(&paths[1]).unwrap(), b"precious");
    assert!(!paths[0].exists(), "half of a store was left behind");
    let missing = open_store(&paths, &options()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("member-0"), "{missing}");
}

#[test]
fn it_grows_under_open_channels_of_every_backend() {
    for backend in BackendKind::FOR_FILES.into_iter().filter(|backend| backend.available().is_ok()) {
        for count in [1, 3] {
            let directory = directory();
            let paths = members(directory.path(), count);
            let options = OpenOptions { backend: Some(backend), ..options() };
            let device = create(&paths, MIB, &options).unwrap();
            let mut channel = open(&device);
            let end = device.capacity_bytes() / 4096;
            let refused = move_block(&mut *channel, Op::Write, end, 7).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Request);
            device.grow(4 * MIB).unwrap();
            assert!(device.capacity_bytes() >= 4 * MIB);
            assert!(move_block(&mut *channel, Op::Read, end, 0).unwrap(), "new bytes are zero");
            let last = device.capacity_bytes() / 4096 - 1;
            move_block(&mut *channel, Op::Write, last, 9).unwrap();
            let capacity = device.capacity_bytes();
            device.grow(MIB).unwrap();
            assert_eq!(device.capacity_bytes(), capacity, "it never shrinks");
            drop((channel, device));
            let opened = open_store(&paths, &options).unwrap();
            assert_eq!(opened.capacity_bytes(), capacity);
            assert!(move_block(&mut *open(&opened), Op::Read, last, 9).unwrap());
        }
    }
}

#[test]
fn without_room_it_stays_as_it_is() {
    let directory = directory();
    let paths = members(directory.path(), 2);
    let refused = create(&paths, 1 << 50, &options()).unwrap_err();
    // Some file systems refuse such a file for its size alone.
    assert!(matches!(refused.kind(), ErrorKind::NoSpace | ErrorKind::Os), "{refused}");
    assert!(paths.iter().all(|path| !path.exists()));
    let device = create(&paths, MIB, &options()).unwrap();
    let capacity = device.capacity_bytes();
    device.grow(1 << 50).unwrap_err();
    assert_eq!(device.capacity_bytes(), capacity);
    let lengths = paths.iter().map(|path| std::fs::metadata(path).unwrap().len());
    assert!(lengths.clone().all(|length| length == capacity / 2), "{:?}", lengths.collect::<Vec<_>>());
    device.grow(capacity + MIB).unwrap();
    assert!(device.capacity_bytes() > capacity);
}

#[test]
fn room_at_the_end_is_given_back_and_can_be_had_again() {
    for count in [1, 3] {
        let directory = directory();
        let paths = members(directory.path(), count);
        let device = create(&paths, 12 * MIB, &options()).unwrap();
        let length = || paths.iter().map(|path| std::fs::metadata(path).unwrap().len()).sum::<u64>();
        assert!(device.shrinks());
        device.shrink(5 * MIB).unwrap();
        let left = device.capacity_bytes();
        assert!((5 * MIB..6 * MIB).contains(&left) && length() == left, "{left}");
        let mut channel = open(&device);
        let refused = move_block(&mut *channel, Op::Write, left / 4096, 7).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Request);
        device.shrink(9 * MIB).unwrap();
        assert_eq!(device.capacity_bytes(), left, "it does not grow so");
        device.grow(12 * MIB).unwrap();
        assert!(device.capacity_bytes() >= 12 * MIB && length() >= 12 * MIB);
        assert!(move_block(&mut *channel, Op::Read, left / 4096, 0).unwrap(), "new bytes are zero");
    }
    let scratch = FileDevice::scratch(&[directory().path().into()], MIB, &options()).unwrap();
    scratch.shrink(4096).unwrap();
    assert_eq!((scratch.shrinks(), scratch.capacity_bytes()), (false, MIB));
}

#[test]
fn a_scratch_file_does_not_grow() {
    let directory = directory();
    let device = FileDevice::scratch(&[directory.path().into()], MIB, &options()).unwrap();
    assert_eq!(device.grow(2 * MIB).unwrap_err().kind(), ErrorKind::Target);
    assert_eq!(device.capacity_bytes(), MIB);
}

#[test]
fn a_claim_has_its_places_alone_whatever_their_order_and_however_they_are_called() {
    let directory = directory();
    let places: Vec<PathBuf> = ["a", "b/c"].iter().map(|name| directory.path().join(name)).collect();
    assert_eq!(Claim::take(&places, false).unwrap_err().kind(), ErrorKind::NotFound);
    let claim = Claim::take(&places, true).unwrap();
    assert_eq!(claim.places(), 2);
    std::os::unix::fs::symlink(&places[1], directory.path().join("other")).unwrap();
    for name in ["a", "b/c", "other"] {
        let place = directory.path().join(name);
        let refused = Claim::take(std::slice::from_ref(&place), true).unwrap_err();
        assert!(matches!(&refused, Error::OpenHere { path } if *path == place), "{refused}");
    }
    std::fs::write(places[0].join("file"), "").unwrap();
    drop(claim);
    assert!(places[0].exists(), "what has something in it stays");
    assert!(!places[1].exists(), "what was made for nothing goes");
    let twice = [places[0].clone(), places[0].join("../a")];
    assert_eq!(Claim::take(&twice, false).unwrap().places(), 1);
}
