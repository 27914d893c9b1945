//! How a database is laid out: its own file by *use-hot-locations*, and its log, if that is wished, by
//! *write-aligned-stripes*.

use std::fmt;
use std::str::FromStr;

use crate::{Error, HotLocations, aligned_frames};

/// What stands between both parts of the text.
const LOG: &str = "+log:";

/// The layout of a database and its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    hot: HotLocations,
    log_stripe_bytes: Option<u64>,
}

impl Layout {
    /// A database at hot locations, and a log whose frames begin at multiples of `log_stripe_bytes`, if
    /// given.
    ///
    /// # Errors
    /// [`Error::Size`] if a stripe is not a power of two.
    pub fn new(hot: HotLocations, log_stripe_bytes: Option<u64>) -> Result<Self, Error> {
        log_stripe_bytes.map_or(Ok(()), aligned_frames::check_stripe)?;
        Ok(Self { hot, log_stripe_bytes })
    }

    /// Where pages of the database are.
    pub fn hot(&self) -> HotLocations {
        self.hot
    }

    /// Stripes with which the frames of its log are aligned.
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
        Self { hot, log_stripe_bytes: None }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hot.fmt(formatter)?;
        match self.log_stripe_bytes {
            Some(bytes) => write!(formatter, "{LOG}{bytes}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, Error> {
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
        for text in ["hot:65536:32768", "hot:4096:0+log:65536"] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        for (text, kind) in [
            ("hot:4096:0+log:", "text"),
            ("hot:4096:0+log:x", "text"),
            ("log:65536", "text"),
            ("hot:4096:0+log:65537", "size"),
            ("hot:4096:0+log:65536+log:65536", "text"),
        ] {
            assert_eq!(text.parse::<Layout>().unwrap_err().kind(), kind, "{text}");
        }
    }
}
