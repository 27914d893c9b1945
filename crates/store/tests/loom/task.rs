//! Waiting and waking, of loom's threads. Not by its own way of parking: that ends other waits of the thread,
//! too.

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};

pub(crate) use loom::thread::yield_now;

/// Whether the thread was woken since it last parked.
#[derive(Clone)]
pub(crate) struct Waker(Arc<(Mutex<bool>, Condvar)>);

loom::thread_local! {
    static OWN: Waker = Waker(Arc::new((Mutex::new(false), Condvar::new())));
}

impl Waker {
    pub fn wake(&self) {
        let (woken, told) = &*self.0;
        *woken.lock().unwrap() = true;
        told.notify_one();
    }
}

pub(crate) fn waker() -> Waker {
    OWN.with(Clone::clone)
}

pub(crate) fn park() {
    let own = waker();
    let (woken, told) = &*own.0;
    let mut woken = woken.lock().unwrap();
    while !*woken {
        woken = told.wait(woken).unwrap();
    }
    *woken = false;
}
