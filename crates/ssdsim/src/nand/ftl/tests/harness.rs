//! A translation layer, an array, and their surroundings.

use flashgrain_device::Op;

use crate::config::{
    About, CollectConfig, Interleave, LayoutConfig, MappingCache, MappingConfig, MediumConfig, NandConfig,
    PlacementRule, SimConfig, StartState, WriteCacheConfig,
};
use crate::drive::Stages;
use crate::drive::testing::{Surroundings, host};
use crate::engine::{Event, Slab};
use crate::nand::FIRST_FTL_KIND;
use crate::nand::flash::Flash;
use crate::nand::ftl::Ftl;
use crate::nand::ftl::blocks::BlockState;
use crate::nand::ftl::geometry::FlashAddress;

/// 4 dies; rows of two pages of two units; blocks of 8 rows. A byte takes a nanosecond, a read 50 µs, a
/// program 500 µs.
pub(in super::super) fn nand() -> NandConfig {
    NandConfig {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        pages_per_block: 8,
        page_bytes: 8192,
        over_provisioning: 0.5,
        read_us: vec![50.0],
        program_us: vec![500.0],
        erase_us: 3000.0,
        jitter: 0.0,
        channel_mega_transfers_per_s: 1000.0,
        channel_command_ns: 0,
        interleave: Interleave::Dies,
        multi_plane: true,
        reads_first: true,
        suspend_program: false,
        suspend_erase: false,
        suspend_us: 0.0,
        misaligned_read_us: 0.0,
        mapping: MappingConfig {
            unit_bytes: 4096,
            entry_bytes: 4,
            cache: MappingCache::Whole,
            write_back: true,
            lookup_ns: 0,
        },
        write_cache: WriteCacheConfig { bytes: 1 << 20, volatile: false },
        layout: LayoutConfig {
            stripe_bytes: 65536,
            chunk_bytes: 8192,
            desirable_write_bytes: 4096,
            small_write_dies: 1,
            placement: PlacementRule::InTurn,
        },
        collect: CollectConfig::default(),
    }
}

/// A drive of 16 MiB.
pub(in super::super) fn drive(nand: &NandConfig, state: StartState) -> SimConfig {
    SimConfig {
        name: "test".into(),
        about: About::default(),
        capacity_bytes: 16 << 20,
        sector_bytes: 512,
        drives: 1,
        stripe_unit_bytes: 65536,
        host: host(),
        medium: MediumConfig::Nand(Box::new(nand.clone())),
        state,
        faults: Vec::new(),
    }
}

/// See the module.
pub(in super::super) struct Bench {
    pub ftl: Ftl,
    pub flash: Flash,
    pub around: Surroundings,
    versions: u64,
    /// Commands that are done, until the test takes them.
    pub done: Vec<u32>,
}

impl Bench {
    pub fn new(nand: &NandConfig, state: StartState) -> Self {
        Self::of(nand, &drive(nand, state))
    }

    pub fn of(nand: &NandConfig, drive: &SimConfig) -> Self {
        Self {
            ftl: Ftl::new(nand, drive).unwrap(),
            flash: Flash::new(nand),
            around: Surroundings::new(nand.write_cache.volatile),
            versions: 0,
            done: Vec::new(),
        }
    }

    /// Begins a command; nothing more happens until [`Bench::run`].
    pub fn start(&mut self, op: Op, offset_bytes: u64, length_bytes: u32) -> u32 {
        let command = self.around.command(op, offset_bytes, length_bytes);
        if matches!(op, Op::Write | Op::WriteDsync) {
            self.versions += 1;
            self.around.commands[command].version = self.versions;
            if self.ftl.is_volatile() {
                let bytes = vec![1; length_bytes as usize];
                self.around.content.write(self.versions, offset_bytes, &bytes);
            }
        }
        self.ftl.start(command, &mut self.flash, &mut self.around.context());
        command
    }

    /// One event; whether there was one. Commands that are done go to `done`.
    pub fn step(&mut self) -> bool {
        match self.around.events.next(u64::MAX) {
            None => return false,
            Some(Event::Medium { kind, index, .. }) => {
                let context = &mut self.around.context();
                if kind >= FIRST_FTL_KIND {
                    self.ftl.event(kind, index, &mut self.flash, context);
                } else if let Some(done) = self.flash.event(kind, index, context) {
                    self.ftl.flash_done(&done, &mut self.flash, context);
                }
            }
            Some(Event::Done { command }) => {
                let entry = &self.around.commands[command];
                assert_eq!(entry.stages.sum(), self.around.events.now() - entry.submitted_ns, "{entry:?}");
                assert!(entry.op != Op::Read || entry.remaining_bytes == 0, "{entry:?}");
                self.done.push(command);
                self.around.commands.remove(command);
            }
            Some(event) => panic!("nobody schedules {event:?} here"),
        }
        true
    }

    /// Until nothing more happens.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Begins a command, lets all happen, and says where its time went.
    pub fn finish(&mut self, op: Op, offset_bytes: u64, length_bytes: u32) -> Stages {
        let command = self.start(op, offset_bytes, length_bytes);
        self.run();
        assert_eq!(self.done.pop(), Some(command), "the command is not done");
        self.around.commands[command].stages
    }

    /// Writes one unit that a cache takes, and lets as much happen as is necessary for it.
    pub fn write_unit(&mut self, unit: u32) {
        let unit_bytes = self.ftl.geometry.unit_bytes;
        self.start(Op::Write, u64::from(unit) * u64::from(unit_bytes), unit_bytes);
        while !self.ftl.writes.is_idle() {
            assert!(self.step(), "a write waits for nothing");
        }
        self.done.clear();
    }

    /// Fails unless everything that is known of blocks agrees with the mapping.
    pub fn check(&self) {
        let Ftl { geometry, blocks, mapping, .. } = &self.ftl;
        let mut valid = vec![0; geometry.blocks() as usize];
        for unit in 0..geometry.logical_units() {
            let Some(place) = mapping.get(unit) else { continue };
            let at = geometry.at(place);
            assert_eq!(blocks.unit_at(at.block, at.row, at.slot, mapping), Some(unit), "{at:?}");
            valid[at.block as usize] += 1;
        }
        for die in 0..geometry.dies {
            let of_die = blocks.of_die(die);
            let free = of_die.clone().filter(|block| blocks.get(*block).state == BlockState::Free).count();
            assert_eq!(blocks.free(die) as usize, free);
            let total: u32 = of_die.clone().map(|block| valid[block as usize]).sum();
            assert_eq!(blocks.valid_of_die[die as usize], total);
            for block in of_die {
                let entry = blocks.get(block);
                assert_eq!(entry.valid, valid[block as usize], "block {block}: {entry:?}");
                assert!(entry.state != BlockState::Free || entry.valid == 0);
                let rows = [entry.programmed, entry.submitted, entry.sealed, geometry.rows_per_block];
                assert!(rows.is_sorted(), "{entry:?}");
            }
        }
    }

    /// The die that a unit is on.
    pub fn die(&self, unit: u32) -> u32 {
        self.ftl.geometry.at(self.place(unit).unwrap()).die
    }

    /// Writes that a power cut would lose.
    pub fn unsettled(&self) -> Vec<u64> {
        self.around.content.unsettled().into_keys().collect()
    }

    /// The power is gone and back; commands under way are forgotten.
    pub fn power_cycle(&mut self) {
        self.around.events.clear();
        self.around.commands = Slab::default();
        self.around.content.cut_power(|_, _| true);
        self.flash.power_cycle();
        self.ftl.power_cycle();
    }

    /// Place of a unit.
    pub fn place(&self, unit: u32) -> Option<FlashAddress> {
        self.ftl.mapping.get(unit)
    }
}
