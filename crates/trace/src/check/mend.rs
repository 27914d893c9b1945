//! The setting or layout that would mend what a kind of file breaks.

use super::kind::FileKind;
use super::report::{Group, Mending};
use crate::{Grain, Rule};

/// The largest page of SQLite and of InnoDB, in bytes.
const PAGE_BYTES_MAX: u64 = 64 * 1024;

/// What would mend the rules that the files of a kind break.
pub(super) fn mending(kind: FileKind, group: &Group, grain: &Grain) -> Vec<Mending> {
    let mut mending: Vec<Mending> = Vec::new();
    for rule in Rule::ALL.into_iter().filter(|rule| group.broken(*rule).is_some()) {
        let Some(advice) = advice(kind, rule, grain) else { continue };
        match mending.iter_mut().find(|mending| mending.advice == advice) {
            Some(same) => same.rules.push(rule.number()),
            None => mending.push(Mending { rules: vec![rule.number()], advice }),
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

/// The page size that comes next to what `rule` asks for.
fn page_bytes(rule: Rule, grain: &Grain) -> u64 {
    let wanted = match rule {
        Rule::DesirableWrites => grain.desirable_write_bytes,
        Rule::AlignedWrites => grain.stripe_bytes,
        Rule::HotReads | Rule::AlignedChunks => grain.chunk_bytes,
        Rule::FewFlashPages => grain.flash_page_bytes,
    };
    wanted.map_or(PAGE_BYTES_MAX, u64::from).clamp(4096, PAGE_BYTES_MAX)
}

/// The layout of a database whose log has frames that begin at stripes, as `flashgrain vfs` takes it.
fn log_layout(grain: &Grain) -> String {
    let chunk = grain.chunk_bytes.map_or(4096, u64::from);
    let hot = grain.hot_offset_bytes.filter(|offset| *offset < chunk).unwrap_or(0);
    format!("hot:{chunk}:{hot}+log:{}", grain.stripe_bytes.map_or(PAGE_BYTES_MAX, u64::from))
}

fn advice(kind: FileKind, rule: Rule, grain: &Grain) -> Option<String> {
    let page = page_bytes(rule, grain);
    let unit = size(grain.desirable_write_bytes.map_or(page, u64::from));
    let flash = size(grain.flash_page_bytes.map_or(4096, u64::from));
    let is_hot = rule == Rule::HotReads;
    let text = match kind {
        FileKind::SqliteDatabase if is_hot => {
            "use-hot-locations: copy the database into the drive's layout with `flashgrain vfs import FROM TO --profile PROFILE`".into()
        }
        FileKind::SqliteDatabase => format!("PRAGMA page_size = {page}; VACUUM;"),
        FileKind::SqliteWal => format!(
            "write-aligned-stripes: frames as large as their pages, with `flashgrain vfs import FROM TO --layout {}`; or larger \
             transactions, which have fewer overflows",
            log_layout(grain)
        ),
        FileKind::SqliteJournal => {
            "PRAGMA journal_mode = WAL: one log is appended to, instead of a journal with small headers for each transaction; or more \
             rows in each transaction"
                .into()
        }
        FileKind::InnodbTablespace if is_hot => "use-hot-locations (crates/layout, HotLocations): InnoDB has no setting for it".into(),
        FileKind::InnodbTablespace => {
            format!("innodb_page_size = {page} when the data directory is made, innodb_flush_method = O_DIRECT")
        }
        FileKind::InnodbRedo => {
            "innodb_log_write_ahead_size (or innodb_log_file_buffering = OFF) for whole blocks; more transactions in each commit, or \
             innodb_flush_log_at_trx_commit = 2 where a second's transactions may be lost"
                .into()
        }
        FileKind::BinaryLog => format!(
            "contain-write-in-flash-page with pages of {flash}, by a preloaded library (docs/binary-log.md); binlog_commit_wait_count and \
             binlog_commit_wait_usec gather commits into larger writes"
        ),
        FileKind::RocksdbTable if is_hot => "none: tables begin their blocks anywhere, whatever block_size is".into(),
        FileKind::RocksdbTable => format!(
            "use_direct_io_for_flush_and_compaction = true, writable_file_max_buffer_size a multiple of {unit}: tables are written in \
             aligned pieces"
        ),
        FileKind::RocksdbWal => format!(
            "group commits (several writers, or larger WriteBatches), wal_bytes_per_sync a multiple of {unit}, or a log on a faster \
             drive with wal_dir"
        ),
        FileKind::FlashgrainData if is_hot => "pages of segments lie where units are packed; choose units with `flashgrain db create --profile`".into(),
        FileKind::FlashgrainData => {
            "make the store with the drive's profile: `flashgrain db create --profile PROFILE` sets write units and segments".into()
        }
        FileKind::FlashgrainLog => {
            "several commits in flight share a log write; durability `buffered` writes whole blocks in the background".into()
        }
        FileKind::PostgresWal => "commit_delay and commit_siblings gather commits; wal_init_zero = on".into(),
        FileKind::WiredtigerTable => format!("leaf_page_max and allocation_size = {page}"),
        FileKind::Appended => format!(
            "gather records into writes of {unit}; where each must be durable by itself, begin a record that would cross a flash page \
             of {flash} at the next one (contain-write-in-flash-page, crates/layout)"
        ),
        FileKind::Paged => format!("pages of {}, which begin at multiples of their size", size(page)),
        FileKind::Device if !is_hot => {
            "look at the files: record with system calls, and see that partitions begin at multiples of the stripe".into()
        }
        _ => return None,
    };
    Some(text)
}
