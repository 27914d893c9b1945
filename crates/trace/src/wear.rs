//! Wear-out by partly written flash pages (hidden-parameters paper §4.2.3, Table 2 and Figure 14).

/// What a run has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes that the program wanted to write.
    pub payload_bytes: u64,
    /// Flash pages that were written in part.
    pub partial_flash_pages: u64,
}

impl Written {
    /// Flash wear-out in bytes, with flash pages of `flash_page_bytes`.
    pub fn wear_bytes(self, flash_page_bytes: u64) -> f64 {
        self.payload_bytes as f64 + self.partial_flash_pages as f64 * flash_page_bytes as f64
    }

    /// By which fraction `other` makes the drive live longer than `self` does; `None` if it writes nothing.
    pub fn lifetime_gain(self, other: Self, flash_page_bytes: u64) -> Option<f64> {
        let other_bytes = other.wear_bytes(flash_page_bytes);
        (other_bytes > 0.0).then(|| self.wear_bytes(flash_page_bytes) / other_bytes - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_counts_give_its_gains() {
        let frames =
            |frames: u64, partial_flash_pages| Written { payload_bytes: frames * 65536, partial_flash_pages };
        let (original, aligned) = (frames(101_133, 50_000), frames(101_105, 0));
        for (flash_page_bytes, percent) in [(2048, 1.6), (4096, 3.1), (16384, 12.4)] {
            let gain = original.lifetime_gain(aligned, flash_page_bytes).unwrap() * 100.0;
            assert!((gain - percent).abs() < 0.05, "{flash_page_bytes}: {gain} instead of {percent} %");
        }
    }

    #[test]
    fn nothing_written_has_no_gain() {
        let nothing = Written { payload_bytes: 0, partial_flash_pages: 0 };
        assert_eq!(nothing.lifetime_gain(nothing, 4096), None);
    }
}
