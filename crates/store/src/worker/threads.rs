//! Workers with a thread each.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use flashgrain_device::limits::{Limit, limited};
use flashgrain_device::pin_thread;

use super::steps::{Bounds, Worker};
use crate::Error;
use crate::io_context::{Devices, PAUSE};
use crate::task::Executor;

/// Running workers. Dropping them ends them: requests in flight are awaited, and tasks that have not ended
/// are unwound.
pub(crate) struct Workers {
    executor: Executor,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` workers, at least one, each on a thread of its own; pinned to a processor each if asked
    /// for.
    ///
    /// # Errors
    /// [`Error::Device`] if a device refuses a channel, or the system a thread or a processor.
    pub fn start(devices: &Devices, count: usize, bounds: Bounds, pinned: bool) -> Result<Self, Error> {
        let executor = Executor::new((0..count.max(1)).map(|_| Arc::default()).collect());
        let (sender, receiver) = mpsc::channel();
        // From here on, dropping it ends those that have started.
        let mut workers = Self { executor: executor.clone(), threads: Vec::new() };
        for index in 0..executor.mailboxes().len() {
            let (devices, executor, sender) = (devices.clone(), executor.clone(), sender.clone());
            let begin = move || {
                let made = prepare(&devices, &executor, index, bounds, pinned);
                let (worker, result) = match made {
                    Ok(worker) => (Some(worker), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                // The receiver is gone if another worker has failed.
                drop(sender.send(result));
                drop(sender);
                worker.into_iter().for_each(work);
            };
            let spawned = thread::Builder::new().name(format!("flashgrain-{index}")).spawn(begin);
            let doing = || format!("start worker {index}");
            workers.threads.push(spawned.map_err(|source| limited(doing(), source, &[Limit::Threads]))?);
        }
        drop(sender);
        receiver.iter().collect::<Result<(), Error>>().map(|()| workers)
    }

    /// The workers, for their users.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }
}

fn prepare(
    devices: &Devices,
    executor: &Executor,
    index: usize,
    bounds: Bounds,
    pinned: bool,
) -> Result<Worker, Error> {
    if pinned {
        pin_thread(index)?;
    }
    Worker::new(devices, executor, index, bounds)
}

/// A worker's life.
fn work(mut worker: Worker) {
    while !worker.mailbox().is_stopped() {
        if worker.step().and_then(|_| worker.sleep()).is_err() {
            // The kernel is short of a resource; submitted requests are still there.
            thread::park_timeout(PAUSE);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.executor.mailboxes().iter().for_each(|mailbox| mailbox.stop());
        for thread in self.threads.drain(..) {
            // A worker catches its tasks' panics; one of its own has been reported by its thread.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Poll, Wake};
    use std::time::Duration;

    use flashgrain_device::{Device, FileDevice, MemoryDevice, Nanos, OpenOptions, thread_cpu};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::*;
    use crate::io_context::{Block, Role, now, sleep_until};

    fn file() -> Devices {
        let directory = [std::env::temp_dir()];
        let device = FileDevice::scratch(&directory, 4 << 20, &OpenOptions::default()).unwrap();
        Devices::new(Arc::new(device), None)
    }

    /// A device of each kind: they differ in how a worker sleeps.
    fn devices() -> [Devices; 3] {
        let sim = SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap();
        let memory = MemoryDevice::new(4 << 20, 0).unwrap();
        let single = |device: Arc<dyn Device>| Devices::new(device, None);
        [file(), single(Arc::new(sim)), single(Arc::new(memory))]
    }

    fn start(devices: &Devices, count: usize) -> Workers {
        Workers::start(devices, count, Bounds { tasks_max: 100, depth: 16 }, false).unwrap()
    }

    fn read(devices: &Devices, place: u64) {
        let mut block = Block::new(4096).unwrap();
        block.bytes().fill(1);
        block.read(devices, Role::Data, place * 4096).unwrap();
        assert!(block.bytes().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn tasks_from_any_thread_run_to_their_end() {
        for devices in devices() {
            let workers = start(&devices, 2);
            let sum = Arc::new(AtomicU64::new(0));
            std::thread::scope(|scope| {
                for thread in 0..3u64 {
                    let (executor, devices, sum) =
                        (workers.executor().clone(), devices.clone(), Arc::clone(&sum));
                    scope.spawn(move || {
                        let task = |number: u64| {
                            let (devices, sum) = (devices.clone(), Arc::clone(&sum));
                            executor.run(move || {
                                for round in 0..3 {
                                    read(&devices, (number * 3 + round) % 1024);
                                }
                                sum.fetch_add(number, Ordering::Relaxed);
                                number
                            })
                        };
                        let handles: Vec<_> = (0..200).map(|number| task(thread * 200 + number)).collect();
                        for (number, handle) in handles.into_iter().enumerate() {
                            assert_eq!(handle.join().unwrap(), thread * 200 + number as u64);
                        }
                    });
                }
            });
            assert_eq!(sum.load(Ordering::Relaxed), 600 * 599 / 2);
        }
    }

    #[test]
    fn one_who_sleeps_wakes_for_each_job() {
        for devices in devices() {
            let workers = start(&devices, 1);
            // Each job finds the worker asleep, or about to fall asleep.
            for number in 0..2000 {
                assert_eq!(workers.executor().run(move || number + 1).join().unwrap(), number + 1);
            }
        }
    }

    #[test]
    fn idle_workers_use_no_processor() {
        for devices in devices() {
            let workers = start(&devices, 1);
            let used = || workers.executor().run(thread_cpu).join().unwrap();
            let before = used();
            thread::park_timeout(Duration::from_millis(200));
            let used = used() - before;
            assert!(used < Nanos(50_000_000), "{used:?} of 200 ms");
        }
    }

    #[test]
    fn tasks_sleep_until_their_time_beside_others() {
        let devices = file();
        let workers = start(&devices, 1);
        let begun = now(&devices);
        let task = |span_ms: u64| {
            let devices = devices.clone();
            workers.executor().run(move || {
                let until = now(&devices) + Nanos(span_ms * 1_000_000);
                sleep_until(&devices, until).unwrap();
                assert!(now(&devices) >= until);
                now(&devices)
            })
        };
        let (late, soon) = (task(60), task(5));
        let (late, soon) = (late.join().unwrap(), soon.join().unwrap());
        assert!(begun < soon && soon < late);
    }

    #[test]
    fn what_never_ends_is_given_up_when_its_workers_end() {
        let workers = start(&file(), 2);
        let kept = Arc::new(());
        let task = || {
            let kept = Arc::clone(&kept);
            workers.executor().run(move || {
                let _kept = kept;
                loop {
                    crate::task::park();
                }
            })
        };
        // More than are under way at a time.
        let handles: Vec<_> = (0..300).map(|_| task()).collect();
        workers.executor().run(|| ()).is_finished();
        drop(workers);
        for handle in handles {
            let text = handle.join().unwrap_err();
            assert!(text.downcast::<&str>().unwrap().contains("closed"));
        }
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    struct Unparks(thread::Thread);

    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn a_handle_is_a_future() {
        let workers = start(&file(), 1);
        let mut handle = Box::pin(workers.executor().run(|| 7));
        let waker = Arc::new(Unparks(thread::current())).into();
        let result = loop {
            match handle.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => break result,
                Poll::Pending => thread::park(),
            }
        };
        assert_eq!(result.unwrap(), 7);
    }
}
