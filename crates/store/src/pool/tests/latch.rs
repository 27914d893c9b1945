//! The latch on real threads; `tests/loom` has it in every order.

use std::sync::atomic::AtomicU32;

use crate::pool::latch::Latch;
use std::sync::atomic::Ordering;

#[test]
fn readers_notice_writers() {
    let latch = Latch::default();
    let before = latch.read();
    assert!(latch.is_valid(before));
    latch.lock();
    assert!(!latch.is_valid(before) && !latch.try_lock());
    latch.unlock();
    assert!(!latch.is_valid(before) && !latch.try_upgrade(before));
    let after = latch.read();
    assert!(latch.try_upgrade(after));
    latch.unlock_unchanged();
    assert!(latch.is_valid(after));
}

/// Two words that writers change together: a reader whose version still holds has seen them equal.
#[test]
fn whole_reads_are_whole() {
    let (latch, words) = (Latch::default(), [const { AtomicU32::new(0) }; 2]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    latch.lock();
                    for word in &words {
                        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                    latch.unlock();
                }
            });
        }
        scope.spawn(|| {
            let mut whole = 0;
            while whole < 1000 {
                let version = latch.read();
                let seen = [&words[0], &words[1]].map(|word| word.load(Ordering::Relaxed));
                if latch.is_valid(version) {
                    assert_eq!(seen[0], seen[1]);
                    whole += 1;
                }
            }
        });
    });
    assert_eq!(words[0].load(Ordering::Relaxed), 40_000);
}
