//! Events of system calls and processes, by the layouts that the kernel tells.

use std::collections::HashMap;

use super::shapes::SHAPES;
use crate::tracefs::{Field, field, fields, id};

/// The events of processes.
pub const FORK: &str = "task/task_newtask";
pub const EXEC: &str = "sched/sched_process_exec";
pub const EXIT: &str = "sched/sched_process_exit";

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, which strace prints.
    pub thread: u32,
    pub said: Said,
}

/// The meaning of an event. Calls are places in [`SHAPES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A call begins.
    Enter { call: usize, values: [u64; 6] },
    /// A call ends.
    Exit { call: usize, result: i64 },
    /// A thread or process was made.
    Fork { child: u32, flags: u64 },
    /// A new program begins, in a thread that had the number `before`.
    Exec { before: u32 },
    /// The thread ends.
    End,
    /// Something that a program of ours has seen.
    Seen(Seen),
}

/// What an event points to, as programs of ours see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The path of a call that begins, if it could be read as a whole; and flags that it points to.
    Path { text: Option<Box<str>>, pointed: u64 },
    /// The mode and size of a file that was opened.
    Opened { descriptor: i32, mode: u32, size_bytes: u64 },
    /// A pair of descriptors that was made.
    Pair([i32; 2]),
    /// A control block of `io_submit`.
    Block { opcode: u16, descriptor: i32, length: u64, offset_bytes: u64, vector_bytes: u64 },
    /// A request of io_uring that was submitted.
    Submit { request: u64, opcode: u8, flags: u32, descriptor: i32, offset_bytes: u64, length_bytes: u32 },
    /// A request of io_uring that has ended, in whichever thread.
    Complete { request: u64, result: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    Enter(usize, Vec<Field>),
    Exit(usize, Field),
    Fork { child: Field, flags: Field },
    Exec { before: Field },
    End,
}

/// The layouts of all events.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    by_id: HashMap<u64, Layout>,
    head: Option<(Field, Field)>,
}

impl Layouts {
    /// Adds an event by its name and the kernel's text; `None` if a field is missing.
    pub fn add(&mut self, name: &str, format: &str) -> Option<()> {
        let head = (field(format, "common_type")?, field(format, "common_pid")?);
        let of_call = |name: &str| SHAPES.iter().position(|shape| shape.event == name);
        let layout = if let Some(call) = name.strip_prefix("syscalls/sys_enter_") {
            // Newer kernels append copies of texts, which are as long as they are.
            let values = fields(format).filter(|(name, field)| {
                !name.starts_with("common_") && *name != "__syscall_nr" && field.size == 8
            });
            Layout::Enter(of_call(call)?, values.map(|(_, field)| field).take(6).collect())
        } else if let Some(call) = name.strip_prefix("syscalls/sys_exit_") {
            Layout::Exit(of_call(call)?, field(format, "ret")?)
        } else {
            match name {
                FORK => Layout::Fork { child: field(format, "pid")?, flags: field(format, "clone_flags")? },
                EXEC => Layout::Exec { before: field(format, "old_pid")? },
                EXIT => Layout::End,
                _ => return None,
            }
        };
        self.head = Some(head);
        self.by_id.insert(id(format)?, layout);
        Some(())
    }

    /// The meaning of an event; `None` if it is of another kind.
    pub fn event(&self, event: &[u8]) -> Option<Event> {
        let (id, thread) = self.head?;
        let said = match self.by_id.get(&id.number(event)?)? {
            Layout::Enter(call, fields) => {
                let mut values = [0; 6];
                for (value, field) in values.iter_mut().zip(fields) {
                    *value = field.number(event)?;
                }
                Said::Enter { call: *call, values }
            }
            Layout::Exit(call, result) => Said::Exit { call: *call, result: result.number(event)? as i64 },
            Layout::Fork { child, flags } => {
                Said::Fork { child: child.number(event)? as u32, flags: flags.number(event)? }
            }
            Layout::Exec { before } => Said::Exec { before: before.number(event)? as u32 },
            Layout::End => Said::End,
        };
        Some(Event { thread: thread.number(event)? as u32, said })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const HEAD: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn format(id: u16, fields: &str) -> String {
        format!("name: x\nID: {id}\nformat:\n{HEAD}{fields}")
    }

    /// As Linux 6.18 has them for `pread64`, `openat` and `sched_process_exec`; the last field of `openat` is
    /// one of newer kernels.
    pub fn layouts() -> Layouts {
        let number = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n";
        let value =
            |name: &str, at: usize| format!("\tfield:long {name};\toffset:{at};\tsize:8;\tsigned:0;\n");
        let pread = ["fd", "buf", "count", "pos"].iter().zip((16..).step_by(8));
        let pread: String = pread.map(|(name, at)| value(name, at)).collect();
        let openat = ["dfd", "filename", "flags", "mode"].iter().zip((16..).step_by(8));
        let openat: String = openat.map(|(name, at)| value(name, at)).collect();
        let copied = "\tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n";
        let result = format!("{number}\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n");
        let exec = "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
                    \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
                    \tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n";
        let mut layouts = Layouts::default();
        for (id, name, fields) in [
            (1, "syscalls/sys_enter_pread64", format!("{number}{pread}")),
            (2, "syscalls/sys_exit_pread64", result.clone()),
            (3, "syscalls/sys_enter_openat", format!("{number}{openat}{copied}")),
            (4, "syscalls/sys_exit_openat", result),
            (5, EXEC, exec.to_owned()),
        ] {
            layouts.add(name, &format(id, &fields)).unwrap();
        }
        layouts
    }

    /// The bytes of an event of `id` in a thread, with numbers of eight bytes from byte 16 on.
    pub fn bytes(id: u16, thread: u32, values: &[u64]) -> Vec<u8> {
        let mut bytes = id.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(thread.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
        bytes
    }

    #[test]
    fn events_are_read_by_the_layouts_that_the_kernel_tells() {
        let layouts = layouts();
        let call = SHAPES.iter().position(|shape| shape.event == "pread64").unwrap();
        let enter = layouts.event(&bytes(1, 77, &[3, 0xf00, 4096, 8192])).unwrap();
        let said = Said::Enter { call, values: [3, 0xf00, 4096, 8192, 0, 0] };
        assert_eq!(enter, Event { thread: 77, said });
        let exit = layouts.event(&bytes(2, 77, &[-5_i64 as u64])).unwrap();
        assert_eq!(exit.said, Said::Exit { call, result: -5 });
        let exec = layouts.event(&bytes(5, 78, &[77])).unwrap();
        assert_eq!(exec.said, Said::Exec { before: 77 });
        assert_eq!(layouts.event(&bytes(6, 77, &[1])), None);
    }

    #[test]
    fn no_bytes_panic() {
        let layouts = layouts();
        for id in 0..8 {
            let whole = bytes(id, 77, &[3, u64::MAX, 0, u64::MAX]);
            for length in 0..whole.len() {
                layouts.event(&whole[..length]);
            }
            assert_eq!(layouts.event(&whole[..15]).map(|event| event.said), None);
        }
        for event in [EXEC, "syscalls/sys_enter_read", "syscalls/sys_exit_read", "syscalls/sys_enter_no_call"]
        {
            assert_eq!(Layouts::default().add(event, "ID: 5\nformat:\n"), None);
        }
    }
}
