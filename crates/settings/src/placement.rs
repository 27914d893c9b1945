//! Places of pages and segments.

use flashgrain_device::bytes_text;

use crate::Amount;
use crate::value::{SIZES, Value, bytes_of_text, named};

/// How a store places its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Gathered into write units, at a new place each time.
    OutOfPlace,
    /// Each page always at the same place, one write per page. The baseline for measurements: not safe
    /// against crashes.
    InPlace,
}

impl Placement {
    const ALL: [Self; 2] = [Self::OutOfPlace, Self::InPlace];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfPlace => "out of place",
            Self::InPlace => "in place",
        }
    }
}

impl Value for Placement {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        named(&Self::ALL, Self::name, text, amount)
    }
}

/// Places of pages in a write unit that the drive reads fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlacement {
    /// No place is known to be better than another.
    OwnSize,
    /// Pages begin where the drive's chunks do.
    Aligned {
        /// A chunk.
        chunk_bytes: u64,
    },
    /// Pages begin inside a chunk.
    Shifted {
        /// A chunk.
        chunk_bytes: u64,
        /// From the begin of a chunk to that of a page.
        shift_bytes: u64,
    },
}

impl Value for PagePlacement {
    fn text(&self) -> String {
        match *self {
            Self::OwnSize => "pages aligned to their size".into(),
            Self::Aligned { chunk_bytes } => format!("pages aligned to {}", bytes_text(chunk_bytes)),
            Self::Shifted { chunk_bytes, shift_bytes } => {
                format!("pages of {} shifted by {}", bytes_text(chunk_bytes), bytes_text(shift_bytes))
            }
        }
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        if amount.is_some() {
            return None;
        }
        if text == Self::OwnSize.text() {
            return Some(Self::OwnSize);
        }
        if let Some(chunk) = text.strip_prefix("pages aligned to ") {
            return Some(Self::Aligned { chunk_bytes: size(chunk)? });
        }
        let (chunk, shift) = text.strip_prefix("pages of ")?.split_once(" shifted by ")?;
        Some(Self::Shifted { chunk_bytes: size(chunk)?, shift_bytes: size(shift)? })
    }
}

/// Segments of a store: how large they are, and where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentShape {
    /// A segment.
    pub bytes: u64,
    /// Segments begin at multiples of this.
    pub align_bytes: u64,
}

/// Between the size and the alignment.
const ALIGNED_TO: &str = ", aligned to ";

impl Value for SegmentShape {
    fn text(&self) -> String {
        format!("{}{ALIGNED_TO}{}", bytes_text(self.bytes), bytes_text(self.align_bytes))
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Bytes(self.bytes))
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        let (words, align) = text.split_once(ALIGNED_TO)?;
        let bytes = match amount {
            Some(Amount::Bytes(bytes)) => bytes,
            Some(_) => return None,
            None => bytes_of_text(words)?,
        };
        Some(Self { bytes, align_bytes: size(align)? })
    }
}

/// A size in words, if it is possible.
fn size(text: &str) -> Option<u64> {
    bytes_of_text(text).filter(|bytes| SIZES.contains(&(*bytes as f64)))
}
