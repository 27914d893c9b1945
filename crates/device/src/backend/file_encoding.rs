//! Parts as reads and writes of files and block devices.

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};

use super::files::Files;
use super::uring::{ARENA_INDEX, Encoding};
use super::{DISCARD_MODE, Part, PartOp, discard, flush};

/// See the module.
pub(crate) struct FileEncoding {
    files: Files,
}

impl FileEncoding {
    pub fn new(files: Files) -> Self {
        Self { files }
    }
}

impl Encoding for FileEncoding {
    type Submission = squeue::Entry;
    type Completion = cqueue::Entry;

    fn entry(&mut self, _token: u32, part: &Part, registered: bool) -> squeue::Entry {
        let file = Fixed(part.member);
        let (memory, length, offset) = (part.memory, part.length_bytes, part.offset_bytes);
        let sync = if part.op == PartOp::WriteDsync { libc::RWF_DSYNC } else { 0 };
        match part.op {
            PartOp::Read if registered => {
                opcode::ReadFixed::new(file, memory, length, ARENA_INDEX).offset(offset).build()
            }
            PartOp::Read => opcode::Read::new(file, memory, length).offset(offset).build(),
            PartOp::Write | PartOp::WriteDsync if registered => {
                opcode::WriteFixed::new(file, memory, length, ARENA_INDEX)
                    .offset(offset)
                    .rw_flags(sync)
                    .build()
            }
            PartOp::Write | PartOp::WriteDsync => {
                opcode::Write::new(file, memory, length).offset(offset).rw_flags(sync).build()
            }
            PartOp::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            PartOp::Discard => {
                opcode::Fallocate::new(file, u64::from(length)).offset(offset).mode(DISCARD_MODE).build()
            }
        }
    }

    fn marked(entry: squeue::Entry, flags: squeue::Flags, user_data: u64) -> squeue::Entry {
        entry.flags(flags).user_data(user_data)
    }

    fn run(&mut self, _token: u32, part: &Part) -> Option<i32> {
        let fd = self.files.fd(part.member);
        match part.op {
            PartOp::Flush => Some(flush(fd)),
            PartOp::Discard => Some(discard(fd, part)),
            PartOp::Read | PartOp::Write | PartOp::WriteDsync => None,
        }
    }

    fn result(&self, _token: u32, result: i32) -> i32 {
        result
    }
}
