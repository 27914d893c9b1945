//! A load on simulated drives by several threads whose processors take time, in virtual time.
//!
//! Each thread does one job after the other: its own requests, requests that other threads have sent it, and
//! answers that belong to other threads. A job takes its processor's time first and has its effect then. An
//! idle thread sees a completion at once, as one that polls does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request, Simulation};

use super::memory::Scratch;
use super::request_source::{NextRequest, RequestSource};
use super::{Load, check};
use crate::Error;

/// Time that passes at most while no thread has anything to do.
const NAP: Nanos = Nanos(1_000_000_000);

/// How threads reach the drives of a set: section 3.4 and Figure 10 of the NVMe paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoModel {
    /// Each thread has a channel to all drives.
    AllToAll,
    /// Each drive belongs to a thread, which requests of it alone; no thread wants anything of another drive,
    /// as in benchmarks of drives.
    AssignedAlone,
    /// Each drive belongs to a thread, to which the others send their requests.
    Assigned,
    /// Some threads make the requests of all others, and do nothing else.
    Dedicated {
        /// Their number, less than that of all threads.
        io_threads: u32,
    },
}

/// Threads, and the processor time of their work, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedThreads {
    /// Threads in all, each with a processor of its own.
    pub threads: u32,
    /// How they reach the drives.
    pub model: IoModel,
    /// The user's work for each request.
    pub work_ns: u64,
    /// A request, submission and completion together.
    pub request_ns: u64,
    /// Sending a message to another thread, and the same for receiving one.
    pub message_ns: u64,
}

/// Results of a load by simulated threads, warm-up excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedRun {
    /// Requests done.
    pub requests: u64,
    /// Virtual time that they took.
    pub elapsed: Nanos,
    /// Processor time of all threads in it, without waiting.
    pub busy: Nanos,
}

impl SimulatedRun {
    /// Requests per second.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.elapsed.seconds().max(f64::MIN_POSITIVE)
    }

    /// Share of the time of this number of threads that they worked.
    pub fn use_of(&self, threads: u32) -> f64 {
        self.busy.seconds() / self.elapsed.seconds().max(f64::MIN_POSITIVE) / f64::from(threads)
    }
}

/// The work of a thread on a stream.
#[derive(Clone, Copy)]
enum Job {
    /// The stream's next request, by the thread that the stream belongs to.
    Begin { stream: usize, by_message: bool },
    /// A request that another thread has sent.
    Submit(usize),
    /// An answer for another thread.
    Answer(usize),
}

struct Thread {
    channel: Box<dyn Channel>,
    inbox: VecDeque<Job>,
    running: Option<Job>,
    free_at: Nanos,
}

struct Run<'a> {
    setting: SimulatedThreads,
    simulation: &'a dyn Simulation,
    members: u32,
    unit_bytes: u64,
    scratch: Scratch,
    source: RequestSource<'a>,
    request_bytes: u32,
    threads: Vec<Thread>,
    requests: Vec<NextRequest>,
    completions: Vec<Completion>,
    answered: u64,
    busy: Nanos,
}

/// Runs `load` by these threads on a simulated device, until its number of requests is done.
///
/// # Errors
/// Those of [`super::run`]; [`Error::Argument`] if the device is not simulated, if the load has no number of
/// requests, or if all threads are for I/O.
pub fn run_simulated(
    device: &dyn Device,
    load: &Load,
    setting: SimulatedThreads,
    interrupt: &AtomicBool,
) -> Result<SimulatedRun, Error> {
    check(device, load)?;
    let argument = |problem: &str| Error::Argument(problem.into());
    let simulation =
        device.simulation().ok_or_else(|| argument("only simulated drives have such threads"))?;
    let wanted = load.stop.after_requests.ok_or_else(|| argument("give the number of requests"))?;
    if setting.workers() == 0 {
        return Err(argument("at least one thread has to make requests"));
    }
    let mut run = Run::new(device, simulation, load, setting)?;
    let warm_up = (wanted as f64 * load.warmup_share) as u64;
    run.until(warm_up, interrupt)?;
    let (from, busy, before) = (simulation.now(), run.busy, run.answered);
    run.until(wanted.max(before + 1), interrupt)?;
    Ok(SimulatedRun {
        requests: run.answered - before,
        elapsed: simulation.now().since(from),
        busy: run.busy.since(busy),
    })
}

impl SimulatedThreads {
    /// Threads to which streams belong.
    fn workers(&self) -> u32 {
        match self.model {
            IoModel::Dedicated { io_threads } => self.threads.saturating_sub(io_threads.max(1)),
            _ => self.threads,
        }
    }

    /// The thread that makes a worker's requests to a drive.
    fn maker(&self, worker: u32, drive: u32, drives: u32) -> u32 {
        match self.model {
            IoModel::AllToAll => worker,
            IoModel::Dedicated { io_threads } => self.workers() + drive % io_threads.max(1),
            IoModel::AssignedAlone | IoModel::Assigned if self.threads <= drives => drive % self.threads,
            IoModel::AssignedAlone | IoModel::Assigned => {
                // With more threads than drives, each as many threads as there are drives have all of them.
                let of_its_group = worker / drives * drives + drive;
                if of_its_group < self.threads { of_its_group } else { drive }
            }
        }
    }
}

impl<'a> Run<'a> {
    fn new(
        device: &dyn Device,
        simulation: &'a dyn Simulation,
        load: &'a Load,
        setting: SimulatedThreads,
    ) -> Result<Self, Error> {
        let geometry = device.geometry();
        let streams = load.workload.concurrency as u32;
        let writes = load.workload.read_share < 1.0;
        let scratch = Scratch::new(load.workload.request_bytes as u64, streams, writes, load.seed)?;
        let options = ChannelOptions { depth: streams, arena: Some(scratch.arena()), polled: false };
        let thread = |_| {
            let channel = device.open_channel(&options)?;
            Ok(Thread { channel, inbox: VecDeque::new(), running: None, free_at: simulation.now() })
        };
        let mut run = Self {
            setting,
            simulation,
            members: geometry.members.max(1),
            unit_bytes: geometry.stripe_unit_bytes.unwrap_or(u64::MAX),
            scratch,
            source: RequestSource::new(load, u64::from(geometry.offset_align_bytes), 0, streams, streams),
            request_bytes: load.workload.request_bytes as u32,
            threads: (0..setting.threads).map(thread).collect::<Result<_, Error>>()?,
            requests: Vec::new(),
            completions: Vec::with_capacity(streams as usize),
            answered: 0,
            busy: Nanos(0),
        };
        for stream in 0..streams as usize {
            let worker = run.worker_of(stream);
            run.requests.push(NextRequest { offset_bytes: 0, is_read: true });
            run.threads[worker as usize].inbox.push_back(Job::Begin { stream, by_message: false });
        }
        Ok(run)
    }

    /// The thread that a stream belongs to.
    fn worker_of(&self, stream: usize) -> u32 {
        (stream as u64 % u64::from(self.setting.workers())) as u32
    }

    /// The thread that makes the stream's present request.
    fn maker_of(&self, stream: usize) -> u32 {
        let offset = self.requests[stream].offset_bytes;
        let drive = (offset / self.unit_bytes % u64::from(self.members)) as u32;
        self.setting.maker(self.worker_of(stream), drive, self.members)
    }

    /// Lets time pass until this number of requests is answered in all.
    fn until(&mut self, answered: u64, interrupt: &AtomicBool) -> Result<(), Error> {
        while self.answered < answered {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let now = self.simulation.now();
            // Messages of one thread may wake another one at the same time.
            let mut goes_on = true;
            while goes_on {
                goes_on = false;
                for index in 0..self.threads.len() {
                    goes_on |= self.step(index, now)?;
                }
            }
            let busy = self.threads.iter().filter(|thread| thread.running.is_some());
            let next = busy.map(|thread| thread.free_at).min();
            self.simulation.pass(next.unwrap_or(now + NAP));
        }
        Ok(())
    }

    /// Has a thread whose processor is free end its job and begin the next. Whether it did something.
    fn step(&mut self, index: usize, now: Nanos) -> Result<bool, Error> {
        let mut did = false;
        while self.threads[index].free_at <= now {
            if let Some(job) = self.threads[index].running.take() {
                self.end(index, job)?;
                did = true;
            }
            self.reap(index)?;
            let Some(job) = self.threads[index].inbox.pop_front() else { break };
            let cost = Nanos(self.begin(index, job));
            let thread = &mut self.threads[index];
            (thread.running, thread.free_at) = (Some(job), now + cost);
            self.busy += cost;
            did = true;
        }
        Ok(did)
    }

    /// Takes the drives' answers.
    fn reap(&mut self, index: usize) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        if thread.channel.in_flight() == 0 {
            return Ok(());
        }
        thread.channel.poll(&mut self.completions)?;
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            let stream = completion.tag as usize;
            let NextRequest { offset_bytes, is_read } = self.requests[stream];
            if let Err(errno) = completion.result {
                return Err(Error::request(if is_read { Op::Read } else { Op::Write }, offset_bytes, errno));
            }
            self.answered += 1;
            let is_own = self.worker_of(stream) as usize == index;
            let job = if is_own { Job::Begin { stream, by_message: false } } else { Job::Answer(stream) };
            self.threads[index].inbox.push_back(job);
        }
        self.completions = completions;
        Ok(())
    }

    /// Draws the request of a job that begins; the job's processor time in nanoseconds.
    fn begin(&mut self, index: usize, job: Job) -> u64 {
        let SimulatedThreads { work_ns, request_ns, message_ns, model, .. } = self.setting;
        match job {
            Job::Begin { stream, by_message } => {
                self.requests[stream] = self.source.next(stream);
                while model == IoModel::AssignedAlone && self.maker_of(stream) as usize != index {
                    self.requests[stream] = self.source.next(stream);
                }
                let makes_it = self.maker_of(stream) as usize == index;
                let received = if by_message { message_ns } else { 0 };
                received + work_ns + if makes_it { request_ns } else { message_ns }
            }
            Job::Submit(_) => message_ns + request_ns,
            Job::Answer(_) => message_ns,
        }
    }

    /// The effect of a job.
    fn end(&mut self, index: usize, job: Job) -> Result<(), Error> {
        match job {
            Job::Begin { stream, .. } => match self.maker_of(stream) as usize {
                maker if maker == index => self.submit(index, stream),
                maker => {
                    self.threads[maker].inbox.push_back(Job::Submit(stream));
                    Ok(())
                }
            },
            Job::Submit(stream) => self.submit(index, stream),
            Job::Answer(stream) => {
                let worker = self.worker_of(stream) as usize;
                self.threads[worker].inbox.push_back(Job::Begin { stream, by_message: true });
                Ok(())
            }
        }
    }

    fn submit(&mut self, index: usize, stream: usize) -> Result<(), Error> {
        let NextRequest { offset_bytes, is_read } = self.requests[stream];
        let request = Request {
            op: if is_read { Op::Read } else { Op::Write },
            offset_bytes,
            length_bytes: self.request_bytes,
            memory: self.scratch.of(stream),
            tag: stream as u64,
        };
        // SAFETY: as for the threads of `worker`: a slot of the scratch memory is as long as a request, the
        // channel keeps the memory until its requests have ended, and only the device accesses it.
        Ok(unsafe { self.threads[index].channel.submit(request) }?)
    }
}
