//! Sets of descriptors.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors with higher numbers are no files of records: the kernel's own default limit.
pub const DESCRIPTORS_MAX: usize = 1 << 20;

/// A set of descriptors that is asked without a lock, as each read and write of the program asks.
pub struct DescriptorSet([AtomicU64; DESCRIPTORS_MAX / 64]);

impl DescriptorSet {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64])
    }

    fn word(&self, descriptor: c_int) -> Option<(&AtomicU64, u64)> {
        let at = usize::try_from(descriptor).ok()?;
        Some((self.0.get(at / 64)?, 1 << (at % 64)))
    }

    pub fn has(&self, descriptor: c_int) -> bool {
        self.word(descriptor).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    pub fn insert(&self, descriptor: c_int) {
        if let Some((word, bit)) = self.word(descriptor) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    pub fn remove(&self, descriptor: c_int) {
        if let Some((word, bit)) = self.word(descriptor) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}
