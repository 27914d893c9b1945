//! Waits that other threads end, through every backend that works here.

#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::sync::mpsc;
use std::time::Duration;

use flashgrain_device::{
    BackendKind, Channel, ChannelOptions, ChannelWaker, Device, FileDevice, MemoryDevice, Nanos, Op,
    OpenOptions, Request, thread_cpu,
};

/// Far more than any test takes.
const NEVER: Nanos = Nanos(u64::MAX);

fn devices() -> Vec<Box<dyn Device>> {
    let directory = [env!("CARGO_TARGET_TMPDIR").into()];
    let file = |backend| {
        let options = OpenOptions { backend: Some(backend), ..OpenOptions::default() };
        Box::new(FileDevice::scratch(&directory, 1 << 20, &options).unwrap()) as Box<dyn Device>
    };
    let available = BackendKind::FOR_FILES.into_iter().filter(|backend| backend.available().is_ok());
    available.map(file).chain([Box::new(MemoryDevice::new(1 << 20, 0).unwrap()) as _]).collect()
}

fn open(device: &dyn Device) -> Box<dyn Channel> {
    device.open_channel(&ChannelOptions { depth: 4, arena: None, polled: false }).unwrap()
}

/// Has another thread wait on a channel and gives its waker to `act`.
fn while_waiting(device: &dyn Device, times: usize, act: impl FnOnce(ChannelWaker)) -> Nanos {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let mut channel = open(device);
            sender.send(channel.waker().unwrap()).unwrap();
            let before = thread_cpu();
            for _ in 0..times {
                assert_eq!(channel.wait(1, Some(NEVER), &mut Vec::with_capacity(4)).unwrap(), 0);
            }
            thread_cpu() - before
        });
        act(receiver.recv().unwrap());
        sleeper.join().unwrap()
    })
}

#[test]
fn an_idle_channel_sleeps_until_it_is_woken() {
    for device in devices() {
        let used = while_waiting(&*device, 1, |waker| {
            // So long that a wait which does not sleep would be seen.
            std::thread::park_timeout(Duration::from_millis(100));
            waker.wake();
        });
        assert!(used.seconds() < 0.05, "{}: {used:?}", device.identity().backend);
    }
}

#[test]
fn a_wake_counts_once_also_before_the_wait() {
    for device in devices() {
        let mut channel = open(&*device);
        let waker = channel.waker().unwrap();
        for _ in 0..3 {
            waker.wake();
            waker.wake();
            assert_eq!(channel.wait(1, Some(NEVER), &mut Vec::with_capacity(4)).unwrap(), 0);
            let soon = channel.now() + Nanos(1_000_000);
            channel.wait(1, Some(soon), &mut Vec::with_capacity(4)).unwrap();
            assert!(channel.now() >= soon, "{}: one wake ended two waits", device.identity().backend);
        }
    }
}

#[test]
fn a_wait_for_requests_is_ended_too_and_they_come_later() {
    for device in devices() {
        let mut channel = open(&*device);
        let waker = channel.waker().unwrap();
        let mut memory = vec![0u8; 8192];
        let start = memory.as_mut_ptr().wrapping_add(memory.as_ptr().align_offset(4096));
        let mut completions = Vec::with_capacity(4);
        for tag in 0..200 {
            let request = Request { op: Op::Read, offset_bytes: 0, length_bytes: 4096, memory: start, tag };
            // SAFETY: the block is 4096 bytes within `memory`, which outlives the request: each is waited for
            // below.
            unsafe { channel.submit(request).unwrap() };
            waker.wake();
            while completions.is_empty() {
                channel.wait(1, Some(NEVER), &mut completions).unwrap();
            }
            let completion = completions.pop().unwrap();
            assert_eq!((completion.tag, completion.result), (tag, Ok(())));
        }
    }
}
