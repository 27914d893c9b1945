//! All workers of a store, for those who have work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Class;
use super::core::Core;
use super::home::{Home, Job};
use super::join::{JoinHandle, joinable};

/// The workers' homes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Crew {
    homes: Arc<Vec<Arc<Home>>>,
    next: Arc<AtomicUsize>,
}

impl Crew {
    /// These workers, at least one.
    pub fn new(homes: Vec<Arc<Home>>) -> Self {
        assert!(!homes.is_empty(), "a crew has workers");
        Self { homes: Arc::new(homes), next: Arc::default() }
    }

    /// The workers' homes.
    pub fn homes(&self) -> &[Arc<Home>] {
        &self.homes
    }

    /// Has `job` run as a background task: of the calling worker if it is one of these, else of the next in turn. It begins soon, whatever else is going on.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.send(Job { run: Box::new(job), class: Class::Background });
    }

    /// Has `job` run as a user's task. It may wait for its turn if very many are under way.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let (job, handle) = joinable(job);
        self.send(Job { run: Box::new(job), class: Class::Foreground });
        handle
    }

    fn send(&self, job: Job) {
        let left = Core::current(|current| match current {
            Some((core, _)) if self.homes.iter().any(|home| Arc::ptr_eq(home, &core.home)) => {
                core.sent.borrow_mut().push(job);
                None
            }
            _ => Some(job),
        });
        if let Some(job) = left {
            self.homes[self.next.fetch_add(1, Ordering::Relaxed) % self.homes.len()].send(job);
        }
    }
}
