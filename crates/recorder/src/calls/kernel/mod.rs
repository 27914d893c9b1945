//! System calls of a program, by the kernel's own trace events: the program never stops.
//!
//! 1. A private instance of tracefs has the events of the recorded calls, of the threads of the program and
//!    of those that they make ([`event`]).
//! 2. Programs in the kernel see what calls point to ([`programs`]).
//! 3. Both are put in order by their times, and the calls of each thread become lines of strace's text
//!    ([`threads`]), which is read as any other ([`flashgrain_trace::Reader::of_strace`]): descriptors,
//!    offsets and losses are followed at one place.
//! 4. What the program had open before it was recorded is described first ([`snapshot`]). If events were
//!    lost, nothing is known any more: what was not taken is counted, and the program is described again.

mod event;
mod programs;
mod shapes;
mod snapshot;
mod threads;

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flashgrain_device::{Nanos, clock};
use flashgrain_trace::{Loss, Losses};

use crate::Error;
use crate::program::Program;
use crate::runner::Runner;
use crate::tracefs::{Instance, Rings};
use event::{EXEC, EXIT, Event, FORK, Layouts, Said, Seen};
use programs::Programs;
use shapes::SHAPES;
use threads::Threads;

/// How long the recorder sleeps between two rounds of reading: each round takes a processor from the program
/// where there is none to spare. Buffers last for a million calls a second.
const NAP: Nanos = Nanos(50_000_000);

/// Rounds of looking for threads of a process that runs already: one that makes threads all the time would
/// never be without a new one.
const ROUNDS_MAX: u32 = 16;

/// How late an event may come, as where a virtual processor stands still in the middle of one.
const SKEW: Nanos = Nanos(100_000_000);

/// Which numbers of threads the events are of.
const FOLLOWED: &str = "set_event_pid";

/// `PROC_PID_INIT_INO` of linux/proc_ns.h: the name of the namespace whose numbers the kernel's events have.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Events of the calls of a program, prepared.
pub struct Followed {
    // Before the instance, which goes only when nothing of it is open.
    rings: Rings,
    instance: Instance,
    layouts: Layouts,
    programs: Programs,
    threads: Threads,
}

/// Lines of strace's text, as they come.
pub struct Lines<'a> {
    followed: Followed,
    is_over: &'a AtomicBool,
    held: Vec<(u64, Event)>,
    /// Events of earlier times belong to what is described.
    from_ns: u64,
    /// Records of programs that were lost so far.
    lost: u64,
    taken: usize,
    is_last: bool,
    losses: Arc<Mutex<Losses>>,
}

impl Followed {
    /// Prepares everything. `offset_ns` is added to times.
    ///
    /// # Errors
    /// Why the kernel does not tell, and a remedy.
    pub fn new(offset_ns: i64) -> Result<Self, String> {
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if namespace.as_os_str() != FIRST_NAMESPACE {
            return Err("processes have other numbers here than in the kernel (a PID namespace)".into());
        }
        let instance = Instance::new("calls")?;
        let programs = Programs::begin(&instance)?;
        let mut layouts = Layouts::default();
        let calls = SHAPES.iter().filter(|shape| shape.name != "io_uring_enter" || !programs.sees_rings);
        let calls = calls
            .flat_map(|shape| ["enter", "exit"].map(|end| format!("syscalls/sys_{end}_{}", shape.event)));
        let others = [FORK, EXEC, EXIT].map(str::to_owned);
        let needed = ["syscalls/sys_enter_read", FORK, EXEC, EXIT];
        let mut events = Vec::new();
        for event in calls.chain(others) {
            if !instance.has(&event) && !needed.contains(&event.as_str()) {
                continue;
            }
            let format = instance.format(&event)?;
            layouts
                .add(&event, &format)
                .ok_or_else(|| format!("the event {event} has other fields than those that are known"))?;
            events.push(event);
        }
        // Nothing is recorded before it is said of which threads: not even the recorder's own calls.
        instance.set(FOLLOWED, &own_thread().to_string())?;
        instance.set("options/event-fork", "1")?;
        for event in events {
            instance.enable(&event, None)?;
        }
        let rings = Rings::of(&instance)?;
        let threads = Threads::new(offset_ns);
        Ok(Self { instance, rings, layouts, programs, threads })
    }

    /// Starts the program, or finds it.
    pub fn begin(mut self, program: &Program) -> Result<(Runner, Self), Error> {
        let set = |instance: &Instance, threads: &[u32]| {
            let numbers: Vec<String> = threads.iter().map(u32::to_string).collect();
            instance.set(FOLLOWED, &numbers.join(" ")).map_err(|problem| Error::Calls { problem })
        };
        match program {
            Program::Start(_) => {
                // A thread of its own makes the child, and ends: its children are followed.
                let (instance, programs) = (&self.instance, &self.programs);
                let started = std::thread::scope(|scope| {
                    let starter = scope.spawn(|| {
                        let number = own_thread();
                        set(instance, &[number])?;
                        programs.follow(number).map_err(Error::os("tell BPF programs of a thread"))?;
                        Ok::<_, Error>((number, Runner::begin(program)?))
                    });
                    starter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                let (starter, runner) = started?;
                snapshot::describe(std::process::id(), starter, &mut self.threads);
                self.threads.starter = Some(starter);
                let Runner::Program(child) = runner else { return Ok((runner, self)) };
                let followed = self.instance.path(FOLLOWED);
                Ok((Runner::Followed(child, followed), self))
            }
            Program::Attach(process) => {
                let mut known = HashSet::new();
                // Threads that are made meanwhile are those of threads that are followed, or seen again.
                // Only a thread that is not followed yet can hide one from a round: few rounds see all.
                for _ in 0..ROUNDS_MAX {
                    let threads = snapshot::threads_of(*process);
                    set(&self.instance, &threads)?;
                    for thread in &threads {
                        self.programs.follow(*thread).map_err(Error::os("tell BPF programs of a thread"))?;
                    }
                    let before = known.len();
                    known.extend(threads);
                    if known.len() == before {
                        break;
                    }
                }
                known.into_iter().for_each(|thread| self.threads.follow(thread));
                Ok((Runner::begin(program)?, self))
            }
        }
    }

    /// The lines, until `is_over`.
    pub fn lines<'a>(self, program: &Program, is_over: &'a AtomicBool) -> Lines<'a> {
        let mut lines = Lines {
            followed: self,
            is_over,
            held: Vec::new(),
            from_ns: 0,
            lost: 0,
            taken: 0,
            is_last: false,
            losses: Arc::default(),
        };
        if let Program::Attach(process) = program {
            lines.describe(&[*process]);
        }
        lines
    }
}

/// The number of the calling thread.
fn own_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_else(|_| PathBuf::new());
    link.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
}

impl Lines<'_> {
    /// What is missing; complete after the last line.
    pub fn losses(&self) -> Arc<Mutex<Losses>> {
        Arc::clone(&self.losses)
    }

    /// Describes processes as they are now, instead of all that came before.
    fn describe(&mut self, processes: &[u32]) {
        let threads = &mut self.followed.threads;
        self.from_ns = clock::now().0;
        for process in processes {
            snapshot::describe(*process, *process, threads);
        }
    }

    /// Makes lines of all that is there by now.
    fn round(&mut self) -> Result<(), Error> {
        let Followed { instance, rings, layouts, programs, threads } = &mut self.followed;
        self.is_last = self.is_over.load(Ordering::Relaxed);
        if self.is_last {
            instance.stop().map_err(|problem| Error::Calls { problem })?;
        }
        let now = clock::now();
        let round_ns = if self.is_last { u64::MAX } else { now.0 };
        let held = &mut self.held;
        let mut lost = rings.read(round_ns, |time_ns, event| {
            held.extend(layouts.event(event).map(|event| (time_ns, event)))
        })?;
        let seen = programs.take(|time_ns, event| match &event.said {
            Said::Seen(seen @ Seen::Opened { .. }) => threads.note_opened(time_ns, event.thread, seen),
            _ => held.push((time_ns, event)),
        });
        seen.map_err(Error::os("read what BPF programs have seen"))?;
        let lost_records = programs.lost();
        lost += lost_records - self.lost;
        self.lost = lost_records;
        threads.losses.add(Loss::Overrun, lost);
        if lost > 0 {
            self.start_again();
        }
        let threads = &mut self.followed.threads;
        self.held.sort_by_key(|(time_ns, _)| *time_ns);
        let until_ns = if self.is_last { u64::MAX } else { now.0.saturating_sub(SKEW.0) };
        let old = self.held.partition_point(|(time_ns, _)| *time_ns < until_ns);
        for (time_ns, event) in self.held.drain(..old) {
            if time_ns >= self.from_ns || matches!(event.said, Said::Fork { .. } | Said::End) {
                threads.take(time_ns, event);
            }
        }
        threads.forget_opened(now.0);
        if self.is_last {
            threads.finish();
            self.losses.lock().unwrap_or_else(PoisonError::into_inner).add_all(&threads.losses);
        }
        Ok(())
    }

    /// After a loss: forgets what is open, counts what was held, and describes the program as it is now.
    fn start_again(&mut self) {
        let threads = &mut self.followed.threads;
        let moves = |(_, event): &&(u64, Event)| matches!(event.said, Said::Exit { .. });
        threads.losses.add(Loss::Overrun, self.held.iter().filter(moves).count() as u64);
        threads.forget();
        let now = clock::now().0;
        // The kernel's list has those whose making was lost, too.
        let list = std::fs::read_to_string(self.followed.instance.path(FOLLOWED)).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).for_each(|thread| threads.follow(thread));
        let followed = threads.followed();
        for thread in &followed {
            threads.line(*thread, now, format_args!("close_range(0, {}, 0) = 0", u32::MAX));
        }
        let processes: HashSet<u32> = followed.iter().filter_map(|thread| process_of(*thread)).collect();
        self.describe(&processes.into_iter().collect::<Vec<_>>());
    }
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.followed.threads.text.as_bytes().get(self.taken..).unwrap_or_default();
            if !rest.is_empty() {
                let length = rest.len().min(buffer.len());
                for (to, from) in buffer.iter_mut().zip(rest) {
                    *to = *from;
                }
                self.taken += length;
                return Ok(length);
            }
            self.followed.threads.text.clear();
            self.taken = 0;
            if self.is_last {
                return Ok(0);
            }
            let now = clock::now();
            self.round().map_err(io::Error::other)?;
            if self.followed.threads.text.is_empty() && !self.is_last {
                clock::sleep_until(now + NAP);
            }
        }
    }
}
