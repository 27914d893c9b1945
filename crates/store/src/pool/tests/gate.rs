//! The gate on real threads; `tests/loom` has it in every order.

use std::sync::atomic::AtomicU64;

use crate::pool::gate::Gate;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sections change two numbers one after the other; no cut sees them differ.
#[test]
fn a_cut_falls_between_sections() {
    let (gate, numbers) = (Gate::new(1), [const { AtomicU64::new(0) }; 2]);
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let place = gate.enter();
                    numbers[0].fetch_add(1, Ordering::Relaxed);
                    std::hint::spin_loop();
                    numbers[1].fetch_add(1, Ordering::Relaxed);
                    gate.leave(place);
                }
                done.fetch_add(1, Ordering::Release);
            });
        }
        let mut cuts = 0;
        while done.load(Ordering::Acquire) < 3 || cuts == 0 {
            let old = gate.cut(|| {
                let [first, second] = [0, 1].map(|index| numbers[index as usize].load(Ordering::Relaxed));
                assert_eq!(first, second);
            });
            cuts += 1;
            assert_eq!((old, gate.epoch()), (cuts, cuts + 1));
        }
    });
    assert_eq!(numbers[1].load(Ordering::Relaxed), 60_000);
}
