//! The pool as its users see it.

mod explored;
mod faults;
mod gate;
mod history;
mod latch;
mod speed;
mod threads;
mod waiters;
mod world;

use super::testing::pool_in_memory;
use super::*;
use crate::header::PAGE_HEADER_BYTES;
use crate::header::{Header, PageKind};

/// Where tests put a mark that tells states of a page apart.
const MARK: u32 = PAGE_HEADER_BYTES;

fn new_page(pool: &Pool, class: usize, mark: u32) -> PageId {
    let memory = pool.reserve(class).unwrap();
    let section = pool.section();
    let page = section.create(memory, PageKind::Node, false);
    page.page().set_word(MARK, mark);
    page.id()
}

fn mark(pool: &Pool, id: PageId) -> Option<u32> {
    let guard = pool.read(id, Access::Normal).ok()?;
    let mark = guard.page().word(MARK);
    guard.is_valid().then_some(mark)
}

#[test]
fn a_change_is_seen_and_readers_of_the_old_state_notice() {
    let pool = pool_in_memory(1 << 20);
    let id = new_page(&pool, 0, 7);
    let guard = pool.read(id, Access::Normal).unwrap();
    assert!(guard.is_valid() && guard.page().word(MARK) == 7);
    {
        let section = pool.section();
        let locked = section.lock(&guard).unwrap();
        locked.page().set_word(MARK, 8);
        assert!(matches!(section.lock(&guard), Err(Denied::Changed)));
    }
    assert!(!guard.is_valid());
    assert_eq!((mark(&pool, id), pool.images.dirty_bytes()), (Some(8), 4096));
}

#[test]
fn a_freed_page_is_gone_and_its_memory_is_used_again() {
    let pool = pool_in_memory(BUDGET_BYTES_MIN);
    for round in 0..1000 {
        let id = new_page(&pool, 2, round);
        let guard = pool.read(id, Access::Normal).unwrap();
        let section = pool.section();
        section.free(section.lock(&guard).unwrap());
        assert!(!guard.is_valid());
        drop(section);
        assert!(mark(&pool, id).is_none());
    }
    assert_eq!(pool.images.dirty_bytes(), 0);
}

#[test]
fn a_new_page_is_zeros_but_its_header() {
    let pool = pool_in_memory(BUDGET_BYTES_MIN);
    let dirt = new_page(&pool, 0, !0);
    let guard = pool.read(dirt, Access::Normal).unwrap();
    let section = pool.section();
    let locked = section.lock(&guard).unwrap();
    (0..4096).step_by(4).for_each(|at| locked.page().set_word(at, !0));
    section.free(locked);
    drop(section);
    let id = new_page(&pool, 0, 0);
    assert_eq!(guard.page().long(8), id.0, "the same frame");
    let guard = pool.read(id, Access::Normal).unwrap();
    let header = Header::of(guard.page());
    assert_eq!((header.page, header.kind, header.front_end, header.back_start), (id, 1, 32, 4096));
    assert!((PAGE_HEADER_BYTES..4096).step_by(4).all(|at| guard.page().word(at) == 0));
}

#[test]
fn a_budget_that_is_too_small_is_refused() {
    let executor = || Executor::new(vec![Arc::default()]);
    let page_store = Arc::new(testing::MemoryPageStore::default());
    let error = Pool::new(BUDGET_BYTES_MIN - 1, page_store, executor()).err().unwrap();
    assert!(error.to_string().contains("at least 131072"), "{error}");
    let error = pool_in_memory(BUDGET_BYTES_MIN).reserve(8).err().unwrap();
    assert!(error.to_string().contains("at least 8388608"), "{error}");
}

/// It was written with a larger cache. Here memtables have their half of the memory.
#[test]
fn a_page_that_is_larger_than_the_cache_is_read_with_memory_of_its_own() {
    let page_store = Arc::default();
    let written: Vec<_> = {
        let large = testing::pool_over(&page_store, 16 << 20);
        let write = |class| {
            let memory = large.reserve(class).unwrap();
            let section = large.section();
            let locked = section.create(memory, PageKind::Overflow, false);
            (locked.id(), section.gather(&locked).unwrap())
        };
        [4, 5, 6, 6].map(write).into()
    };
    let small = testing::pool_over(&page_store, BUDGET_BYTES_MIN);
    let lent: Vec<_> = std::iter::from_fn(|| small.try_lend(0)).collect();
    assert!(lent.len() > 10, "{}", lent.len());
    for (id, location) in &written {
        small.opening().restoring().restore(*id, Some(*location));
    }
    for _ in 0..3 {
        for (id, _) in &written {
            assert_eq!(
                Header::of(small.read(*id, Access::Normal).unwrap().page()).kind,
                PageKind::Overflow as u8
            );
        }
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "only debug builds look")]
#[should_panic(expected = "waiting where it is forbidden")]
fn a_section_must_not_wait() {
    let pool = pool_in_memory(1 << 20);
    let _section = pool.section();
    crate::task::yield_now();
}
