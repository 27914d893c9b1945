//! The histories again, by threads that run at the same time.

use std::sync::Arc;

use flashgrain_device::MemoryDevice;

use super::history::{History, scale};
use super::world::above;
use crate::io_context::Devices;
use crate::poison::Poison;
use crate::worker::{Bounds, Workers};

#[test]
fn threads_and_workers_share_pages() {
    let device = Arc::new(MemoryDevice::new(512 << 20, 0).unwrap());
    let devices = Devices::new(device, None);
    let workers = Workers::start(&devices, 2, Bounds { tasks_max: 100, depth: 64 }, false).unwrap();
    let (segments, pool) = above(&devices, workers.executor(), &Poison::default(), 1 << 20);
    let (threads, tasks, steps) = (2, 6, 3000 * scale());
    let history = History::new(&pool, &segments, threads + tasks);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let history = &history;
            scope.spawn(move || history.run(thread as u64, steps));
        }
        let handles: Vec<_> = (0..tasks)
            .map(|task| {
                let history = Arc::clone(&history);
                workers.executor().run(move || history.run((threads + task) as u64, steps))
            })
            .collect();
        assert!(history.checkpoints() > 0);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    history.check();
}
