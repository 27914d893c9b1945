//! Kinds of faults, and the outcomes that each allows.

use std::ops::Range;

use flashgrain_device::Nanos;
use flashgrain_ssdsim::fault::{Discarded, Fault, FaultKind, FlushLoss, Operation, Repeat, Trigger};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::media::random_cut;

macro_rules! kinds {
    ($($(#[doc = $what:literal])+ $kind:ident: $name:literal;)*) => {
        /// See the module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $what])+ $kind,)*
        }

        impl Kind {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// The power fails at a command: writes that were not flushed may be lost, reordered, torn or shorn.
    PowerCut: "power-cut";
    /// The process is killed; the drive goes on.
    Kill: "kill";
    /// A write fails, perhaps all do from then on.
    WriteError: "write-error";
    /// A write fails after a part of it was written.
    ShortWrite: "short-write";
    /// A write finds no space.
    NoSpace: "no-space";
    /// A flush fails, and the next would have made everything durable.
    FlushKept: "flush-error-data-kept";
    /// A flush fails, and the writes that it should have made durable are gone.
    FlushDropped: "flush-error-data-dropped";
    /// A flush fails, and the writes that it should have made durable are read as if all were well, but never
    /// become durable.
    FlushUndurable: "flush-error-data-undurable";
    /// A read fails, once or now and then.
    ReadErrorTransient: "read-error-transient";
    /// All reads of four places fail.
    ReadErrorSticky: "read-error-sticky";
    /// A read fails after a part of it.
    ShortRead: "short-read";
    /// The drive does not answer any more.
    DeviceGone: "device-gone";
    /// A flush is acknowledged and not done, and the power fails later.
    IgnoredFlush: "ignored-flush";
    /// A write is acknowledged and not done.
    LostWrite: "lost-write";
    /// A write goes to another place.
    MisdirectedWrite: "misdirected-write";
    /// A read returns another place's bytes.
    MisdirectedRead: "misdirected-read";
    /// Reads return older content.
    StaleRead: "stale-read";
    /// A bit on the drive changes.
    FlipAtRest: "flip-at-rest";
    /// A bit changes on the way to the drive.
    FlipInWrite: "flip-in-write";
    /// A bit changes on the way from the drive.
    FlipInRead: "flip-in-read";
    /// A discard leaves garbage, or the old content.
    AfterDiscard: "after-discard";
    /// Commands take very long.
    Stall: "stall";
    /// Two or three of all these.
    Mixed: "mixed";
}

/// Outcomes that a kind of fault allows in addition to the right answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Bytes on the drive are wrong: opening and reading may find them corrupt, even later.
    pub damage: bool,
    /// The last commits before a crash may be missing although they were acknowledged: so a drive that lies
    /// about flushes behaves in a power cut.
    pub loss: bool,
}

impl Kind {
    /// Outcomes that this kind allows.
    pub fn allowed(self) -> Allowed {
        match self {
            Self::LostWrite | Self::MisdirectedWrite | Self::FlipAtRest | Self::FlipInWrite => {
                Allowed { damage: true, loss: false }
            }
            Self::IgnoredFlush | Self::Mixed => Allowed { damage: true, loss: true },
            _ => Allowed::default(),
        }
    }

    /// Whether the power fails at the end of the life that suffers from it, when it had no end of its own.
    pub fn ends_with_power_cut(self, random: &mut Pcg64) -> bool {
        match self {
            Self::Kill => false,
            Self::IgnoredFlush => true,
            _ => random.random_bool(0.5),
        }
    }

    /// Faults of this kind for a device of `bytes` bytes, somewhere in the next `commands` commands.
    pub fn draw(self, bytes: u64, commands: u64, random: &mut Pcg64) -> Vec<Fault> {
        if self == Self::Mixed {
            let count = random.random_range(2..4);
            let others = Self::ALL.len() - 1;
            return (0..count)
                .flat_map(|_| Self::ALL[random.random_range(0..others)].draw(bytes, commands, random))
                .collect();
        }
        let nth = Trigger::Nth(random.random_range(1..=commands));
        let repeat = [Repeat::Once, Repeat::Times(random.random_range(2..5)), Repeat::Sticky]
            [random.random_range(0..3)];
        let done_bytes = 512 * random.random_range(0..16);
        let by_bytes = 512 * random.random_range(1..bytes as i64 / 512);
        let flush = |data| Fault::new(FaultKind::FlushError { data }).at(near(nth)).repeat(repeat);
        let of = |kind| Fault::new(kind).at(nth);
        let fault = match self {
            Self::Kill | Self::Mixed => return Vec::new(),
            Self::PowerCut => of(FaultKind::PowerCut(random_cut(random))),
            Self::WriteError => of(FaultKind::WriteError { done_bytes: 0 }).repeat(repeat),
            Self::ShortWrite => of(FaultKind::WriteError { done_bytes }).repeat(repeat),
            Self::NoSpace => of(FaultKind::NoSpace).repeat(repeat),
            Self::FlushKept => flush(FlushLoss::Kept),
            Self::FlushDropped => flush(FlushLoss::Dropped),
            Self::FlushUndurable => flush(FlushLoss::Undurable),
            Self::ReadErrorTransient => match random.random_bool(0.5) {
                true => of(FaultKind::ReadError { done_bytes: 0 }),
                false => Fault::new(FaultKind::ReadError { done_bytes: 0 })
                    .at(Trigger::Probability(0.02))
                    .repeat(Repeat::Sticky),
            },
            Self::ReadErrorSticky => {
                // Most of a drive is never read: one place would be met by every tenth life.
                let at = |place| Fault::new(FaultKind::ReadError { done_bytes: 0 }).within(place);
                return (0..4).map(|_| at(place(bytes, random)).repeat(Repeat::Sticky)).collect();
            }
            Self::ShortRead => of(FaultKind::ReadError { done_bytes }),
            Self::DeviceGone => of(FaultKind::DeviceGone),
            Self::IgnoredFlush => Fault::new(FaultKind::IgnoredFlush).at(near(nth)).repeat(repeat),
            Self::LostWrite => of(FaultKind::LostWrite).on(Operation::Write),
            Self::MisdirectedWrite => of(FaultKind::MisdirectedWrite { by_bytes }),
            Self::MisdirectedRead => of(FaultKind::MisdirectedRead { by_bytes }),
            Self::StaleRead => of(FaultKind::StaleRead).repeat(Repeat::Times(random.random_range(1..4))),
            Self::FlipAtRest => Fault::new(FaultKind::FlipAtRest { bit: None })
                .at(Trigger::Event(0))
                .within(place(bytes, random)),
            Self::FlipInWrite => of(FaultKind::FlipInFlight { bit: None }).on(Operation::Write),
            Self::FlipInRead => of(FaultKind::FlipInFlight { bit: None }).on(Operation::Read),
            Self::AfterDiscard => {
                let leaves = [Discarded::Old, Discarded::Garbage][random.random_range(0..2)];
                Fault::new(FaultKind::AfterDiscard { leaves }).repeat(Repeat::Sticky)
            }
            Self::Stall => {
                let span = Nanos(random.random_range(1..2_000_000_000));
                of(FaultKind::Stall { span, whole_drive: random.random_bool(0.5) }).repeat(repeat)
            }
        };
        vec![fault]
    }
}

/// There are fewer flushes than other commands.
fn near(nth: Trigger) -> Trigger {
    match nth {
        Trigger::Nth(nth) => Trigger::Nth(nth.div_ceil(4)),
        other => other,
    }
}

/// A few sectors.
fn place(bytes: u64, random: &mut Pcg64) -> Range<u64> {
    let start = random.random_range(0..bytes / 512) * 512;
    start..(start + 512 * random.random_range(1..9)).min(bytes)
}
