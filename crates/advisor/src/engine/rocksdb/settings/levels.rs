//! Memtables and levels.

use flashgrain_cost::Access;
use flashgrain_settings::Bytes;

use super::super::super::Setting;
use super::super::super::tuned::Tuned;
use super::super::configuration::{DEFAULT, MEMTABLES, RocksDb};
use super::chosen::{Chosen, changed, chosen, follows, random_read_number, transfer_number};

type Rocks<'a> = Tuned<'a, RocksDb>;

pub(super) fn memtable(tuned: &Rocks<'_>) -> Setting {
    let bytes = tuned.advised.memtable_bytes;
    let gain = tuned.gain_of(|rocks, default| rocks.memtable_bytes = default.memtable_bytes);
    chosen(
        Chosen {
            name: "write_buffer_size",
            default: "67108864",
            value: changed(bytes, DEFAULT.memtable_bytes),
            because: match tuned.advised.memtable_bytes < DEFAULT.memtable_bytes {
                true => "a memtable of the default's size is larger than memory_bytes",
                false => {
                    "larger memtables and files have fewer levels below them, at the best predicted rate"
                }
            },
            number: transfer_number(tuned.drive, Access::Write),
            cost: format!("{} of memory for {MEMTABLES} memtables", Bytes((bytes * MEMTABLES) as u64)),
        },
        gain,
    )
}

pub(super) fn file_bytes(tuned: &Rocks<'_>) -> Setting {
    follows("target_file_size_base", "67108864", tuned.advised.memtable_bytes, "write_buffer_size")
}

pub(super) fn level_one(tuned: &Rocks<'_>) -> Setting {
    let bytes = tuned.advised.memtable_bytes * tuned.advised.level_zero_files;
    follows(
        "max_bytes_for_level_base",
        "268435456",
        bytes,
        "write_buffer_size x level0_file_num_compaction_trigger",
    )
}

pub(super) fn trigger(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.level_zero_files = default.level_zero_files);
    chosen(
        Chosen {
            name: "level0_file_num_compaction_trigger",
            default: "4",
            value: changed(tuned.advised.level_zero_files, DEFAULT.level_zero_files),
            because: "every file of level 0 is looked into by reads; more of them are merged at once (3D XPoint paper, level-0 management)",
            number: random_read_number(tuned),
            cost: "level 1 is larger or smaller with it".into(),
        },
        gain,
    )
}

/// The 3D XPoint paper's stages lie between the trigger and a stop; RocksDB's own distance is kept.
pub(super) fn slowdown(tuned: &Rocks<'_>) -> Setting {
    let files = (tuned.advised.level_zero_files * 5.0).max(20.0);
    follows("level0_slowdown_writes_trigger", "20", files, "level0_file_num_compaction_trigger")
}

pub(super) fn multiplier(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.fanout = default.fanout);
    chosen(
        Chosen {
            name: "max_bytes_for_level_multiplier",
            default: "10",
            value: changed(tuned.advised.fanout, DEFAULT.fanout),
            because: "the fanout with the best predicted rate: fewer levels for reads against fewer rewrites of each",
            number: transfer_number(tuned.drive, Access::Write),
            cost: "an existing database moves to it by compactions".into(),
        },
        gain,
    )
}
