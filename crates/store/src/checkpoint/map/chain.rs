//! Finding the locations of all pages of a chain.

use super::codec::{MapPage, MapPageLocation, PRIORS};
use crate::Error;
use crate::page::Page;

/// Looks at a page that was read.
type Look<'a> = &'a mut dyn FnMut(Page<'_>) -> Result<(), Error>;

/// The locations of a chain's pages, the oldest first. `read` is called for one page in [`PRIORS`].
///
/// # Errors
/// Those of `read`, and [`Error::Corrupt`] for a chain that does not begin with `first_serial`.
pub(crate) fn places(
    last: MapPageLocation,
    first_serial: u64,
    read: &mut dyn FnMut(MapPageLocation, Look<'_>) -> Result<(), Error>,
) -> Result<Vec<MapPageLocation>, Error> {
    let mut found = vec![last];
    loop {
        let Some(&oldest) = found.last() else { return Ok(found) };
        let mut priors = Vec::new();
        read(oldest, &mut |page| {
            priors = MapPage::new(page, oldest).priors()?;
            Ok(())
        })?;
        let begun = priors.last().map_or(oldest.serial, |place| place.serial);
        if begun < first_serial || (priors.len() < PRIORS && begun > first_serial) {
            return Err(Error::Corrupt {
                what: format!("the chain of page {} of the map", last.serial),
                offset_bytes: oldest.location.offset_bytes(),
                expected: format!("a chain from page {first_serial} on"),
                got: format!("one from page {begun} on"),
            });
        }
        let is_whole = begun == first_serial;
        found.append(&mut priors);
        if is_whole {
            found.reverse();
            return Ok(found);
        }
    }
}
