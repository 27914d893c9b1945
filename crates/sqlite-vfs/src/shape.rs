//! The layout of a database file, as far as it is known.
//!
//! A file that is empty may still become anything: the first connection that writes to it decides. All others
//! read its first bytes again, under a lock, to find out. Once decided, it never changes.

use flashgrain_layout::{Error, Layout, header};

/// How the bytes of a file are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The file is empty. Our first write to it gives it this layout, if there is one.
    Undecided(Option<Layout>),
    /// Each byte is where it says.
    Plain,
    /// The file's header says so.
    Laid(Layout),
}

impl Shape {
    /// The shape of a file of `length_bytes` that begins with `beginning`, which is the whole file or at
    /// least [`header::HEADER_BYTES`] of it. If it is empty, it is to get the layout `wish`.
    ///
    /// # Errors
    /// The defect of the header, if the file has one of ours.
    pub fn of_file(length_bytes: u64, beginning: &[u8], wish: Option<Layout>) -> Result<Self, Error> {
        if length_bytes == 0 {
            return Ok(Self::Undecided(wish));
        }
        if let Some(layout) = header::decode(beginning)? {
            return Ok(Self::Laid(layout));
        }
        // A crash while the header was written leaves zeros, or a part of it without a page after it.
        let is_unwritten = length_bytes <= header::HEADER_BYTES && beginning.iter().all(|byte| *byte == 0);
        Ok(if is_unwritten && wish.is_some() { Self::Undecided(wish) } else { Self::Plain })
    }

    /// The layout that the file has or will have.
    pub fn layout(self) -> Option<Layout> {
        match self {
            Self::Undecided(layout) => layout,
            Self::Plain => None,
            Self::Laid(layout) => Some(layout),
        }
    }

    /// Distance of a logical from its physical offset.
    pub fn shift_bytes(self) -> i64 {
        match self {
            // Chunks are bounded, and so is the start after one of them.
            Self::Laid(layout) => layout.start_bytes() as i64,
            Self::Undecided(_) | Self::Plain => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_layout::HotLocations;

    use super::*;

    fn layout() -> Layout {
        HotLocations::new(64 << 10, 32 << 10).unwrap().into()
    }

    #[test]
    fn an_empty_file_may_become_anything() {
        assert_eq!(Shape::of_file(0, &[], None), Ok(Shape::Undecided(None)));
        assert_eq!(Shape::of_file(0, &[], Some(layout())), Ok(Shape::Undecided(Some(layout()))));
    }

    #[test]
    fn content_decides_and_not_the_wish() {
        let plain = b"SQLite format 3\0 and so on";
        assert_eq!(Shape::of_file(8192, plain, Some(layout())), Ok(Shape::Plain));
        let other: Layout = HotLocations::new(4096, 0).unwrap().into();
        assert_eq!(Shape::of_file(8192, &header::encode(other), Some(layout())), Ok(Shape::Laid(other)));
        assert_eq!(Shape::of_file(8192, &header::encode(other), None), Ok(Shape::Laid(other)));
    }

    #[test]
    fn a_header_that_was_never_written_decides_nothing() {
        let wish = Some(layout());
        assert_eq!(Shape::of_file(4096, &[0; 4096], wish), Ok(Shape::Undecided(wish)));
        assert_eq!(Shape::of_file(8192, &[0; 4096], wish), Ok(Shape::Plain));
        assert_eq!(Shape::of_file(4096, &[0; 4096], None), Ok(Shape::Plain));
    }

    #[test]
    fn a_damaged_header_is_an_error() {
        let mut damaged = header::encode(layout());
        damaged[30] ^= 1;
        assert_eq!(Shape::of_file(8192, &damaged, None).unwrap_err().kind(), "checksum");
    }
}
