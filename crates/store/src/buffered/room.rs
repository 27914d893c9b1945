//! What a tree has room for.

/// What bounds the numbers of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub cache_bytes: u64,
    pub log_bytes: u64,
    pub segment_bytes: u64,
    /// What is written at a time: no page is larger.
    pub unit_bytes: u64,
    /// The most that the store's segments may ever have.
    pub device_bytes: u64,
    /// Requests that saturate the drive.
    pub in_flight: u32,
    /// Bytes that the busy drive transfers in the time of a setup of its reads; 0: no profile says it.
    pub half_bandwidth_bytes: u32,
}

impl Room {
    /// Room for any numbers. What an opening has room for may differ from what there was when a tree was
    /// made.
    pub const UNBOUNDED: Self = Self {
        cache_bytes: u64::MAX,
        log_bytes: u64::MAX,
        segment_bytes: 1,
        unit_bytes: u64::MAX,
        device_bytes: u64::MAX,
        in_flight: 1,
        half_bandwidth_bytes: 0,
    };
}
