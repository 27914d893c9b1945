//! The models.

use std::sync::Arc;

use loom::thread::spawn;

use crate::gate::Gate;
use crate::latch::Latch;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Without, explore};
use crate::task::park;
use crate::waiters::{Waiters, changed};

/// `model` fails in this way without what is taken away.
fn needs(without: Without, failure: &str, preemptions: usize, model: fn()) {
    let result = std::panic::catch_unwind(|| explore(preemptions, Some(without), model));
    let panic = result.expect_err(&format!("it does without: {without:?}"));
    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(text.contains(failure), "{without:?}: {text}");
}

/// Two words that a writer changes together, and a reader whose version still holds has seen them together.
fn latch() {
    let shared = Arc::new((Latch::default(), [AtomicU64::new(0), AtomicU64::new(0)]));
    let writer = {
        let shared = Arc::clone(&shared);
        spawn(move || {
            let (latch, words) = &*shared;
            for value in 1..=2 {
                if latch.try_lock() {
                    words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
                    latch.unlock();
                }
            }
        })
    };
    let (latch, words) = &*shared;
    if let Some(version) = latch.try_read() {
        let seen = [&words[0], &words[1]].map(|word| word.load(Ordering::Relaxed));
        if latch.is_valid(version) {
            assert_eq!(seen[0], seen[1], "a torn read");
        }
    }
    writer.join().unwrap();
}

/// Two writers, of which one changes only what it has read before.
fn upgrade() {
    let shared = Arc::new((Latch::default(), AtomicU64::new(0)));
    let add = |(latch, word): &(Latch, AtomicU64)| {
        let Some(version) = latch.try_read() else { return 0 };
        let before = word.load(Ordering::Relaxed);
        if !latch.try_upgrade(version) {
            return 0;
        }
        word.store(before + 1, Ordering::Relaxed);
        latch.unlock();
        1
    };
    let other = {
        let shared = Arc::clone(&shared);
        spawn(move || add(&shared))
    };
    let added = add(&shared) + other.join().unwrap();
    assert_eq!(shared.1.load(Ordering::Relaxed), added, "a lost change");
}

/// How a page leaves its frame, which is then another page's without anybody having its latch: loaded by a
/// device, into memory that readers of the old one may still look at. (As `pool/evict.rs` and `pool/fault.rs`
/// do it.)
fn reuse() {
    const OLD: u64 = 1;
    const NEW: u64 = 2;
    /// The frame: its latch, which page it is, and a word of the page.
    #[derive(Default)]
    struct Frame(Latch, AtomicU64, AtomicU64);
    let frame = Arc::new(Frame::default());
    frame.1.store(OLD, Ordering::Relaxed);
    frame.2.store(OLD, Ordering::Relaxed);
    let other = {
        let frame = Arc::clone(&frame);
        spawn(move || {
            let Frame(latch, page, word) = &*frame;
            let version = latch.try_read().unwrap();
            assert!(latch.try_upgrade(version));
            page.store(0, Ordering::Release);
            latch.unlock();
            word.store(NEW, Ordering::Relaxed);
            page.store(NEW, Ordering::Release);
        })
    };
    let Frame(latch, page, word) = &*frame;
    if let Some(version) = latch.try_read() {
        let (id, seen) = (page.load(Ordering::Acquire), word.load(Ordering::Relaxed));
        if id != 0 && latch.is_valid(version) {
            assert_eq!(id, seen, "another page's bytes");
        }
    }
    other.join().unwrap();
}

/// A section changes two words, and a cut sees both or neither.
fn gate() {
    let shared = Arc::new((Gate::new(1), [AtomicU64::new(0), AtomicU64::new(0)]));
    let section = {
        let shared = Arc::clone(&shared);
        spawn(move || {
            let (gate, words) = &*shared;
            let place = gate.enter();
            words.iter().for_each(|word| word.store(gate.epoch().into(), Ordering::Relaxed));
            gate.leave(place);
        })
    };
    let (gate, words) = &*shared;
    let seen = std::cell::Cell::new([0; 2]);
    let old = gate.cut(|| seen.set([&words[0], &words[1]].map(|word| word.load(Ordering::Relaxed))));
    let [first, second] = seen.get();
    assert!(old == 1 && first == second && first <= 1, "a section in part: {first} {second}");
    section.join().unwrap();
    // Behind the cut it is of the next epoch.
    let last = words[1].load(Ordering::Relaxed);
    assert_eq!(last, if first == 0 { 2 } else { 1 }, "a section in part");
}

/// Who waits looks again after he has entered the queue, and who changes looks whether somebody waits: one of
/// them sees the other.
fn waiters() {
    let shared = Arc::new((Waiters::default(), AtomicU64::new(0)));
    let other = {
        let shared = Arc::clone(&shared);
        spawn(move || {
            let (waiters, word) = &*shared;
            word.store(1, Ordering::Release);
            changed();
            waiters.wake_all(7);
        })
    };
    let (waiters, word) = &*shared;
    while word.load(Ordering::Acquire) == 0 {
        let _place = waiters.enter(7);
        if word.load(Ordering::Acquire) == 0 {
            park();
        }
    }
    other.join().unwrap();
}

#[test]
fn a_reader_whose_version_holds_has_seen_no_change_in_part() {
    explore(3, None, latch);
}

#[test]
fn the_latch_needs_its_fences_and_orderings() {
    for without in [Without::Fence, Without::Acquire, Without::Release] {
        needs(without, "a torn read", 3, latch);
    }
}

#[test]
fn who_reads_a_page_notices_when_its_frame_becomes_another_ones() {
    explore(4, None, reuse);
    needs(Without::Fence, "another page's bytes", 4, reuse);
}

#[test]
fn of_two_who_change_what_they_have_read_one_starts_over() {
    explore(3, None, upgrade);
    needs(Without::Release, "a lost change", 3, upgrade);
}

#[test]
fn a_cut_falls_between_sections() {
    explore(3, None, gate);
}

#[test]
fn the_gate_needs_one_order_and_its_release() {
    for without in [Without::OneOrder, Without::Release] {
        needs(without, "a section in part", 3, gate);
    }
}

#[test]
fn no_wake_up_is_lost_between_who_waits_and_who_changes() {
    explore(3, None, waiters);
}

#[test]
fn waiters_need_their_fences() {
    needs(Without::Fence, "deadlock", 3, waiters);
}
