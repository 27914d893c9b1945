//! From a page to its image and back.
//!
//! An image is the used bytes at a page's front and at its back, next to each other, filled up with zeros to
//! whole grains (see [`crate::header`]). Images are made of pages that can be trusted, and taken apart only
//! after [`verify`]; still, no bytes make anything here panic or reach outside of them.

use super::blocks;
use super::image::{Expected, UNCOVERED_BYTES, image_bytes, seal_whole};
use super::location::GRAIN_BYTES;
use crate::Error;
use crate::checksum::crc32c;
use crate::class::class_bytes;
use crate::header::{Header, PAGE_HEADER_BYTES, PageId};
use crate::page::Page;

/// The bytes of a page that its image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// The page's bytes up to here.
    pub front_end: u32,
    /// And from here on.
    pub back_start: u32,
    page_bytes: u32,
}

impl Used {
    /// As the header says; all of the page if that makes no sense.
    pub fn new(front_end: u32, back_start: u32, page_bytes: u32) -> Self {
        if PAGE_HEADER_BYTES <= front_end && front_end <= back_start && back_start <= page_bytes {
            Self { front_end, back_start, page_bytes }
        } else {
            Self { front_end: page_bytes, back_start: page_bytes, page_bytes }
        }
    }

    pub fn of(page: Page<'_>) -> Self {
        let header = Header::of(page);
        Self::new(header.front_end, header.back_start, page.len_bytes())
    }

    fn back_bytes(self) -> u32 {
        self.page_bytes - self.back_start
    }

    /// Bytes of the image, of whole grains.
    pub fn image_bytes(self) -> u32 {
        (self.front_end + self.back_bytes()).next_multiple_of(GRAIN_BYTES)
    }
}

/// Makes the image of `page`, of exactly the bytes of `image`: at least [`Used::image_bytes`]. The caller has
/// the page's latch.
pub(crate) fn pack(page: Page<'_>, id: PageId, class: usize, sequence: u64, image: &mut [u8]) {
    let used = Used::of(page);
    let (front, back) = (used.front_end as usize, used.back_bytes() as usize);
    assert!(front + back <= image.len() && used.page_bytes == page.len_bytes());
    let (front_image, rest) = image.split_at_mut(front);
    let (back_image, fill) = rest.split_at_mut(back);
    // SAFETY: `Used` lies within the page, and both parts of the image are as long as the bytes copied to
    // them. No other thread changes the page, as the caller has its latch; optimistic readers only read.
    unsafe {
        front_image.as_mut_ptr().copy_from_nonoverlapping(page.as_ptr(), front);
        back_image.as_mut_ptr().copy_from_nonoverlapping(page.as_ptr().add(used.back_start as usize), back);
    }
    fill.fill(0);
    let header = Header {
        checksum: 0,
        image_grains: (image.len() / GRAIN_BYTES as usize) as u16,
        class: class as u8,
        kind: Header::of(page).kind,
        page: id,
        sequence,
        front_end: used.front_end,
        back_start: used.back_start,
    };
    seal(header, image);
}

/// Gives an image this header, with the checksum that belongs to it; in blocks, each of them.
pub(crate) fn seal(header: Header, image: &mut [u8]) {
    match blocks::block_bytes(header) {
        Some(_) => blocks::seal(header, image),
        None => seal_whole(header, image),
    }
}

/// Verifies that `image`, as it was read from its location, is the expected one, and undamaged.
///
/// # Errors
/// [`Error::Corrupt`], which names the difference.
pub(crate) fn verify(image: &[u8], expected: Expected) -> Result<Header, Error> {
    let Expected { location, page, oldest_sequence } = expected;
    let corrupt = |should_be: String, is: String| Error::Corrupt {
        what: format!("page {}", page.0),
        offset_bytes: location.offset_bytes(),
        expected: should_be,
        got: is,
    };
    let length = location.length_bytes() as usize;
    let (Some(image), Some(header)) = (image.get(..length), Header::decode(image)) else {
        return Err(corrupt(format!("{length} bytes"), format!("{} bytes", image.len())));
    };
    if let Some(block_bytes) = blocks::block_bytes(header) {
        return blocks::verify(image, expected, block_bytes);
    }
    let checksum = crc32c(&image[UNCOVERED_BYTES..]);
    if header.checksum != checksum && !planted!(PageChecksumIgnored) {
        return Err(corrupt(format!("checksum {:08x}", header.checksum), format!("{checksum:08x}")));
    }
    let found = (header.page, header.class as usize, image_bytes(header));
    let is_other = found.0 != page && !planted!(PageNumberIgnored);
    if is_other || (found.1, found.2) != (location.class(), length as u32) {
        return Err(corrupt(
            format!("page {} of size class {} in {length} bytes", page.0, location.class()),
            format!(
                "page {} of size class {} in {} bytes: a misplaced write or read",
                found.0.0, found.1, found.2
            ),
        ));
    }
    if header.sequence < oldest_sequence && !planted!(PageSequenceIgnored) {
        return Err(corrupt(
            format!("an image written with unit {oldest_sequence} or later"),
            format!("one of unit {}: a lost write", header.sequence),
        ));
    }
    let used = Used::new(header.front_end, header.back_start, page_bytes(header.class));
    let is_as_said = (used.front_end, used.back_start) == (header.front_end, header.back_start);
    if !is_as_said || used.image_bytes() as usize > length {
        return Err(corrupt(
            format!("a page in {length} bytes"),
            format!("one used up to {} and from {} on", header.front_end, header.back_start),
        ));
    }
    Ok(header)
}

fn page_bytes(class: u8) -> u32 {
    class_bytes(usize::from(class).min(crate::class::CLASSES - 1)) as u32
}

/// Unpacks a verified image, which lies in `memory` from `at` on, into the page that `memory` is. The page's
/// unused middle is left as it is.
pub(crate) fn unpack(header: Header, at: usize, memory: &mut [u8]) {
    let used = Used::new(header.front_end, header.back_start, memory.len() as u32);
    let (front, back) = (used.front_end as usize, used.back_bytes() as usize);
    debug_assert!(at + front + back <= memory.len(), "an image that reaches out of its page");
    // Upwards, so it comes first: it ends where the page ends, and so lies after all of the front.
    memory.copy_within(at + front..at + front + back, used.back_start as usize);
    if at > 0 {
        memory.copy_within(at..at + front, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::OwnPage;
    use crate::segment::Location;

    /// A page with these parts used and bytes that depend on `seed`.
    fn page(class: usize, front_end: u32, back_start: u32, seed: u32) -> OwnPage {
        let own = OwnPage::new(class_bytes(class) as u32);
        let page = own.page();
        for at in (0..page.len_bytes()).step_by(4) {
            page.set_word(at, seed.wrapping_mul(at + 1) | 1);
        }
        let id = PageId(u64::from(seed));
        let (checksum, image_grains, sequence) = (0, 0, 0);
        Header {
            checksum,
            image_grains,
            class: class as u8,
            kind: 1,
            page: id,
            sequence,
            front_end,
            back_start,
        }
        .store(page);
        own
    }

    fn image_of(own: &OwnPage, class: usize) -> Vec<u8> {
        let mut image = vec![0xee; Used::of(own.page()).image_bytes() as usize];
        pack(own.page(), Header::of(own.page()).page, class, 77, &mut image);
        image
    }

    fn expected(image: &[u8], id: u64, class: usize) -> Expected {
        let location = Location::new(1 << 20, image.len() as u32, class);
        Expected { location, page: PageId(id), oldest_sequence: 77 }
    }

    /// A class and the parts of a page that are used.
    fn shape() -> impl Strategy<Value = (usize, u32, u32)> {
        (0usize..4).prop_flat_map(|class| {
            let words = class_bytes(class) as u32 / 4;
            (8..=words).prop_flat_map(move |front| {
                (Just(class), Just(front * 4), (front..=words).prop_map(|back| back * 4))
            })
        })
    }

    /// Under a right checksum.
    #[test]
    fn an_image_whose_back_part_begins_beyond_its_page_is_damaged() {
        let mut image = image_of(&page(0, 4096, 4096, 1), 0);
        assert!(verify(&image, expected(&image, 1, 0)).is_ok());
        for back_start in [4100, 235_802_126, u32::MAX, 0] {
            let header = Header { back_start, ..Header::decode(&image).unwrap() };
            seal(header, &mut image);
            let verdict = verify(&image, expected(&image, 1, 0));
            assert!(matches!(verdict, Err(Error::Corrupt { .. })), "{back_start}");
        }
    }

    proptest! {
        #[test]
        fn what_a_page_uses_comes_back((class, front, back) in shape(), seed: u32, at in 0usize..64) {
            let own = page(class, front, back, seed);
            let image = image_of(&own, class);
            prop_assert_eq!(image.len() as u32 % 64, 0);
            prop_assert!((image.len() as u32) < front + own.page().len_bytes() - back + 64);
            let header = verify(&image, expected(&image, u64::from(seed), class)).unwrap();
            let mut memory = vec![0x55; own.page().len_bytes() as usize];
            // As far after the beginning of the bytes that were read as there is room for.
            let at = (at * 64).min(memory.len() - image.len());
            memory[at..at + image.len()].copy_from_slice(&image);
            unpack(header, at, &mut memory);
            let mut before = Vec::new();
            own.page().copy_to(0, own.page().len_bytes(), &mut before);
            let (front, back) = (front as usize, back as usize);
            let body = PAGE_HEADER_BYTES as usize..front;
            prop_assert!(memory[body.clone()] == before[body]);
            prop_assert!(memory[back..] == before[back..]);
            prop_assert_eq!((header.front_end as usize, header.back_start as usize), (front, back));
        }

        #[test]
        fn any_changed_bit_is_noticed((class, front, back) in shape(), seed: u32, place: prop::sample::Index, bit in 0u32..8) {
            let mut image = image_of(&page(class, front, back, seed), class);
            let at = place.index(image.len());
            image[at] ^= 1u8 << bit;
            let verdict = verify(&image, expected(&image, u64::from(seed), class));
            let noticed = matches!(verdict, Err(Error::Corrupt { offset_bytes, .. }) if offset_bytes == 1 << 20);
            prop_assert!(noticed);
        }

        /// Nonsense with a checksum that belongs to it: the worst that a device can return.
        #[test]
        fn nonsense_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 512..=4096), words: [u32; 7], grains in 0usize..70, class in 0usize..9, resealed: bool) {
            let mut bytes = bytes;
            bytes.truncate(bytes.len() / 64 * 64);
            let header = Header {
                checksum: words[0], image_grains: words[1] as u16 % 80, class: words[2] as u8 % 12, kind: 1,
                page: PageId(u64::from(words[3] % 2)), sequence: u64::from(words[4] % 100), front_end: words[5] % 5000, back_start: words[6] % 5000,
            };
            if resealed {
                seal(header, &mut bytes);
            }
            let location = Location::new(512, (grains.max(1) * 64) as u32, class);
            let should = Expected { location, page: PageId(1), oldest_sequence: 50 };
            if let Ok(header) = verify(&bytes, should) {
                prop_assert!(resealed && header.page == PageId(1) && header.sequence >= 50);
                let mut memory = vec![0; class_bytes(class) as usize];
                memory[..location.length_bytes() as usize].copy_from_slice(&bytes[..location.length_bytes() as usize]);
                unpack(header, 0, &mut memory);
            }
        }
    }

    #[test]
    fn an_image_of_another_page_class_or_time_is_refused() {
        let image = image_of(&page(1, 400, 8000, 5), 1);
        assert!(verify(&image, expected(&image, 5, 1)).is_ok());
        let says = |expected: Expected| verify(&image, expected).unwrap_err().to_string();
        assert!(says(expected(&image, 6, 1)).contains("got page 5"), "{}", says(expected(&image, 6, 1)));
        assert!(says(expected(&image, 5, 2)).contains("size class 2"));
        let late = Expected { oldest_sequence: 78, ..expected(&image, 5, 1) };
        assert!(says(late).contains("lost write"), "{}", says(late));
        assert!(verify(&vec![0; image.len()], expected(&image, 5, 1)).is_err());
    }
}
