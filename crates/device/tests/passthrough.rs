//! Namespaces of an NVMe drive past the kernel's block layer. Needs a drive whose contents may be lost, named
//! by `FLASHGRAIN_NAMESPACES=/dev/ng0n1:/dev/ng0n2`; `scripts/nvme-guest.sh` has an emulated one.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test helpers")]

use std::fs::{File, OpenOptions as FileOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use flashgrain_device::{
    Arena, BackendKind, Channel, ChannelOptions, Claim, Completion, Device, Error, ErrorKind, FileDevice, Op,
    OpenOptions, Request,
};

const NEEDS: &str = "needs FLASHGRAIN_NAMESPACES=/dev/ngXnY, whose contents are lost";
const ARENA_BYTES: usize = 8 << 20;
/// Larger than drives and kernels take as one command.
const LONG_BYTES: u32 = 2 << 20;
const DEPTH: u32 = 16;

fn namespaces() -> Vec<PathBuf> {
    std::env::var("FLASHGRAIN_NAMESPACES").expect(NEEDS).split(':').map(PathBuf::from).collect()
}

fn block_device(namespace: &Path) -> PathBuf {
    namespace.to_str().unwrap().replace("/ng", "/nvme").into()
}

fn fact(namespace: &Path, name: &str) -> u64 {
    let block = block_device(namespace);
    let path = Path::new("/sys/class/block").join(block.file_name().unwrap()).join(name);
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

fn open(path: &Path, write: bool) -> Result<FileDevice, Error> {
    let options = OpenOptions { write, ..OpenOptions::default() };
    FileDevice::existing(&[path.into()], &[path.into()], &options)
}

struct Fixture {
    channel: Box<dyn Channel>,
    arena: Arc<Arena>,
    completions: Vec<Completion>,
}

impl Fixture {
    fn new(device: &FileDevice, registered: bool, polled: bool) -> Self {
        let arena = Arc::new(Arena::new(ARENA_BYTES).unwrap());
        let options = ChannelOptions { depth: DEPTH, arena: registered.then(|| Arc::clone(&arena)), polled };
        let channel = device.open_channel(&options).unwrap();
        Self { channel, arena, completions: Vec::with_capacity(DEPTH as usize) }
    }

    fn fill(&mut self, at: usize, length: u32, seed: u64) {
        for (index, word) in (0..length as usize / 8).enumerate() {
            let value = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
            // SAFETY: the range lies in the arena, and no request uses it.
            unsafe { self.arena.as_ptr().add(at + word * 8).cast::<u64>().write_unaligned(value) };
        }
    }

    fn bytes(&self, at: usize, length: u32) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.arena.as_ptr().add(at), length as usize).to_vec() }
    }

    fn submit(&mut self, op: Op, offset_bytes: u64, length_bytes: u32, at: usize) -> Result<(), Error> {
        let memory = self.arena.as_ptr().wrapping_add(at);
        // SAFETY: the range lies in the arena, which outlives the channel (field order), and is looked at
        // only after reaping.
        unsafe { self.channel.submit(Request { op, offset_bytes, length_bytes, memory, tag: offset_bytes }) }
    }

    fn finish(&mut self) {
        let count = self.channel.in_flight();
        self.channel.wait(count, None, &mut self.completions).unwrap();
        for completion in self.completions.drain(..) {
            assert_eq!(completion.result, Ok(()), "at {}", completion.tag);
        }
        assert_eq!(self.channel.in_flight(), 0);
    }

    fn run(&mut self, op: Op, offset_bytes: u64, length_bytes: u32, at: usize) {
        self.submit(op, offset_bytes, length_bytes, at).unwrap();
        self.finish();
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn what_was_written_is_what_the_block_device_has() {
    const WRITES: [Op; 3] = [Op::Write, Op::WriteDsync, Op::WriteThenFlush];
    for path in namespaces() {
        for (registered, polled) in [(false, false), (true, false), (true, true)] {
            let device = open(&path, true).unwrap();
            assert_eq!(device.backend(), BackendKind::NvmePassthrough);
            let block = device.geometry().offset_align_bytes;
            let mut fixture = Fixture::new(&device, registered, polled);
            // From one block to more than a command takes, at places that differ in more than 32 bits of
            // their blocks' numbers only on drives that are that large.
            let lengths = [block, 3 * block, 64 << 10, LONG_BYTES];
            let end = device.geometry().capacity_bytes - u64::from(LONG_BYTES);
            for (index, op) in WRITES.into_iter().enumerate() {
                for (place, length) in lengths.into_iter().enumerate() {
                    let offset = end / 4 * place as u64 / u64::from(block) * u64::from(block);
                    fixture.fill(0, length, offset ^ index as u64);
                    let written = fixture.bytes(0, length);
                    fixture.run(op, offset, length, 0);
                    fixture.run(Op::Read, offset, length, 4 << 20);
                    assert_eq!(fixture.bytes(4 << 20, length), written, "{op:?} of {length} at {offset}");
                    let ring = OpenOptions { backend: Some(BackendKind::IoUring), ..OpenOptions::default() };
                    let other = FileDevice::existing(&[block_device(&path)], &[], &ring).unwrap();
                    let mut other = Fixture::new(&other, false, false);
                    other.run(Op::Read, offset, length, 0);
                    assert_eq!(other.bytes(0, length), written, "{op:?} of {length} at {offset}");
                }
            }
            fixture.run(Op::Flush, 0, 0, 0);
            fixture.run(Op::Discard, 0, LONG_BYTES, 0);
        }
    }
}

/// Memory that begins in the middle of a page, as the drive's alignment allows.
#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn memory_may_lie_anywhere_that_the_geometry_allows() {
    for path in namespaces() {
        let device = open(&path, true).unwrap();
        let align = device.geometry().memory_align_bytes as usize;
        for registered in [false, true] {
            let mut fixture = Fixture::new(&device, registered, false);
            for at in [align, 4096 - align, 4096 + 512] {
                fixture.fill(at, LONG_BYTES, at as u64);
                fixture.run(Op::Write, 0, LONG_BYTES, at);
                fixture.run(Op::Read, 0, LONG_BYTES, at + (4 << 20) - 4096);
                assert_eq!(fixture.bytes(at, LONG_BYTES), fixture.bytes(at + (4 << 20) - 4096, LONG_BYTES));
            }
        }
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn a_full_queue_of_requests_that_are_cut_completes() {
    for path in namespaces() {
        let device = open(&path, true).unwrap();
        let mut fixture = Fixture::new(&device, true, false);
        fixture.fill(0, LONG_BYTES, 7);
        for index in 0..u64::from(DEPTH) {
            fixture.submit(Op::WriteThenFlush, index * u64::from(LONG_BYTES), LONG_BYTES, 0).unwrap();
        }
        assert!(matches!(fixture.submit(Op::Flush, 0, 0, 0), Err(Error::QueueFull)));
        fixture.finish();
        let written = fixture.bytes(0, LONG_BYTES);
        for index in 0..u64::from(DEPTH) {
            fixture.run(Op::Read, index * u64::from(LONG_BYTES), LONG_BYTES, 4 << 20);
            assert_eq!(fixture.bytes(4 << 20, LONG_BYTES), written);
        }
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn the_geometry_is_the_kernels() {
    for path in namespaces() {
        let device = open(&path, false).unwrap();
        let geometry = device.geometry();
        assert_eq!(u64::from(geometry.offset_align_bytes), fact(&path, "queue/logical_block_size"));
        assert_eq!(geometry.capacity_bytes, fact(&path, "size") * 512);
        assert!(geometry.direct && !geometry.writable && device.identity().model.is_some());
        let end = geometry.capacity_bytes;
        let block = geometry.offset_align_bytes;
        let mut fixture = Fixture::new(&device, false, false);
        for (op, offset, length) in
            [(Op::Read, end, block), (Op::Read, 1, block), (Op::Read, 0, block + 1), (Op::Write, 0, block)]
        {
            let refused = fixture.submit(op, offset, length, 0).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Request, "{refused}");
        }
        fixture.run(Op::Read, end - u64::from(block), block, 0);
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn a_namespace_in_use_is_left_alone() {
    for path in namespaces() {
        let exclusive = || FileOptions::new().read(true).custom_flags(libc::O_EXCL).open(block_device(&path));
        let other: File = exclusive().unwrap();
        let refused = open(&path, true).unwrap_err().to_string();
        assert!(refused.contains("in use") && refused.contains("/dev/nvme"), "{refused}");
        open(&path, false).unwrap();
        drop(other);
        let device = open(&path, true).unwrap();
        assert_eq!(exclusive().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert!(open(&path, true).is_err());
        drop(device);
        exclusive().unwrap();
        let unasked = FileDevice::existing(
            from_ref(&path),
            &[],
            &OpenOptions { write: true, ..OpenOptions::default() },
        );
        assert!(unasked.unwrap_err().to_string().contains("--destroy-contents-of"));
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn a_store_has_both_devices_of_a_namespace() {
    for path in namespaces() {
        let both = [path.clone(), block_device(&path)];
        let claim = Claim::take(&both, false).unwrap();
        assert_eq!(claim.places(), 1);
        for one in &both {
            let refused = Claim::take(from_ref(one), false).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Locked, "{refused}");
        }
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let device = FileDevice::open_store(&both[..1], &claim, &options).unwrap();
        assert_eq!(device.backend(), BackendKind::NvmePassthrough);
        assert!(!device.shrinks() && device.grow(u64::MAX / 2).is_err());
    }
}

#[test]
#[ignore = "needs an NVMe drive: scripts/nvme-guest.sh"]
fn other_ways_to_open_it_say_which_name_to_take() {
    for path in namespaces() {
        let block = block_device(&path);
        let through = |path: &Path, backend| {
            let options = OpenOptions { backend, ..OpenOptions::default() };
            FileDevice::existing(&[path.into()], &[], &options).unwrap_err().to_string()
        };
        for backend in BackendKind::FOR_FILES {
            let refused = through(&path, Some(backend));
            assert!(refused.contains("/dev/nvme"), "{refused}");
        }
        let refused = through(&block, Some(BackendKind::NvmePassthrough));
        assert!(refused.contains(path.to_str().unwrap()), "{refused}");
        let buffered = OpenOptions { direct: false, ..OpenOptions::default() };
        let refused = FileDevice::existing(from_ref(&path), &[], &buffered).unwrap_err().to_string();
        assert!(refused.contains("page cache"), "{refused}");
        let mixed = FileDevice::existing(&[path, block], &[], &OpenOptions::default()).unwrap_err();
        assert_eq!(mixed.kind(), ErrorKind::Request);
    }
}
