//! Settings of engines that are advised.

/// Settings that are advised for a workload on the drive, in the words of their engines; one that is `None`
/// stays at the engine's default.
#[derive(Clone, Debug, Default)]
pub struct Advised {
    /// The workload's name.
    pub workload: String,
    /// `page_size` of SQLite.
    pub sqlite_page_size: Option<String>,
    /// `journal_mode` of SQLite.
    pub sqlite_journal_mode: Option<String>,
    /// `innodb_page_size`.
    pub innodb_page_size: Option<String>,
    /// `leaf_page_max` of WiredTiger.
    pub wiredtiger_leaf_page_max: Option<String>,
}
