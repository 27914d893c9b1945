//! Memory of the calling thread for work that does not wait, so that changing a record does not allocate.

use std::cell::{Cell, RefCell};

use crate::page::OwnPage;

thread_local! {
    static PAGE: RefCell<Option<OwnPage>> = const { RefCell::new(None) };
    static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends a page of `length_bytes` with arbitrary content. `work` neither waits nor asks for another one.
pub(super) fn with_page<T>(length_bytes: u32, work: impl FnOnce(&OwnPage) -> T) -> T {
    PAGE.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|page| page.page().len_bytes() != length_bytes) {
            *kept = Some(OwnPage::new(length_bytes));
        }
        let page = kept.get_or_insert_with(|| OwnPage::new(length_bytes));
        work(page)
    })
}

/// Lends an empty buffer. `work` does not wait.
pub(super) fn with_bytes<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut bytes = BYTES.take();
    bytes.clear();
    let result = work(&mut bytes);
    BYTES.set(bytes);
    result
}
