//! A pool over memory, for tests of the layers above it.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use std::collections::HashMap;

use super::{PageStore, Pool};
use crate::Error;
use crate::header::PageId;
use crate::page::Page;
use crate::segment::{Appended, Lifetime, Location, NotAppended, UnitSequence};
use crate::task::Executor;

/// Images in memory. Each is a unit of its own and on the "device" at once.
#[derive(Default)]
pub(crate) struct MemoryPageStore {
    images: Mutex<HashMap<Location, (PageId, Vec<u32>)>>,
    next: AtomicU64,
}

impl PageStore for MemoryPageStore {
    fn append(
        &self,
        _: Lifetime,
        id: PageId,
        class: usize,
        page: Page<'_>,
        _: Option<Location>,
    ) -> Result<Appended, NotAppended> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let location = Location::new(number << 20, page.len_bytes(), class);
        let words = (0..page.len_bytes()).step_by(4).map(|at| page.word(at)).collect();
        self.images.lock().unwrap().insert(location, (id, words));
        Ok(Appended { location, unit: UnitSequence(number) })
    }

    fn wait_for_room(&self, _: Lifetime) -> Result<(), Error> {
        Ok(())
    }

    fn unit_bytes(&self) -> u64 {
        4096
    }

    fn is_written(&self, _: UnitSequence) -> bool {
        true
    }

    fn release(&self, location: Location) {
        assert!(self.images.lock().unwrap().contains_key(&location), "an image that there is");
    }

    fn wait_written(&self, _: UnitSequence) -> Result<(), Error> {
        Ok(())
    }

    fn give_up(&self, _: &str) {}

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error> {
        let images = self.images.lock().unwrap();
        let (owner, words) = images.get(&location).expect("an image that there is");
        assert_eq!(*owner, id);
        // SAFETY: the caller gives memory for the page.
        unsafe { memory.cast::<u32>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    }
}

/// A pool with nothing in it, and images in memory. Background work is never done.
pub(crate) fn pool_in_memory(budget_bytes: u64) -> Arc<Pool> {
    pool_over(&Arc::default(), budget_bytes)
}

/// Likewise, over images that another pool may have gathered.
pub(crate) fn pool_over(page_store: &Arc<MemoryPageStore>, budget_bytes: u64) -> Arc<Pool> {
    let executor = Executor::new(vec![Arc::default()]);
    Pool::new(budget_bytes, Arc::<MemoryPageStore>::clone(page_store), executor).unwrap()
}
