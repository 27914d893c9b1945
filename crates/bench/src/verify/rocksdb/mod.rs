//! RocksDB, through `db_bench`.
//!
//! Compression is off on both sides, since a profile does not know how well records compress.

pub(super) mod grid;
mod options;
mod output;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, ensure};
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::EngineAdvice;
use flashgrain_advisor::workload::Durability;

use super::adapt::{Adapted, records_per_range};
use super::scratch::Scratch;
use super::turns::Side;
use super::{Client, program};
use options::LevelZero;

const PROGRAM: &str = "db_bench";
const REMEDY: &str = "it is RocksDB's benchmark; scripts/install-peers.sh --engines or apt-get install rocksdb-tools installs it";

/// `db_bench` makes keys from numbers of 8 bytes.
const KEY_BYTES_MIN: u64 = 8;

/// Two databases and their workload.
pub(super) struct RocksDb<'a> {
    workload: Workload,
    seconds: u32,
    scratch: &'a Scratch,
    interrupt: &'a AtomicBool,
    /// Of both sides' block cache: `db_bench` replaces that of the options.
    cache_bytes: u64,
    /// In the order of [`Side::ALL`].
    level_zero: [LevelZero; 2],
}

pub(super) fn is_installed() -> anyhow::Result<()> {
    program::is_installed(PROGRAM, REMEDY)
}

/// The workload as `db_bench` can run it.
pub(super) fn adapted(workload: &Workload) -> Adapted {
    let mut adapted = Adapted::new(workload);
    adapted.uniform(PROGRAM);
    adapted.hits_and_updates(PROGRAM);
    if matches!(adapted.workload.durability, Durability::Group { .. }) {
        adapted.change("no write waits for the log, as RocksDB has no window of group commits");
    }
    let records = &mut adapted.workload.records;
    if records.key_bytes < KEY_BYTES_MIN {
        records.key_bytes = KEY_BYTES_MIN;
        adapted.change("keys have 8 bytes: db_bench makes no shorter ones that differ");
    }
    let operations = &mut adapted.workload.operations;
    let percent = (operations.reads() * 100.0).round();
    if operations.ranges == 0.0 && (operations.reads() * 100.0 - percent).abs() > 1e-6 {
        (operations.point_hits, operations.updates) = (percent / 100.0, 1.0 - percent / 100.0);
        adapted.change(&format!("{percent} % of the operations read: db_bench takes whole per cents"));
    }
    adapted
}

impl<'a> RocksDb<'a> {
    /// Writes both sides' options.
    pub fn new(
        workload: &Workload,
        advice: &EngineAdvice,
        seconds: u32,
        scratch: &'a Scratch,
        interrupt: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let texts = [options::DEFAULT, advice.file.as_str()];
        for (side, text) in Side::ALL.into_iter().zip(texts) {
            let path = scratch.join(&format!("{}.options", side.name()));
            let text = options::as_run(text);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        let cache_bytes = options::cache_bytes(&advice.file);
        let level_zero = texts.map(|text| LevelZero::halfway(text, workload.records.record_bytes()));
        Ok(Self { workload: workload.clone(), seconds, scratch, interrupt, cache_bytes, level_zero })
    }

    fn database(&self, side: Side) -> PathBuf {
        self.scratch.join(&format!("{}.db", side.name()))
    }

    fn db_bench(&self, side: Side, seed: u64, arguments: &[String]) -> anyhow::Result<String> {
        let records = self.workload.records;
        let options = self.scratch.join(&format!("{}.options", side.name()));
        let mut command = Command::new(PROGRAM);
        command
            .arg(format!("--options_file={}", options.display()))
            .arg(format!("--db={}", self.database(side).display()))
            .arg(format!("--num={}", records.count))
            .arg(format!("--key_size={}", records.key_bytes))
            .arg(format!("--value_size={}", records.value_bytes))
            .arg(format!("--cache_size={}", self.cache_bytes))
            // 0 would be the time.
            .arg(format!("--seed={}", seed % SEEDS + 1))
            .args(arguments);
        program::output(&mut command, &self.scratch.join("log"), self.interrupt)
            .with_context(|| format!("db_bench with {}", side.describe()))
    }

    /// The benchmark that mixes operations as the workload does, and its arguments.
    fn mix(&self) -> (&'static str, Vec<String>) {
        let operations = self.workload.operations;
        if operations.ranges == 0.0 {
            // The benchmark that mixes both refuses to do one of them alone.
            return match (operations.reads() * 100.0).round() {
                100.0 => ("readrandom", Vec::new()),
                0.0 => ("overwrite", Vec::new()),
                percent => ("readrandomwriterandom", vec![format!("--readwritepercent={percent}")]),
            };
        }
        let records = self.workload.records;
        let per_range = records_per_range(&self.workload);
        // Pareto distributions without a spread: every range and every value has the same size.
        let arguments = [
            format!("--mix_get_ratio={}", operations.point_hits),
            format!("--mix_put_ratio={}", operations.updates),
            format!("--mix_seek_ratio={}", operations.ranges),
            format!("--mix_max_scan_len={}", per_range + 1),
            format!("--iter_theta={per_range}"),
            "--iter_k=0".into(),
            "--iter_sigma=0".into(),
            format!("--mix_max_value_size={}", records.value_bytes + 1),
            format!("--value_theta={}", records.value_bytes),
            "--value_k=0".into(),
            "--value_sigma=0".into(),
        ];
        ("mixgraph", arguments.into())
    }
}

/// `db_bench` adds the number of each thread to its seed.
const SEEDS: u64 = 1 << 40;

impl Client for RocksDb<'_> {
    fn fill(&self, side: Side, seed: u64) -> anyhow::Result<()> {
        // Each key once, in random order, by one thread, and all of it below level 0.
        let arguments = ["--benchmarks=filluniquerandom,compact,waitforcompaction", "--threads=1"];
        self.db_bench(side, seed, &arguments.map(str::to_owned))?;
        let LevelZero { files, records } = self.level_zero[side as usize];
        if self.workload.operations.writes() == 0.0 || files == 0 {
            return Ok(());
        }
        // A tree that is written to has files in level 0, which a short run would not make.
        let file = "overwrite,flush";
        let arguments = [
            format!("--benchmarks={}", vec![file; files as usize].join(",")),
            "--use_existing_db=true".to_owned(),
            "--threads=1".to_owned(),
            format!("--writes={records}"),
        ];
        self.db_bench(side, seed, &arguments).map(drop)
    }

    fn run(&self, side: Side, seed: u64) -> anyhow::Result<f64> {
        let (benchmark, mut arguments) = self.mix();
        arguments.extend([
            // The first warms up.
            format!("--benchmarks={benchmark},{benchmark}"),
            "--use_existing_db=true".into(),
            format!("--threads={}", self.workload.clients),
            format!("--duration={}", self.seconds),
            format!("--sync={}", self.workload.durability == Durability::Sync),
        ]);
        let said = self.db_bench(side, seed, &arguments)?;
        let rates = output::rates(&said, benchmark);
        ensure!(rates.len() == 2, "db_bench told {} rates of {benchmark} instead of 2:\n{said}", rates.len());
        Ok(rates[1])
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_advisor::workload;

    use super::*;

    #[test]
    fn shares_are_made_whole_per_cents() {
        let mut workload = workload::preset("ycsb-b").unwrap();
        assert!(!adapted(&workload).changes.join("\n").contains("per cents"));
        workload.operations.point_hits = 0.123;
        workload.operations.updates = 0.877;
        let adapted = adapted(&workload);
        assert_eq!(adapted.workload.operations.point_hits, 0.12);
        assert!(adapted.changes.join("\n").contains("12 % of the operations read"));
        workload::checked(adapted.workload).unwrap();
    }
}
