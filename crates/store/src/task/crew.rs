//! All workers of a store, for those who have background work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::home::Home;
use super::scheduler::Core;

/// The workers' homes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Crew {
    homes: Arc<Vec<Arc<Home>>>,
    next: Arc<AtomicUsize>,
}

impl Crew {
    /// These workers, at least one.
    pub fn new(homes: Vec<Arc<Home>>) -> Self {
        Self { homes: Arc::new(homes), next: Arc::default() }
    }

    /// Has `job` run as a task: of the calling worker if it is one of these, else of the next in turn.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        let here = self.homes.iter().find(|home| Core::is_at(home).is_some());
        let next = || &self.homes[self.next.fetch_add(1, Ordering::Relaxed) % self.homes.len()];
        here.unwrap_or_else(next).spawn(job);
    }
}
