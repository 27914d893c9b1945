//! How a database is laid out: its own file by *use-hot-locations*, and its log, if that is wished, by
//! *write-aligned-stripes*; and whether its pages have checksums.

use std::fmt;
use std::str::FromStr;

use crate::{Error, FRAME_HEADER_BYTES, HotLocations, PAGE_CHECKSUM_BYTES, aligned_frames};

/// The mark before the log's part of the text.
const LOG: &str = "+log:";

/// The end of the text if pages have checksums.
const CHECKSUMS: &str = "+checksums";

/// The layout of a database and its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    hot: HotLocations,
    log_stripe_bytes: Option<u64>,
    has_checksums: bool,
}

impl Layout {
    /// A database at hot locations, and a log whose frames begin at multiples of `log_stripe_bytes`, if
    /// given.
    ///
    /// # Errors
    /// [`Error::Size`] if a stripe is not a power of two.
    pub fn new(hot: HotLocations, log_stripe_bytes: Option<u64>) -> Result<Self, Error> {
        log_stripe_bytes.map_or(Ok(()), aligned_frames::check_stripe)?;
        Ok(Self { hot, log_stripe_bytes, has_checksums: false })
    }

    /// The same with checksums in the database's pages.
    pub fn with_checksums(self) -> Self {
        Self { has_checksums: true, ..self }
    }

    /// Whether the database's pages have checksums in their last bytes.
    pub fn has_checksums(&self) -> bool {
        self.has_checksums
    }

    /// Bytes at the end of each page that SQLite is to leave alone.
    pub fn reserved_bytes(&self) -> u64 {
        let of_log = self.log_stripe_bytes.map_or(0, |_| FRAME_HEADER_BYTES);
        let of_checksums = if self.has_checksums { PAGE_CHECKSUM_BYTES } else { 0 };
        // The log has its header where the database has its checksum.
        of_log.max(of_checksums)
    }

    /// Where pages of the database are.
    pub fn hot(&self) -> HotLocations {
        self.hot
    }

    /// Stripes that the frames of its log are aligned with.
    pub fn log_stripe_bytes(&self) -> Option<u64> {
        self.log_stripe_bytes
    }

    /// Where logical byte 0 of the database lies.
    pub fn start_bytes(&self) -> u64 {
        self.hot.start_bytes()
    }
}

impl From<HotLocations> for Layout {
    /// The log is SQLite's.
    fn from(hot: HotLocations) -> Self {
        Self { hot, log_stripe_bytes: None, has_checksums: false }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hot.fmt(formatter)?;
        if let Some(bytes) = self.log_stripe_bytes {
            write!(formatter, "{LOG}{bytes}")?;
        }
        if self.has_checksums { formatter.write_str(CHECKSUMS) } else { Ok(()) }
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// Reads the output of `Display`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(without) = text.strip_suffix(CHECKSUMS) {
            return match without.parse::<Self>()? {
                Self { has_checksums: true, .. } => {
                    Err(Error::Text { text: text.chars().take(80).collect() })
                }
                layout => Ok(layout.with_checksums()),
            };
        }
        let Some((hot, stripe)) = text.split_once(LOG) else { return text.parse().map(HotLocations::into) };
        let unreadable = |_| Error::Text { text: text.chars().take(80).collect() };
        Self::new(hot.parse()?, Some(stripe.parse().map_err(unreadable)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back() {
        for (text, reserved_bytes) in [
            ("hot:65536:32768", 0),
            ("hot:4096:0+log:65536", 24),
            ("hot:4096:0+checksums", 8),
            ("hot:4096:0+log:65536+checksums", 24),
        ] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!((layout.to_string().as_str(), layout.reserved_bytes()), (text, reserved_bytes));
        }
        for (text, kind) in [
            ("hot:4096:0+log:", "text"),
            ("hot:4096:0+log:x", "text"),
            ("log:65536", "text"),
            ("hot:4096:0+log:65537", "size"),
            ("hot:4096:0+checksums+checksums", "text"),
            ("hot:4096:0+checksums+log:65536", "text"),
            ("+checksums", "text"),
            ("hot:4096:0+log:65536+log:65536", "text"),
        ] {
            assert_eq!(text.parse::<Layout>().unwrap_err().kind(), kind, "{text}");
        }
    }
}
