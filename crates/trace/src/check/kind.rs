//! Kinds of files: by their names where programs have such, else by how they are used.

use serde::Serialize;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A database of SQLite.
    SqliteDatabase,
    /// Its write-ahead log.
    SqliteWal,
    /// Its rollback journal.
    SqliteJournal,
    /// The index of its write-ahead log, which is memory that processes share.
    SqliteShm,
    /// A tablespace of InnoDB: tables, the system tablespace, undo logs.
    InnodbTablespace,
    /// Its redo log.
    InnodbRedo,
    /// Its doublewrite buffer, where that is a file of its own.
    InnodbDoublewrite,
    /// The binary log of MariaDB and MySQL.
    BinaryLog,
    /// A log or table of Aria.
    Aria,
    /// A sorted table of RocksDB or LevelDB.
    RocksdbTable,
    /// Its write-ahead log.
    RocksdbWal,
    /// Its manifest.
    RocksdbManifest,
    /// A table of WiredTiger.
    WiredtigerTable,
    /// Its log.
    WiredtigerLog,
    /// A write-ahead log of PostgreSQL.
    PostgresWal,
    /// Segments of a Flashgrain store.
    FlashgrainData,
    /// Its log.
    FlashgrainLog,
    /// A block device.
    Device,
    /// None of these: mostly appended to.
    Appended,
    /// None of these: written in place, in pages of one size.
    Paged,
    /// None of these: written without a pattern that shows.
    Mixed,
    /// None of these, and only read.
    OnlyRead,
}

impl FileKind {
    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::SqliteDatabase => "SQLite database",
            Self::SqliteWal => "SQLite WAL",
            Self::SqliteJournal => "SQLite journal",
            Self::SqliteShm => "SQLite WAL index",
            Self::InnodbTablespace => "InnoDB tablespace",
            Self::InnodbRedo => "InnoDB redo log",
            Self::InnodbDoublewrite => "InnoDB doublewrite",
            Self::BinaryLog => "binary log",
            Self::Aria => "Aria",
            Self::RocksdbTable => "RocksDB SST",
            Self::RocksdbWal => "RocksDB WAL",
            Self::RocksdbManifest => "RocksDB MANIFEST",
            Self::WiredtigerTable => "WiredTiger table",
            Self::WiredtigerLog => "WiredTiger log",
            Self::PostgresWal => "PostgreSQL WAL",
            Self::FlashgrainData => "Flashgrain segments",
            Self::FlashgrainLog => "Flashgrain log",
            Self::Device => "block device",
            Self::Appended => "appended file",
            Self::Paged => "file of pages",
            Self::Mixed => "other file",
            Self::OnlyRead => "file only read",
        }
    }

    /// The kind that a name says. `has_name` tells whether the trace has another name.
    pub(super) fn of_name(path: &str, has_name: impl Fn(&str) -> bool) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match name {
            // Of databases with a layout, Flashgrain's VFS names them otherwise.
            _ if name.ends_with("-wal") || name.ends_with("-grainwal") => Self::SqliteWal,
            _ if name.ends_with("-journal") || name.ends_with("-grainjournal") => Self::SqliteJournal,
            _ if name.ends_with("-shm") => Self::SqliteShm,
            "data.flashgrain" => Self::FlashgrainData,
            "log.flashgrain" => Self::FlashgrainLog,
            _ if name.starts_with("ib_logfile") || name.starts_with("#ib_redo") => Self::InnodbRedo,
            _ if name.starts_with("ibdata") || name.starts_with("undo") || name.starts_with("ibtmp") => {
                Self::InnodbTablespace
            }
            _ if extension == "ibd" || extension == "ibu" => Self::InnodbTablespace,
            _ if extension == "dblwr" => Self::InnodbDoublewrite,
            _ if is_number(extension)
                && (stem.ends_with("bin") || stem == "binlog" || stem.ends_with("relay-bin")) =>
            {
                Self::BinaryLog
            }
            _ if name.starts_with("aria_log") || matches!(extension, "MAI" | "MAD") => Self::Aria,
            _ if matches!(extension, "sst" | "ldb" | "blob") && is_number(stem) => Self::RocksdbTable,
            _ if extension == "log" && is_number(stem) => Self::RocksdbWal,
            _ if name.starts_with("MANIFEST-") => Self::RocksdbManifest,
            _ if name.starts_with("WiredTigerLog.") => Self::WiredtigerLog,
            _ if extension == "wt" => Self::WiredtigerTable,
            _ if folder.ends_with("/pg_wal") => Self::PostgresWal,
            _ if matches!(extension, "db" | "db3" | "sqlite" | "sqlite3") => Self::SqliteDatabase,
            _ if has_name(&format!("{path}-wal")) || has_name(&format!("{path}-journal")) => {
                Self::SqliteDatabase
            }
            _ if path.starts_with("/dev/") => Self::Device,
            _ => return None,
        };
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_kinds() {
        let of = |path| FileKind::of_name(path, |name| name == "/d/places-journal");
        for (path, kind) in [
            ("/d/a.db", FileKind::SqliteDatabase),
            ("/d/a.db-wal", FileKind::SqliteWal),
            ("/d/places", FileKind::SqliteDatabase),
            ("/d/places-journal", FileKind::SqliteJournal),
            ("/var/lib/mysql/ibdata1", FileKind::InnodbTablespace),
            ("/var/lib/mysql/t/a.ibd", FileKind::InnodbTablespace),
            ("/var/lib/mysql/ib_logfile0", FileKind::InnodbRedo),
            ("/var/lib/mysql/host-bin.000001", FileKind::BinaryLog),
            ("/r/000012.sst", FileKind::RocksdbTable),
            ("/r/000013.log", FileKind::RocksdbWal),
            ("/r/MANIFEST-000004", FileKind::RocksdbManifest),
            ("data.flashgrain", FileKind::FlashgrainData),
            ("/s/log.flashgrain", FileKind::FlashgrainLog),
            ("/dev/nvme0n1", FileKind::Device),
        ] {
            assert_eq!(of(path), Some(kind), "{path}");
        }
        assert_eq!(of("/var/log/server.log"), None);
    }
}
