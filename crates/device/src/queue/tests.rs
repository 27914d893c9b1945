//! The queue over a scripted backend: short transfers, refusals, full queues and stripes, without a kernel.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;

use super::*;
use crate::Geometry;

/// The scripted kernel's treatment of the next part.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Moves all of it.
    Whole,
    /// Moves this many bytes, if that is less.
    Short(u32),
    /// Fails.
    Errno(i32),
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    /// Parts in the order they were carried out: op, member, offset, length.
    log: Vec<(PartOp, u32, u64, u32)>,
    /// Room in the submission queue.
    room: usize,
}

/// A kernel that answers by script; without a script line it does everything asked.
struct Scripted<const LINKS: bool> {
    script: Rc<RefCell<Script>>,
    staged: VecDeque<(u32, Part)>,
    done: VecDeque<(u32, i32)>,
}

impl<const LINKED: bool> Backend for Scripted<LINKED> {
    const LINKS: bool = LINKED;

    fn has_room(&self, parts: u32) -> bool {
        self.staged.len() + parts as usize <= self.script.borrow().room
    }

    unsafe fn push(&mut self, token: u32, part: &Part) {
        assert!(self.has_room(1), "pushed without room");
        self.staged.push_back((token, *part));
    }

    fn enter(&mut self, _at_least: u32, _until: Option<Nanos>) -> io::Result<()> {
        let mut broken_link = false;
        while let Some((token, part)) = self.staged.pop_front() {
            if std::mem::take(&mut broken_link) {
                self.done.push_back((token, -libc::ECANCELED));
                continue;
            }
            let mut script = self.script.borrow_mut();
            let moves = !matches!(part.op, PartOp::Flush | PartOp::Discard);
            let result = match script.answers.pop_front().unwrap_or(Answer::Whole) {
                Answer::Errno(errno) => -errno,
                Answer::Short(bytes) if moves => bytes.min(part.length_bytes) as i32,
                _ if moves => part.length_bytes as i32,
                _ => 0,
            };
            if result >= 0 {
                let moved = if moves { result as u32 } else { part.length_bytes };
                script.log.push((part.op, part.member, part.offset_bytes, moved));
            }
            broken_link = part.link && (result < 0 || (moves && (result as u32) < part.length_bytes));
            self.done.push_back((token, result));
        }
        Ok(())
    }

    fn watch(&mut self, _fd: std::os::fd::RawFd) -> bool {
        false
    }

    fn alarmed(&mut self) -> bool {
        false
    }

    fn reap(&mut self) -> Option<(u32, i32)> {
        self.done.pop_front()
    }
}

fn queue<const LINKS: bool>(
    depth: u32,
    stripes: StripeSet,
    answers: &[Answer],
) -> (RequestQueue<Scripted<LINKS>>, Rc<RefCell<Script>>) {
    let script = Script { answers: answers.iter().copied().collect(), room: 64, ..Script::default() };
    let script = Rc::new(RefCell::new(script));
    let backend = Scripted { script: Rc::clone(&script), staged: VecDeque::new(), done: VecDeque::new() };
    let geometry = Geometry {
        capacity_bytes: 1 << 30,
        offset_align_bytes: 512,
        memory_align_bytes: 1,
        preferred_max_transfer_bytes: 1 << 20,
        direct: true,
        writable: true,
        members: stripes.members(),
        stripe_unit_bytes: stripes.unit_bytes(),
    };
    let capacity = Arc::new(AtomicU64::new(geometry.capacity_bytes));
    let geometry = LiveGeometry::new(geometry, capacity);
    (RequestQueue::new(backend, depth, stripes, geometry), script)
}

fn request(op: Op, offset_bytes: u64, length_bytes: u32, tag: u64) -> Request {
    // Never dereferenced: the scripted kernel moves nothing.
    Request { op, offset_bytes, length_bytes, memory: std::ptr::without_provenance_mut(4096), tag }
}

fn submit<B: Backend>(queue: &mut RequestQueue<B>, request: Request) -> Result<(), Error> {
    // SAFETY: the scripted kernel never touches the memory.
    unsafe { queue.submit(request) }
}

/// Submits one request and returns its result.
fn one<const LINKS: bool>(
    stripes: StripeSet,
    answers: &[Answer],
    op: Op,
) -> (Result<(), i32>, Rc<RefCell<Script>>) {
    let (mut queue, script) = queue::<LINKS>(4, stripes, answers);
    submit(&mut queue, request(op, 4096, 8192, 7)).unwrap();
    let mut completions = Vec::with_capacity(4);
    queue.wait(1, None, &mut completions).unwrap();
    assert_eq!((completions.len(), completions[0].tag, queue.in_flight()), (1, 7, 0));
    (completions[0].result, script)
}

#[test]
fn a_short_read_is_continued_where_it_stopped() {
    let answers = [Answer::Short(1024), Answer::Short(2048), Answer::Whole];
    let (result, script) = one::<true>(StripeSet::SINGLE, &answers, Op::Read);
    assert_eq!(result, Ok(()));
    let expected =
        [(PartOp::Read, 0, 4096, 1024), (PartOp::Read, 0, 5120, 2048), (PartOp::Read, 0, 7168, 5120)];
    assert_eq!(script.borrow().log, expected);
}

#[test]
fn a_short_transfer_within_a_block_repeats_the_block() {
    let (result, script) = one::<true>(StripeSet::SINGLE, &[Answer::Short(700)], Op::Write);
    assert_eq!(result, Ok(()));
    assert_eq!(script.borrow().log[1], (PartOp::Write, 0, 4096 + 512, 8192 - 512));
}

#[test]
fn nothing_moved_is_the_end_of_the_device() {
    assert_eq!(one::<true>(StripeSet::SINGLE, &[Answer::Short(0)], Op::Read).0, Err(libc::EIO));
}

#[test]
fn interrupted_and_refused_parts_are_repeated() {
    let answers = [Answer::Errno(libc::EINTR), Answer::Errno(libc::EAGAIN), Answer::Whole];
    for op in [Op::Read, Op::Write, Op::Flush, Op::Discard] {
        assert_eq!(one::<true>(StripeSet::SINGLE, &answers, op).0, Ok(()), "{op:?}");
    }
}

#[test]
fn a_part_that_is_refused_for_ever_fails() {
    let answers = vec![Answer::Errno(libc::EAGAIN); FRUITLESS_TRIES_MAX as usize];
    assert_eq!(one::<true>(StripeSet::SINGLE, &answers, Op::Read).0, Err(libc::EAGAIN));
}

#[test]
fn a_failed_flush_is_reported_and_not_repeated() {
    let (result, script) = one::<true>(StripeSet::SINGLE, &[Answer::Errno(libc::EIO)], Op::Flush);
    assert_eq!((result, script.borrow().log.len()), (Err(libc::EIO), 0));
}

#[test]
fn write_then_flush_flushes_after_the_whole_write() {
    let shorts: [&[Answer]; 3] =
        [&[], &[Answer::Short(512)], &[Answer::Short(512), Answer::Errno(libc::EINTR)]];
    for answers in shorts {
        for log in [
            one::<true>(StripeSet::SINGLE, answers, Op::WriteThenFlush),
            one::<false>(StripeSet::SINGLE, answers, Op::WriteThenFlush),
            one::<true>(StripeSet::new(2, 4096), answers, Op::WriteThenFlush),
        ]
        .map(|(result, script)| {
            assert_eq!(result, Ok(()));
            script.take().log
        }) {
            let first_flush = log.iter().position(|entry| entry.0 == PartOp::Flush).unwrap();
            let written: u32 = log[..first_flush].iter().map(|entry| entry.3).sum();
            assert_eq!(written, 8192, "flushed before the write was whole: {log:?}");
            assert!(log[first_flush..].iter().all(|entry| entry.0 == PartOp::Flush), "{log:?}");
        }
    }
}

#[test]
fn a_linked_write_that_fails_is_not_flushed() {
    let (result, script) = one::<true>(StripeSet::SINGLE, &[Answer::Errno(libc::ENOSPC)], Op::WriteThenFlush);
    assert_eq!((result, script.borrow().log.len()), (Err(libc::ENOSPC), 0));
}

#[test]
fn a_flush_reaches_every_member() {
    let (result, script) = one::<true>(StripeSet::new(3, 4096), &[], Op::Flush);
    assert_eq!(result, Ok(()));
    let members: Vec<u32> = script.borrow().log.iter().map(|entry| entry.1).collect();
    assert_eq!(members, [0, 1, 2]);
}

#[test]
fn a_failed_part_fails_its_request_once_all_its_parts_are_back() {
    let answers = [Answer::Whole, Answer::Errno(libc::EIO)];
    assert_eq!(one::<true>(StripeSet::new(2, 512), &answers, Op::Write).0, Err(libc::EIO));
}

#[test]
fn a_full_queue_says_so_and_takes_more_after_reaping() {
    let (mut queue, _) = queue::<true>(2, StripeSet::SINGLE, &[]);
    submit(&mut queue, request(Op::Read, 0, 512, 0)).unwrap();
    submit(&mut queue, request(Op::Read, 0, 512, 1)).unwrap();
    assert!(matches!(submit(&mut queue, request(Op::Read, 0, 512, 2)), Err(Error::QueueFull)));
    queue.poll(&mut Vec::with_capacity(1)).unwrap();
    submit(&mut queue, request(Op::Read, 0, 512, 2)).unwrap();
}

#[test]
fn completions_wait_for_room() {
    let (mut queue, _) = queue::<true>(3, StripeSet::SINGLE, &[]);
    for tag in 0..3 {
        submit(&mut queue, request(Op::Read, 0, 512, tag)).unwrap();
    }
    let mut few = Vec::with_capacity(1);
    let room = few.capacity();
    assert_eq!(queue.wait(3, None, &mut few).unwrap(), room.min(3));
    assert_eq!(queue.in_flight(), 3 - room.min(3));
    few.clear();
    while queue.in_flight() > 0 {
        queue.wait(1, None, &mut few).unwrap();
        few.clear();
    }
}

#[test]
fn bad_requests_are_refused() {
    let (mut queue, _) = queue::<true>(1, StripeSet::SINGLE, &[]);
    let (end, huge) = (1u64 << 30, u64::MAX - 511);
    for bad in [
        request(Op::Read, 1, 512, 0),
        request(Op::Read, 0, 0, 0),
        request(Op::Read, 0, 100, 0),
        request(Op::Write, end, 512, 0),
        request(Op::Discard, huge, 1024, 0),
    ] {
        assert!(matches!(submit(&mut queue, bad), Err(Error::Request(_))), "{bad:?}");
    }
    assert_eq!(queue.in_flight(), 0);
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => Just(Answer::Whole),
        2 => (1u32..20).prop_map(|blocks| Answer::Short(blocks * 512)),
        1 => Just(Answer::Errno(libc::EINTR)),
        1 => Just(Answer::Errno(libc::EAGAIN)),
        1 => Just(Answer::Errno(libc::EIO)),
    ]
}

proptest! {
    /// Whatever the kernel answers and however little room it has, every request completes exactly once, and
    /// one that reports success has moved every one of its bytes exactly once.
    #[test]
    fn every_request_completes_once_and_whole(
        answers in prop::collection::vec(answer(), 0..60),
        requests in prop::collection::vec((0u64..64, 1u32..40, 0usize..5), 1..30),
        members in 1u32..4,
        room in 2usize..6,
    ) {
        let stripes = StripeSet::new(members, 2048);
        let (mut queue, script) = queue::<true>(4, stripes, &answers);
        script.borrow_mut().room = room;
        let ops = [Op::Read, Op::Write, Op::WriteThenFlush, Op::Flush, Op::Discard];
        let mut completions = Vec::with_capacity(4);
        let mut seen = vec![0; requests.len()];
        let mut ok_bytes = 0u64;
        let mut failed = false;
        let mut account = |completions: &mut Vec<Completion>, seen: &mut Vec<u32>| {
            for completion in completions.drain(..) {
                let index = completion.tag as usize;
                seen[index] += 1;
                failed |= completion.result.is_err();
                if completion.result.is_ok() && ops[requests[index].2] != Op::Flush {
                    ok_bytes += u64::from(requests[index].1) * 512;
                }
            }
        };
        for (tag, &(block, blocks, op)) in requests.iter().enumerate() {
            while queue.in_flight() == queue.depth() {
                queue.wait(1, None, &mut completions).unwrap();
                account(&mut completions, &mut seen);
            }
            submit(&mut queue, request(ops[op], block * 512, blocks * 512, tag as u64)).unwrap();
        }
        while queue.in_flight() > 0 {
            queue.wait(1, None, &mut completions).unwrap();
            account(&mut completions, &mut seen);
        }
        prop_assert!(seen.iter().all(|&count| count == 1), "{:?}", seen);
        let moved: u64 =
            script.borrow().log.iter().filter(|entry| entry.0 != PartOp::Flush).map(|entry| u64::from(entry.3)).sum();
        prop_assert!(if failed { moved >= ok_bytes } else { moved == ok_bytes }, "{moved} {ok_bytes}");
    }
}
