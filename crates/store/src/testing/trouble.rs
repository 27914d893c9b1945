//! Errors that are planted without a failing drive: a page that is not in memory and cannot be read, another
//! caller's write that has failed.
//!
//! A small store has most pages in memory, and a failed request of it is reported to the caller that waits
//! for it. The calls that may wait for a drive are few, though, and each of them can return the error:
//! `trouble!(Name)` asks there. As with [bugs](super::Bug), only stores are concerned whose workers run on
//! the calling thread.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// Called at every occasion for trouble, at its place in the code. It must not use the store.
pub type Listener = Box<dyn FnMut()>;

thread_local! {
    static NOW: Cell<Option<Injection>> = const { Cell::new(None) };
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Kinds of trouble. All but the first two leave the store poisoned, as a failed write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A page that is looked at is not in memory, and cannot be read.
    Page,
    /// The same, and from then on with all pages.
    Pages,
    /// There is no memory for a page, as those that have changed cannot be written.
    Frame,
    /// A page cannot be changed before its old state is written, there is no buffer for that, and there will
    /// be none.
    Room,
    /// The same, and it is known at once.
    Write,
    /// A caller checks whether the store is poisoned, and now it is.
    Poison,
}

#[derive(Clone, Copy)]
struct Injection {
    trouble: Trouble,
    /// Counted from 1.
    nth: u64,
    asked: u64,
}

impl Trouble {
    /// All there are.
    pub const ALL: [Self; 6] = [Self::Page, Self::Pages, Self::Frame, Self::Room, Self::Write, Self::Poison];

    /// From now on, until the result is dropped, the `nth` occasion for it on the calling thread is taken,
    /// counted from 1.
    pub fn at(self, nth: u64) -> Troubled {
        NOW.set(Some(Injection { trouble: self, nth, asked: 0 }));
        Troubled { _of_this_thread: PhantomData }
    }

    /// Causes no trouble, but calls `listener` at every occasion for it on the calling thread, until the
    /// result is dropped.
    pub fn listen(self, listener: Listener) -> Troubled {
        LISTENER.set(Some(listener));
        self.at(u64::MAX)
    }

    /// Whether it is going to happen, or has a listener.
    pub(crate) fn is_expected(self) -> bool {
        NOW.get().is_some_and(|plan| plan.trouble.asked_as() == self)
    }

    /// The one whose occasions are also this one's.
    fn asked_as(self) -> Self {
        if self == Self::Pages { Self::Page } else { self }
    }

    /// Whether it happens now.
    #[inline]
    pub(crate) fn strikes(self) -> bool {
        let Some(plan) = NOW.get().filter(|plan| plan.trouble.asked_as() == self) else { return false };
        let asked = plan.asked + 1;
        NOW.set(Some(Injection { asked, ..plan }));
        LISTENER.with_borrow_mut(|listener| listener.iter_mut().for_each(|hear| hear()));
        asked == plan.nth || asked > plan.nth && plan.trouble == Self::Pages
    }
}

/// Keeps the planned trouble in effect until it is dropped.
#[must_use = "there is no trouble any more when this is dropped"]
#[derive(Debug)]
pub struct Troubled {
    _of_this_thread: PhantomData<*const ()>,
}

impl Troubled {
    /// Occasions so far.
    pub fn asked(&self) -> u64 {
        NOW.get().map_or(0, |plan| plan.asked)
    }
}

impl Drop for Troubled {
    fn drop(&mut self) {
        NOW.set(None);
        LISTENER.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn there_is_trouble_once_on_one_thread() {
        let planned = Trouble::Room.at(2);
        let asked = [Trouble::Room, Trouble::Page, Trouble::Room, Trouble::Room].map(Trouble::strikes);
        assert_eq!(asked, [false, false, true, false]);
        assert!(!std::thread::spawn(|| Trouble::Room.at(1).asked() > 0).join().unwrap());
        assert_eq!(planned.asked(), 3);
        drop(planned);
        assert!(!Trouble::Room.strikes());
        let _for_ever = Trouble::Pages.at(2);
        assert_eq!([Trouble::Page; 3].map(Trouble::strikes), [false, true, true]);
    }

    #[test]
    fn who_listens_hears_of_every_occasion() {
        let heard = Rc::new(Cell::new(0));
        let own = Rc::clone(&heard);
        let listened = Trouble::Page.listen(Box::new(move || own.set(own.get() + 1)));
        assert!(![Trouble::Page, Trouble::Room, Trouble::Page].map(Trouble::strikes).contains(&true));
        drop(listened);
        assert!(!Trouble::Page.strikes());
        assert_eq!(heard.get(), 2);
    }
}
