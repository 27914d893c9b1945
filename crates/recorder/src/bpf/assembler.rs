//! Instructions of BPF (RFC 9669).

/// A register. `R10` is the end of the stack; calls keep `R6` to `R9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// How many bytes a load takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Four,
    One,
    Eight,
}

/// Functions of the kernel that programs call, by their numbers (linux/bpf.h).
pub mod helper {
    pub const MAP_LOOKUP: i32 = 1;
    pub const MAP_UPDATE: i32 = 2;
    pub const MAP_DELETE: i32 = 3;
    pub const KTIME_GET_NS: i32 = 5;
    pub const GET_CURRENT_PID_TGID: i32 = 14;
    pub const GET_CURRENT_TASK: i32 = 35;
    pub const MAP_PUSH: i32 = 87;
    pub const PROBE_READ_USER: i32 = 112;
    pub const PROBE_READ_KERNEL: i32 = 113;
    pub const PROBE_READ_USER_STRING: i32 = 114;
}

/// The source register of an instruction that loads a map.
const PSEUDO_MAP: u8 = 1;

/// Makes a program. Its end returns 0, which keeps the event out of other buffers.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Jumps to the end.
    to_end: Vec<usize>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers = to as u8 | from << 4;
        let [low, high] = offset.to_ne_bytes();
        let [a, b, c, d] = immediate.to_ne_bytes();
        self.code.push(u64::from_ne_bytes([code, registers, low, high, a, b, c, d]));
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from as u8, 0, 0);
    }

    /// `to = number`.
    pub fn set(&mut self, to: Register, number: i32) {
        self.push(0xb7, to, 0, 0, number);
    }

    /// `to += number`.
    pub fn add(&mut self, to: Register, number: i32) {
        self.push(0x07, to, 0, 0, number);
    }

    /// `to += from`.
    pub fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to, from as u8, 0, 0);
    }

    /// `to <<= bits`.
    pub fn shift_left(&mut self, to: Register, bits: i32) {
        self.push(0x67, to, 0, 0, bits);
    }

    /// `to >>= bits`, of a number without a sign.
    pub fn shift_right(&mut self, to: Register, bits: i32) {
        self.push(0x77, to, 0, 0, bits);
    }

    /// `to = *(from + offset)`.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        let code = match width {
            Width::One => 0x71,
            Width::Four => 0x61,
            Width::Eight => 0x79,
        };
        self.push(code, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`, of eight bytes.
    pub fn store(&mut self, to: Register, offset: i16, from: Register) {
        self.push(0x7b, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`, of four bytes.
    pub fn store_four(&mut self, to: Register, offset: i16, from: Register) {
        self.push(0x63, to, from as u8, offset, 0);
    }

    /// `*(to + offset) = number`, of eight bytes.
    pub fn store_number(&mut self, to: Register, offset: i16, number: i32) {
        self.push(0x7a, to, 0, offset, number);
    }

    /// `*to += from` in one step, of eight bytes.
    pub fn add_atomically(&mut self, to: Register, from: Register) {
        self.push(0xdb, to, from as u8, 0, 0);
    }

    /// `to = map`, by its descriptor.
    pub fn load_map(&mut self, to: Register, map: i32) {
        self.push(0x18, to, PSEUDO_MAP, 0, map);
        self.push(0, Register::R0, 0, 0, 0);
    }

    /// Calls a function of [`helper`] with `R1` and so on; `R0` is its result.
    pub fn call(&mut self, function: i32) {
        self.push(0x85, Register::R0, 0, 0, function);
    }

    /// Goes to the end if a register is 0.
    pub fn end_if_zero(&mut self, register: Register) {
        self.to_end.push(self.code.len());
        self.push(0x15, register, 0, 0, 0);
    }

    /// Goes to the end if a register is not 0.
    pub fn end_unless_zero(&mut self, register: Register) {
        self.to_end.push(self.code.len());
        self.push(0x55, register, 0, 0, 0);
    }

    /// Goes to the end if a register, as a number with a sign, is at most `number`.
    pub fn end_if_at_most(&mut self, register: Register, number: i32) {
        self.to_end.push(self.code.len());
        self.push(0xd5, register, 0, 0, number);
    }

    /// Goes on after the instructions of `work` if a register is 0.
    pub fn unless_zero(&mut self, register: Register, work: impl FnOnce(&mut Self)) {
        let at = self.code.len();
        self.push(0x15, register, 0, 0, 0);
        work(self);
        self.land(at);
    }

    /// Makes the jump at `at` one to the next instruction.
    fn land(&mut self, at: usize) {
        let distance = self.code.len() - at - 1;
        if let Some(jump) = self.code.get_mut(at) {
            let mut bytes = jump.to_ne_bytes();
            let [low, high] = i16::try_from(distance).unwrap_or(i16::MAX).to_ne_bytes();
            (bytes[2], bytes[3]) = (low, high);
            *jump = u64::from_ne_bytes(bytes);
        }
    }

    /// The whole program.
    pub fn finish(mut self) -> Vec<u64> {
        for at in std::mem::take(&mut self.to_end) {
            self.land(at);
        }
        self.set(Register::R0, 0);
        self.push(0x95, Register::R0, 0, 0, 0);
        self.code
    }
}
