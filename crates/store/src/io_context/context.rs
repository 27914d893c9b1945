//! Channels to all devices, and the requests on them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flashgrain_device::{
    Channel, ChannelOptions, ChannelWaker, Completion, Device, Error as DeviceError, Nanos, Op, Request,
};

use super::devices::{Devices, Owner};
use super::traffic::Counters;
use crate::task::{TaskId, current_task};

/// Completions that are taken at a time.
const BATCH: usize = 256;

/// A queue that has failed as a whole is asked again this much later.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Two queues cannot be waited on at a time: while both are busy, the second is looked at this often.
const SLICE: Nanos = Nanos(50_000);

/// See the module.
pub(crate) struct IoContext {
    queues: Vec<Queue>,
    completions: Vec<Completion>,
    requests: Vec<Asked>,
    free: Vec<u32>,
    in_flight: usize,
    counters: Arc<Counters>,
    /// Tasks that are woken at a point in time.
    timers: BinaryHeap<Reverse<(Nanos, TaskId)>>,
    /// The store that the devices belong to.
    owner: Owner,
    depth: u32,
    /// I/O contexts for the devices of other stores that tasks of this worker use.
    guests: Vec<IoContext>,
}

/// One device's.
struct Queue {
    channel: Box<dyn Channel>,
    /// Whether time passes on it only while a thread waits.
    simulated: bool,
    /// Tasks that found it full.
    waiting: VecDeque<TaskId>,
}

/// A request and the task that waits for it.
#[derive(Clone, Copy)]
struct Asked {
    /// `None`: the thread that asked looks for itself.
    task: Option<TaskId>,
    result: Option<Result<(), i32>>,
    /// Bytes that it transfers between memory and device.
    bytes: u32,
}

impl IoContext {
    /// Channels to `devices` for the calling thread, with at most `depth` requests in flight on each. Tasks
    /// beyond it wait for room.
    pub fn open(devices: &Devices, depth: u32) -> Result<Self, DeviceError> {
        let options = ChannelOptions { depth, arena: None, polled: false };
        let open = |device: &Arc<dyn Device>| {
            let simulated = device.simulation().is_some();
            Ok(Queue { channel: device.open_channel(&options)?, simulated, waiting: VecDeque::new() })
        };
        Ok(Self {
            queues: devices.all().iter().map(open).collect::<Result<_, DeviceError>>()?,
            completions: Vec::with_capacity(BATCH),
            requests: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            counters: devices.counters(),
            timers: BinaryHeap::new(),
            owner: devices.owner(),
            depth,
            guests: Vec::new(),
        })
    }

    /// The I/O context to these devices: this one, or else a guest of it, for as long as they are open.
    pub(super) fn to(&mut self, devices: &Devices) -> Result<&mut Self, DeviceError> {
        if devices.are(&self.owner) {
            return Ok(self);
        }
        let index = match self.guests.iter().position(|guest| devices.are(&guest.owner)) {
            Some(index) => index,
            None => {
                let now = self.now();
                // The times of simulated devices agree from now on.
                let simulations = devices.all().iter().filter_map(|device| device.simulation());
                simulations.for_each(|simulation| while simulation.pass(now) {});
                self.guests.push(Self::open(devices, self.depth)?);
                self.guests.len() - 1
            }
        };
        Ok(&mut self.guests[index])
    }

    /// The I/O context to these devices, if one was opened.
    pub(super) fn opened(&mut self, devices: &Devices) -> Option<&mut Self> {
        match devices.are(&self.owner) {
            true => Some(self),
            false => self.guests.iter_mut().find(|guest| devices.are(&guest.owner)),
        }
    }

    /// Closes I/O contexts to devices that are not open any more.
    fn see_off(&mut self) {
        self.guests.retain(|guest| guest.in_flight > 0 || guest.owner.strong_count() > 0);
    }

    /// The devices of others that it leads to.
    pub fn guests(&self) -> impl Iterator<Item = Devices> {
        self.guests.iter().filter_map(|guest| Devices::of(&guest.owner))
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight + self.guests.iter().map(|guest| guest.in_flight).sum::<usize>()
    }

    /// The time of the first device.
    pub fn now(&self) -> Nanos {
        self.queues.first().map_or(Nanos(0), |queue| queue.channel.now())
    }

    /// Handles for other threads to end [`IoContext::wait`]. Simulated devices have none, because nothing
    /// waits for them in real time.
    pub fn wakers(&mut self) -> Vec<ChannelWaker> {
        self.queues.iter_mut().filter_map(|queue| queue.channel.waker()).collect()
    }

    /// Wakes a task at `at`, or soon after.
    pub fn wake_at(&mut self, at: Nanos, task: TaskId) {
        self.timers.push(Reverse((at, task)));
    }

    /// The time when the next task has to be woken.
    pub fn next_timer(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Wakes the tasks whose time has come.
    fn ring_timers(&mut self, wake: &impl Fn(TaskId)) {
        if self.timers.is_empty() {
            return;
        }
        let now = self.now();
        while let Some(Reverse((at, task))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            wake(task);
        }
    }

    /// Submits a request whose tag is ignored; a task is woken when it is answered. Its number, or `None` if
    /// the queue is full: a task is then woken when it has room.
    ///
    /// # Safety
    /// As [`Channel::submit`]: the memory stays valid until [`IoContext::take`] has given the result.
    pub unsafe fn submit(&mut self, device: usize, request: Request) -> Result<Option<u32>, DeviceError> {
        let queue = &mut self.queues[device];
        let task = current_task();
        // Something else may have woken it since it found the queue full. An entry that it left would take
        // the wake-up of another.
        if !queue.waiting.is_empty() {
            queue.waiting.retain(|waiting| Some(*waiting) != task);
        }
        if queue.channel.in_flight() == queue.channel.depth() {
            queue.waiting.extend(task);
            return Ok(None);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.requests.push(Asked { task: None, result: None, bytes: 0 });
            (self.requests.len() - 1) as u32
        });
        // SAFETY: passed on from the caller.
        if let Err(error) = unsafe { queue.channel.submit(Request { tag: u64::from(number), ..request }) } {
            self.free.push(number);
            return Err(error);
        }
        let bytes = if request.op == Op::Discard { 0 } else { request.length_bytes };
        self.counters.note(&request);
        self.counters.begin(bytes);
        self.requests[number as usize] = Asked { task, result: None, bytes };
        self.in_flight += 1;
        Ok(Some(number))
    }

    /// The answer to a request, once.
    pub fn take(&mut self, number: u32) -> Option<Result<(), i32>> {
        let result = self.requests[number as usize].result.take()?;
        self.free.push(number);
        Some(result)
    }

    /// Waits for the answer to a request that an ordinary thread has submitted.
    pub fn wait_for(&mut self, number: u32) -> Result<(), i32> {
        loop {
            if let Some(result) = self.take(number) {
                return result;
            }
            self.wait_for_any();
        }
    }

    /// Waits for a completion on an ordinary thread. A queue that has failed as a whole still has the
    /// requests, and their memory, so the wait is repeated.
    pub fn wait_for_any(&mut self) {
        if self.wait(None, |_| ()).is_err() {
            thread::park_timeout(PAUSE);
        }
    }

    /// Hands submitted requests over, notes answers and wakes the tasks that wait for them. It does not wait.
    /// Returns the number of answers.
    pub fn poll(&mut self, wake: impl Fn(TaskId)) -> Result<usize, DeviceError> {
        let mut answered = self.poll_own(&wake)?;
        for guest in &mut self.guests {
            answered += guest.poll_own(&wake)?;
        }
        self.see_off();
        self.ring_timers(&wake);
        Ok(answered)
    }

    fn poll_own(&mut self, wake: &impl Fn(TaskId)) -> Result<usize, DeviceError> {
        let mut answered = 0;
        for index in 0..self.queues.len() {
            let channel = &mut self.queues[index].channel;
            if channel.in_flight() > 0 {
                channel.poll(&mut self.completions)?;
                answered += self.settle(index, wake);
            }
        }
        Ok(answered)
    }

    /// As [`IoContext::poll`], but waits for an answer, or until `until`. It returns at once if nothing is in
    /// flight and `until` is `None`. May return for no reason.
    pub fn wait(&mut self, until: Option<Nanos>, wake: impl Fn(TaskId)) -> Result<usize, DeviceError> {
        let busy = |queue: &Queue| queue.channel.in_flight() > 0;
        let main = self.queues.iter().position(busy).unwrap_or(0);
        let several = self.queues.iter().filter(|queue| busy(queue)).count() > 1
            || self.guests.iter().any(|guest| guest.in_flight > 0);
        let channel = &mut self.queues[main].channel;
        let slice = several.then(|| channel.now() + SLICE);
        let until = slice.into_iter().chain(until).min();
        channel.wait(1, until, &mut self.completions)?;
        let others = self.queues.len() > 1 || !self.guests.is_empty();
        let now = others.then(|| self.queues[main].channel.now());
        let mut answered = self.settle(main, &wake);
        answered += self.follow(Some(main), now, &wake)?;
        for guest in &mut self.guests {
            answered += guest.follow(None, now, &wake)?;
        }
        self.see_off();
        self.ring_timers(&wake);
        Ok(answered)
    }

    /// Notes the present answers of all queues but `main`.
    fn follow(
        &mut self,
        main: Option<usize>,
        now: Option<Nanos>,
        wake: &impl Fn(TaskId),
    ) -> Result<usize, DeviceError> {
        let mut answered = 0;
        for index in (0..self.queues.len()).filter(|index| Some(*index) != main) {
            let Queue { channel, simulated, .. } = &mut self.queues[index];
            if *simulated {
                // Its time passes along with the other's.
                channel.wait(1, now, &mut self.completions)?;
            } else if channel.in_flight() > 0 {
                channel.poll(&mut self.completions)?;
            }
            answered += self.settle(index, wake);
        }
        Ok(answered)
    }

    /// Notes the answers that a queue has given.
    fn settle(&mut self, index: usize, wake: &impl Fn(TaskId)) -> usize {
        let count = self.completions.len();
        for completion in self.completions.drain(..) {
            let asked = &mut self.requests[completion.tag as usize];
            asked.result = Some(completion.result);
            self.counters.end(asked.bytes);
            if let Some(task) = asked.task {
                wake(task);
            }
        }
        let waiting = &mut self.queues[index].waiting;
        waiting.drain(..count.min(waiting.len())).for_each(wake);
        self.in_flight -= count;
        count
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_device::MemoryDevice;
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::super::broken::{Broken, Part};
    use super::*;

    const BYTES: u32 = 4096;

    fn simulated() -> Arc<dyn Device> {
        Arc::new(SimDevice::new(&SimConfig::named("905p").unwrap(), "sim:905p", 1).unwrap())
    }

    fn in_memory() -> Arc<dyn Device> {
        Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap())
    }

    /// Has an I/O context to `first` read from both devices, which may be one I/O context or an I/O context
    /// and a guest, while the queue of the second fails once; both are read then.
    fn reads_both(first: &Devices, second: &Devices, broken: &Broken, part: Part) {
        let mut context = IoContext::open(first, 8).unwrap();
        let mut memory = vec![7; 2 * BYTES as usize];
        let read = |memory| Request { op: Op::Read, offset_bytes: 0, length_bytes: BYTES, memory, tag: 0 };
        let last = second.all().len() - 1;
        // SAFETY: the memory lives until both are answered, and is not used otherwise.
        let numbers = unsafe {
            let one = context.submit(0, read(memory.as_mut_ptr())).unwrap().unwrap();
            let rest = memory.as_mut_ptr().add(BYTES as usize);
            (one, context.to(second).unwrap().submit(last, read(rest)).unwrap().unwrap())
        };
        broken.fail(part, 1);
        let failed = (0..100).find_map(|_| context.wait(None, |_| ()).err());
        assert!(failed.is_some(), "{part:?} was to fail");
        let mut answers = [None, None];
        while answers.iter().any(Option::is_none) {
            context.wait(None, |_| ()).unwrap();
            answers[0] = answers[0].or(context.take(numbers.0));
            let second = context.opened(second).unwrap();
            answers[1] = answers[1].or_else(|| second.take(numbers.1));
        }
        assert_eq!((answers, context.in_flight()), ([Some(Ok(())); 2], 0));
        assert!(memory.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn when_one_queue_fails_as_a_whole_no_answer_is_lost() {
        for (device, part) in [(simulated as fn() -> _, Part::Wait), (in_memory, Part::Poll)] {
            let broken = Broken::new(device());
            let both = Devices::new(device(), Some(Arc::clone(&broken) as _));
            reads_both(&both, &both, &broken, part);
            let broken = Broken::new(device());
            let (own, guest) = (Devices::new(device(), None), Devices::new(Arc::clone(&broken) as _, None));
            reads_both(&own, &guest, &broken, part);
        }
    }
}
