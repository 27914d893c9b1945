//! Commands on pages that do not run in the test as they stand.

/// How a command runs in the test.
pub enum Here {
    /// Not at all, for this reason. The program must understand it nevertheless.
    Not(&'static str),
    /// With these arguments at its end: smaller sizes, or what belongs to the drive at hand.
    With(&'static str),
}

use Here::{Not, With};

const BUILDS: &str = "builds the repository";
const CAMPAIGN: &str = "builds the repository, and the campaigns have tests of their own";
const MEASURES: &str = "measures a drive for a minute";
const HOURS: &str = "measures a drive for hours";
const ENGINES: &str = "needs engines of other projects";
const NVME: &str = "needs an NVMe drive";
const MARIADB: &str = "needs MariaDB as a service";

/// Commands by page and beginning. All others run as they stand.
pub const LISTED: &[(&str, &str, Here)] = &[
    ("README.md", "cargo run --release -- tune", Not(MEASURES)),
    ("README.md", "cargo test --workspace", Not(BUILDS)),
    ("README.md", "flashgrain advise --workload mine.toml --for rocksdb --verify", Not(ENGINES)),
    ("docs/advise.md", "flashgrain tune /data", Not(MEASURES)),
    ("docs/advise.md", "flashgrain advise --workload mine.toml --for rocksdb --verify", Not(ENGINES)),
    ("docs/advise.md", "flashgrain advise --workload all --verify", Not(ENGINES)),
    ("docs/backends.md", "flashgrain io /dev/ng0n1", Not(NVME)),
    ("docs/backends.md", "flashgrain tune /dev/ng0n1", Not(NVME)),
    ("docs/benchmarks.md", "flashgrain-bench run wiredtiger", Not(ENGINES)),
    ("docs/benchmarks.md", "LEANSTORE_DIR=SOURCES cargo build", Not(ENGINES)),
    ("docs/benchmarks.md", "flashgrain-bench run leanstore", Not(ENGINES)),
    ("docs/binary-log.md", "cargo build", Not(BUILDS)),
    ("docs/binary-log.md", "LD_PRELOAD=", Not(MARIADB)),
    ("docs/binary-log.md", "systemctl", Not(MARIADB)),
    ("docs/binary-log.md", "flashgrain unpack", Not(MARIADB)),
    ("docs/c.md", "scripts/install-c.sh", Not("crates/c/tests builds and links as it does")),
    ("docs/c.md", "cc program.c", Not("crates/c/tests builds and links as it does")),
    ("docs/commands.md", "flashgrain io /data --depth", With("--seconds 0.2 --file-size 16MiB")),
    ("docs/commands.md", "flashgrain io /data --read-share", Not("measures for half a minute")),
    ("docs/commands.md", "flashgrain io /dev/nvme0n1", Not(NVME)),
    ("docs/commands.md", "flashgrain profile /data", With("--seconds 2 --file-size 16MiB --out flushes")),
    ("docs/commands.md", "flashgrain profile export", With("--device-number 8:0")),
    ("docs/commands.md", "flashgrain bench lookup", Not("fills a store with 12 million records")),
    ("docs/commands.md", "flashgrain advise --workload mine.toml --for rocksdb --verify", Not(ENGINES)),
    ("docs/experiments.md", "flashgrain profile /data", Not(HOURS)),
    ("docs/fuzzing.md", "cargo test", Not(CAMPAIGN)),
    ("docs/fuzzing.md", "FLASHGRAIN_", Not(CAMPAIGN)),
    ("docs/fuzzing.md", "scripts/fuzz.sh", Not(CAMPAIGN)),
    ("docs/python.md", "pip install", Not("scripts/test-python.sh builds the package")),
    ("docs/raft.md", "cargo run -p flashgrain_raft", Not("builds the example, which has tests of its own")),
    ("docs/raft.md", "cargo test -p flashgrain_raft", Not(BUILDS)),
    ("docs/raft.md", "cd crates/raft/comparison", Not(ENGINES)),
    ("docs/raft.md", "FLASHGRAIN_RAFT_SEED", Not(BUILDS)),
    ("docs/samples-csv.md", "(echo read_share", Not("needs jq, and results of fio")),
    ("docs/simulated-drive.md", "flashgrain sim run 960evo", With("--seconds 1")),
    ("docs/simulated-drive.md", "flashgrain tune sim:960evo", With("--seconds 2 --file-size 64MiB")),
    ("docs/simulated-drive.md", "flashgrain io sim:8xpm1733", With("--seconds 0.001 --warmup 0.001")),
    ("docs/simulated-drive.md", "flashgrain sim run mine.toml", With("--seconds 1")),
    ("docs/sqlite.md", "cargo build", Not(BUILDS)),
    ("docs/sqlite.md", "flashgrain tune /data", Not(MEASURES)),
    ("docs/sqlite.md", "flashgrain vfs create-volume", Not("reserves 64 GiB on two drives")),
    ("docs/trace.md", "flashgrain trace record", Not("needs strace, or root")),
    ("docs/trust.md", "cargo run", Not(CAMPAIGN)),
    ("python/README.md", "pip install", Not("scripts/test-python.sh builds the package")),
];
