//! The setting or layout that mends the broken rules of a kind of file.
//!
//! Commands and lines of settings can be pasted as they stand. Sizes of pages are those that an advisor chose
//! ([`Advised`]); nothing else here prices a workload.

use serde::Serialize;

use super::advised::Advised;
use super::drive::Drive;
use super::kind::FileKind;
use crate::{Grain, Rule};

/// The stripe of a layout where the drive's is unknown, in bytes.
const STRIPE_BYTES: u64 = 64 * 1024;

/// Bytes that a layout with a log takes of the end of each page.
const RESERVED_BYTES: u32 = 24;

/// RocksDB's default for `writable_file_max_buffer_size`, and the usual `wal_bytes_per_sync`.
const WRITE_BUFFER_BYTES: u64 = 1 << 20;
const WAL_SYNC_BYTES: u64 = 512 << 10;

/// Remedies for some rules in files of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mending {
    /// The numbers of the rules.
    pub rules: Vec<usize>,
    /// The advised change.
    pub advice: String,
    /// Commands of a shell, or lines of an engine's settings, as they stand.
    pub commands: Vec<String>,
}

/// The advised change.
struct Remedy {
    advice: String,
    commands: Vec<String>,
}

impl Remedy {
    fn new(advice: impl Into<String>, commands: impl IntoIterator<Item = String>) -> Self {
        Self { advice: advice.into(), commands: commands.into_iter().collect() }
    }

    fn words(advice: impl Into<String>) -> Self {
        Self::new(advice, [])
    }
}

/// Remedies for the rules that the files of a kind break; `path` is that of the file that breaks most.
pub(super) fn mending(
    kind: FileKind,
    path: &str,
    broken: impl Iterator<Item = Rule>,
    drive: &Drive,
) -> Vec<Mending> {
    let mut mending: Vec<Mending> = Vec::new();
    for rule in broken {
        let Some(Remedy { advice, commands }) = remedy(kind, rule, path, drive) else { continue };
        match mending.iter_mut().find(|mending| mending.advice == advice) {
            Some(same) => same.rules.push(rule.number()),
            None => mending.push(Mending { rules: vec![rule.number()], advice, commands }),
        }
    }
    mending
}

/// Sizes as people write them.
fn size(bytes: u64) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{bytes} bytes")
    }
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The layout of a database whose pages hit hot locations and whose log has frames that begin at stripes.
fn layout(grain: &Grain) -> String {
    let chunk = grain.chunk_bytes.map_or(4096, u64::from);
    let hot = grain.hot_offset_bytes.filter(|offset| *offset < chunk).unwrap_or(0);
    format!("hot:{chunk}:{hot}+log:{}", grain.stripe_bytes.map_or(STRIPE_BYTES, u64::from))
}

/// The commands that copy a database into a layout: with bytes reserved for the frames of its log, and a
/// journal mode that lets VACUUM reserve them.
fn import(database: &str, grain: &Grain) -> [String; 2] {
    let (from, to) = (quoted(database), quoted(&format!("{database}.flashgrain")));
    [
        format!(
            "sqlite3 {from} 'PRAGMA journal_mode = DELETE' '.filectrl reserve_bytes {RESERVED_BYTES}' VACUUM"
        ),
        format!("flashgrain vfs import {from} {to} --layout {}", layout(grain)),
    ]
}

/// The commands that give a database another size of pages: in WAL mode VACUUM changes none.
fn repaged(database: &str, page_size: &str, journal_mode: Option<&str>) -> String {
    let mode = journal_mode.map(|mode| format!(" 'PRAGMA journal_mode = {mode}'")).unwrap_or_default();
    let database = quoted(database);
    format!("sqlite3 {database} 'PRAGMA journal_mode = DELETE' 'PRAGMA page_size = {page_size}' VACUUM{mode}")
}

/// Says that an engine's default size of pages stays.
fn stays(setting: &str, engine: &str, Advised { workload, .. }: &Advised) -> String {
    format!(
        "{setting} stays at its default: no other is advised for {workload} here (`flashgrain advise --for {engine}`); more changes in \
         each transaction write more at once"
    )
}

/// InnoDB has no setting for hot locations, but the begin of its partition moves all its pages.
fn partition_at_hot_location(grain: &Grain) -> Option<Remedy> {
    let chunk = grain.chunk_bytes.map(u64::from)?;
    let place = match grain.hot_offset_bytes? {
        0 => format!("at a multiple of {}", size(chunk)),
        hot => format!("{} after a multiple of {}", size(hot), size(chunk)),
    };
    Some(Remedy::words(format!(
        "use-hot-locations: a partition that begins {place}, and a file system that keeps files at multiples of {} (mkfs.ext4 -O bigalloc -C {chunk}); InnoDB needs no change",
        size(chunk)
    )))
}

fn remedy(kind: FileKind, rule: Rule, path: &str, drive: &Drive) -> Option<Remedy> {
    let (grain, advised) = (&drive.grain, &drive.advised);
    let is_hot = rule == Rule::HotReads;
    let database = path.strip_suffix("-wal").unwrap_or(path);
    Some(match kind {
        FileKind::SqliteDatabase if is_hot => Remedy::new(
            "use-hot-locations: a copy of the database in the drive's layout, which the extension opens (docs/sqlite.md)",
            import(database, grain),
        ),
        FileKind::SqliteDatabase => match &advised.sqlite_page_size {
            Some(page_size) => Remedy::new(
                format!(
                    "pages of {page_size} bytes, as `flashgrain advise --for sqlite` has them for {}",
                    advised.workload
                ),
                [repaged(database, page_size, advised.sqlite_journal_mode.as_deref())],
            ),
            None => Remedy::words(stays("page_size", "sqlite", advised)),
        },
        FileKind::SqliteWal if path.ends_with("-grainwal") => Remedy::words(
            "larger transactions; and, where `flashgrain vfs info` shows no +log in the database's layout, a copy in a layout with it",
        ),
        FileKind::SqliteWal => Remedy::new(
            "write-aligned-stripes: a copy of the database whose log has frames as large as their pages, which the extension opens \
             (docs/sqlite.md); or larger transactions, which have fewer overflows",
            import(database, grain),
        ),
        FileKind::SqliteJournal => Remedy::new(
            "one log is appended to, instead of a journal with small headers for each transaction; or more rows in each transaction",
            [format!(
                "sqlite3 {} 'PRAGMA journal_mode = WAL'",
                quoted(path.strip_suffix("-journal").unwrap_or(path))
            )],
        ),
        FileKind::InnodbTablespace if is_hot => partition_at_hot_location(grain)?,
        FileKind::InnodbTablespace => match &advised.innodb_page_size {
            Some(page_size) => Remedy::new(
                format!(
                    "pages of {page_size}, when the data directory is made, as advised for {}",
                    advised.workload
                ),
                [format!("innodb_page_size = {page_size}")],
            ),
            None => Remedy::words(stays("innodb_page_size", "mariadb", advised)),
        },
        FileKind::WiredtigerTable => match &advised.wiredtiger_leaf_page_max {
            Some(bytes) => Remedy::new(
                format!("leaves of {bytes} in new tables, as advised for {}", advised.workload),
                [format!("leaf_page_max={bytes}")],
            ),
            None => Remedy::words(stays("leaf_page_max", "wiredtiger", advised)),
        },
        _ => return of_other(kind, is_hot, grain),
    })
}

/// Of kinds whose remedies follow from the drive alone.
fn of_other(kind: FileKind, is_hot: bool, grain: &Grain) -> Option<Remedy> {
    let unit_bytes = grain.desirable_write_bytes.map_or(STRIPE_BYTES, u64::from);
    let (unit, flash) = (size(unit_bytes), size(grain.flash_page_bytes.map_or(4096, u64::from)));
    Some(match kind {
        FileKind::InnodbRedo => Remedy::words(
            "whole blocks (innodb_log_write_ahead_size, or innodb_log_file_buffering = OFF); more changes in each transaction, or commits \
             of several clients at a time",
        ),
        FileKind::BinaryLog => Remedy::words(format!(
            "contain-write-in-flash-page with pages of {flash}, by a preloaded library (docs/binary-log.md); binlog_commit_wait_count and \
             binlog_commit_wait_usec gather commits into larger writes"
        )),
        FileKind::RocksdbTable if is_hot => {
            Remedy::words("none: tables begin their blocks anywhere, whatever block_size is")
        }
        FileKind::RocksdbTable => Remedy::new(
            "tables are written in aligned pieces (lines for [DBOptions])",
            [
                "use_direct_io_for_flush_and_compaction=true".to_owned(),
                format!("writable_file_max_buffer_size={}", WRITE_BUFFER_BYTES.next_multiple_of(unit_bytes)),
            ],
        ),
        FileKind::RocksdbWal => Remedy::new(
            "group commits (several writers, or larger WriteBatches), or a log on a faster drive with wal_dir; commits that do not wait \
             are written in larger pieces (a line for [DBOptions])",
            [format!("wal_bytes_per_sync={}", WAL_SYNC_BYTES.next_multiple_of(unit_bytes))],
        ),
        FileKind::FlashgrainData if is_hot => Remedy::words(
            "pages of segments lie where units are packed; choose units with `flashgrain db create --profile`",
        ),
        FileKind::FlashgrainData => Remedy::words(
            "make the store with the drive's profile: `flashgrain db create --profile` sets write units and segments",
        ),
        FileKind::FlashgrainLog => Remedy::words("several commits in flight share a log write"),
        FileKind::PostgresWal => {
            Remedy::words("commit_delay and commit_siblings gather commits; wal_init_zero = on")
        }
        FileKind::Appended => Remedy::words(format!(
            "gather records into writes of {unit}; where each must be durable by itself, begin a record that would cross a flash page \
             of {flash} at the next one (contain-write-in-flash-page, crates/layout)"
        )),
        FileKind::Paged => Remedy::words(format!("pages of {unit}, which begin at multiples of their size")),
        FileKind::Device if !is_hot => Remedy::words(
            "look at the files: record with system calls, and see that partitions begin at multiples of the stripe",
        ),
        _ => return None,
    })
}
