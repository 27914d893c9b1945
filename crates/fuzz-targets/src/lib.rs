//! Everything that is decoded from disks and files, as targets for fuzzing. Each takes bytes and must neither
//! panic, nor go on for ever, nor ask for much more memory than the bytes have.
//!
//! Two drivers share them: a coverage-guided fuzzer for long runs (`scripts/fuzz.sh`, `fuzz/`), and the tests
//! of this crate, which replay the corpus (`fuzz/corpus`) and mutate it as often as they are told to. Both
//! begin with the inputs that [`corpus`] finds: `tests/corpus` made them from real stores, and finds of the
//! fuzzer were added.

pub mod allocation;
pub mod mutate;
mod texts;

use std::path::{Path, PathBuf};
use std::{fs, io};

use flashgrain::testing::decode;
use flashgrain_sqlite_vfs::testing as sqlite;

/// A decoder.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of its corpus.
    pub name: &'static str,
    /// Decodes; panics if a decoded value breaks an invariant.
    pub run: fn(&[u8]),
    /// No longer input tells more.
    pub input_bytes_max: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), input_bytes_max: usize) -> Target {
    Target { name, run, input_bytes_max }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("superblock", decode::superblock, 512),
    target("label", decode::label, 512),
    target("durable_mark", decode::durable_mark, 512),
    target("image", decode::image, 16 << 10),
    target("image_in_blocks", decode::image_in_blocks, 16 << 10),
    target("node", decode::node, 16 << 10),
    target("part", decode::part, 17 << 10),
    target("overflow", decode::overflow, 16 << 10),
    target("map", decode::map, 16 << 10),
    target("log_block", decode::log_block, 4096),
    target("log_stream", decode::log_stream, 8192),
    target("log_record", decode::log_record, 4096),
    target("reference", decode::reference, 1024),
    target("catalog_entry", decode::catalog_entry, 64),
    target("profile", texts::profile, 256 << 10),
    target("samples_csv", texts::samples_csv, 4096),
    target("drive_toml", texts::drive_toml, 16 << 10),
    target("mqsim_drive", texts::mqsim_drive, 16 << 10),
    target("mqsim_workload", texts::mqsim_workload, 16 << 10),
    target("mqsim_trace", texts::mqsim_trace, 4096),
    target("workload_toml", texts::workload_toml, 4096),
    target("observed", texts::observed, 16 << 10),
    target("trace", texts::trace, 4096),
    target("volume_directory", sqlite::volume_directory, 4096),
    target("log_statement", sqlite::log_statement, 256),
];

/// Runs the target of this name.
///
/// # Panics
/// If there is none, or if it does.
pub fn run(name: &str, input: &[u8]) {
    allocation::limit();
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(input),
        None => panic!("there is no target `{name}`"),
    }
}

/// Folder of the corpus of a target.
pub fn corpus_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

/// The committed inputs of a target, by name.
///
/// # Errors
/// Of the system, with the corpus missing.
pub fn corpus(name: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(corpus_folder(name))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.push((name, fs::read(path)?));
    }
    inputs.sort();
    Ok(inputs)
}
