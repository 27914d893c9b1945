//! InnoDB's buffer pool (`buf0lru.cc` of MariaDB 10.11): which pages are in memory, and which of them leave
//! it.

use flashgrain_device::Nanos;

/// Of a list as long as this or longer, the end is old (`BUF_LRU_OLD_MIN_LEN`).
const OLD_LIST_FROM_PAGES: usize = 512;

/// `innodb_old_blocks_pct`: the share of the list that is old, in percent.
const OLD_PERCENT: usize = 37;

/// `innodb_old_blocks_time`: an old page becomes young when it is accessed so long after its first access.
const OLD_BLOCKS_TIME: Nanos = Nanos(1_000_000_000);

const NONE: u32 = u32::MAX;

/// A page of the table.
#[derive(Clone, Copy, Debug)]
struct Page {
    list: Option<List>,
    before: u32,
    after: u32,
    first_access: Nanos,
    is_dirty: bool,
    is_being_written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Young,
    Old,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    length: usize,
}

/// The pool: a list of pages in two parts, young ones before old ones, and frames without a page.
#[derive(Debug)]
pub(super) struct Pool {
    frames: usize,
    pages: Vec<Page>,
    /// Of young and old pages.
    lists: [Ends; 2],
}

impl Pool {
    /// Frames for some of the pages of a table; none is in memory.
    pub fn new(frames: usize, pages: u32) -> Self {
        let page = Page {
            list: None,
            before: NONE,
            after: NONE,
            first_access: Nanos(0),
            is_dirty: false,
            is_being_written: false,
        };
        let empty = Ends { first: NONE, last: NONE, length: 0 };
        Self { frames, pages: vec![page; pages as usize], lists: [empty; 2] }
    }

    pub fn free(&self) -> usize {
        self.frames - self.length()
    }

    /// Pages in memory.
    pub fn length(&self) -> usize {
        self.lists.iter().map(|list| list.length).sum()
    }

    /// Accesses a page; whether it is in memory.
    pub fn access(&mut self, page: u32, now: Nanos) -> bool {
        let found = self.pages[page as usize];
        match found.list {
            None => return false,
            Some(List::Old) if now.since(found.first_access) < OLD_BLOCKS_TIME => {}
            Some(_) => {
                self.unlink(page);
                self.link_first(List::Young, page);
                self.balance();
            }
        }
        true
    }

    /// Puts a page that was read into a free frame: before all old pages.
    pub fn insert(&mut self, page: u32, now: Nanos) {
        debug_assert!(self.free() > 0 && self.pages[page as usize].list.is_none(), "no frame for {page}");
        self.pages[page as usize].first_access = now;
        let has_old = self.length() >= OLD_LIST_FROM_PAGES;
        self.link_first(if has_old { List::Old } else { List::Young }, page);
        self.balance();
    }

    pub fn dirty(&mut self, page: u32) {
        self.pages[page as usize].is_dirty = true;
    }

    /// The page's content goes to the drive. It may become dirty again meanwhile.
    pub fn begin_write(&mut self, page: u32) {
        let page = &mut self.pages[page as usize];
        (page.is_dirty, page.is_being_written) = (false, true);
    }

    /// The page has been written; it leaves memory unless it has become dirty again.
    pub fn end_write(&mut self, page: u32) {
        self.pages[page as usize].is_being_written = false;
        if !self.pages[page as usize].is_dirty {
            self.unlink(page);
            self.balance();
        }
    }

    /// Gives up clean pages from the end of the list, and names the dirty ones that it came across: both
    /// together `most`, or until `free` frames are free, or `least` pages are left. Dirty pages stay where
    /// they are if `may_write` does not hold.
    pub fn scan(&mut self, free: usize, least: usize, most: usize, may_write: bool) -> Vec<u32> {
        let (mut dirty, mut given_up) = (Vec::new(), 0);
        let mut at = self.last();
        while at != NONE
            && self.free() + dirty.len() < free
            && self.length() > least + dirty.len()
            && given_up + dirty.len() < most
        {
            let page = self.pages[at as usize];
            let before = self.before(at);
            match page.is_dirty {
                _ if page.is_being_written => {}
                true if may_write => dirty.push(at),
                true => {}
                false => {
                    self.unlink(at);
                    given_up += 1;
                }
            }
            at = before;
        }
        self.balance();
        dirty
    }

    fn last(&self) -> u32 {
        let [young, old] = &self.lists;
        if old.length > 0 { old.last } else { young.last }
    }

    fn before(&self, page: u32) -> u32 {
        let found = self.pages[page as usize];
        let [young, _] = &self.lists;
        if found.before == NONE && found.list == Some(List::Old) { young.last } else { found.before }
    }

    /// Keeps the old part as long as it should be.
    fn balance(&mut self) {
        let length = self.length();
        let wanted = if length < OLD_LIST_FROM_PAGES { 0 } else { length * OLD_PERCENT / 100 };
        while self.lists[List::Old as usize].length < wanted {
            let page = self.lists[List::Young as usize].last;
            self.unlink(page);
            self.link_first(List::Old, page);
        }
        while self.lists[List::Old as usize].length > wanted {
            let page = self.lists[List::Old as usize].first;
            self.unlink(page);
            self.link_last(List::Young, page);
        }
    }

    fn unlink(&mut self, page: u32) {
        let found = self.pages[page as usize];
        let Some(list) = found.list else { return };
        let ends = &mut self.lists[list as usize];
        ends.length -= 1;
        match found.before {
            NONE => ends.first = found.after,
            before => self.pages[before as usize].after = found.after,
        }
        match found.after {
            NONE => ends.last = found.before,
            after => self.pages[after as usize].before = found.before,
        }
        let page = &mut self.pages[page as usize];
        (page.list, page.before, page.after) = (None, NONE, NONE);
    }

    fn link_first(&mut self, list: List, page: u32) {
        let ends = &mut self.lists[list as usize];
        let after = std::mem::replace(&mut ends.first, page);
        ends.length += 1;
        match after {
            NONE => ends.last = page,
            after => self.pages[after as usize].before = page,
        }
        let page = &mut self.pages[page as usize];
        (page.list, page.before, page.after) = (Some(list), NONE, after);
    }

    fn link_last(&mut self, list: List, page: u32) {
        let ends = &mut self.lists[list as usize];
        let before = std::mem::replace(&mut ends.last, page);
        ends.length += 1;
        match before {
            NONE => ends.first = page,
            before => self.pages[before as usize].after = page,
        }
        let page = &mut self.pages[page as usize];
        (page.list, page.before, page.after) = (Some(list), before, NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages from the first that stays to the next one to leave.
    fn order(pool: &Pool) -> Vec<u32> {
        let mut order = Vec::new();
        let mut at = pool.last();
        while at != NONE {
            order.push(at);
            at = pool.before(at);
        }
        order.reverse();
        order
    }

    #[test]
    fn a_short_list_is_in_the_order_of_accesses() {
        let mut pool = Pool::new(4, 10);
        for page in [1, 2, 3] {
            assert!(!pool.access(page, Nanos(0)));
            pool.insert(page, Nanos(0));
        }
        assert!(pool.access(1, Nanos(1)));
        assert_eq!((order(&pool), pool.free()), (vec![1, 3, 2], 1));
        pool.dirty(3);
        // Page 2 is clean and leaves, page 3 is to be written before.
        assert_eq!(pool.scan(3, 0, 9, true), [3]);
        assert_eq!(order(&pool), [1, 3]);
        pool.begin_write(3);
        // While it is written, it is passed over.
        assert_eq!(pool.scan(4, 1, 9, true), [0; 0]);
        assert_eq!(order(&pool), [3]);
        pool.end_write(3);
        assert_eq!((order(&pool), pool.free()), (Vec::new(), 4));
    }

    #[test]
    fn a_page_that_changes_while_it_is_written_stays_dirty() {
        let mut pool = Pool::new(4, 10);
        pool.insert(5, Nanos(0));
        pool.dirty(5);
        pool.begin_write(5);
        pool.dirty(5);
        pool.end_write(5);
        assert_eq!(pool.scan(4, 0, 9, true), [5]);
    }

    #[test]
    fn pages_that_are_read_once_leave_a_long_list_before_those_that_are_used_again() {
        let mut pool = Pool::new(1000, 5000);
        (0..1000).for_each(|page| pool.insert(page, Nanos(0)));
        let young = order(&pool)[100];
        assert_eq!(pool.lists.map(|list| list.length), [630, 370]);
        // A scan of a table: each new page takes the place of one that was read once.
        for page in 1000..3000 {
            assert_eq!(pool.scan(1, 0, 9, true), [0; 0]);
            pool.insert(page, Nanos(1));
            pool.access(page, Nanos(2));
        }
        assert!(pool.access(young, Nanos(3)));
        // An old page that is used again after a second stays, too.
        let old = pool.last();
        pool.access(old, Nanos(1) + OLD_BLOCKS_TIME);
        assert_eq!(order(&pool)[0], old);
    }
}
