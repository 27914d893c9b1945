use std::collections::HashMap;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::Error;
use crate::header::{Header, PageId};
use crate::page::{OwnPage, Page};
use crate::segment::{Location, UnitSequence};

const PAGE_BYTES: u32 = 4096;

/// Map pages by their places.
#[derive(Default)]
struct Medium {
    pages: HashMap<u64, OwnPage>,
    reads: usize,
}

impl Medium {
    fn write(&mut self, serial: u64, page: Page<'_>) -> Location {
        assert_eq!(Header::of(page).page, page_id(serial));
        let copy = OwnPage::new(PAGE_BYTES);
        copy.page().copy_page(page);
        let location = Location::new(serial * u64::from(PAGE_BYTES), PAGE_BYTES, 0);
        self.pages.insert(location.bits(), copy);
        location
    }

    fn read(
        &mut self,
        place: MapPageLocation,
        see: &mut dyn FnMut(Page<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.reads += 1;
        see(self.pages[&place.location.bits()].page())
    }

    /// The map after all changes of the chain.
    fn state(&mut self, last: MapPageLocation, first_serial: u64) -> Result<MapModel, Error> {
        let places = places(last, first_serial, &mut |place, see| self.read(place, see))?;
        assert!(places.is_sorted_by_key(|place| place.serial));
        let (mut state, mut scratch) = (MapModel::default(), Vec::new());
        for place in places {
            let page = self.pages[&place.location.bits()].page();
            MapPage::new(page, place).changes(&mut scratch, &mut |change| {
                state.apply(change);
                Ok(())
            })?;
        }
        Ok(state)
    }
}

/// The model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MapModel {
    pages: HashMap<u64, Location>,
    segments: HashMap<u64, u64>,
}

impl MapModel {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Page(id, Some(location)) => drop(self.pages.insert(id.0, location)),
            Change::Page(id, None) => drop(self.pages.remove(&id.0)),
            Change::Segment(number, opening) => drop(self.segments.insert(number, opening.0)),
        }
    }
}

fn random_changes(random: &mut Pcg64, count: usize) -> Vec<Change> {
    let widest = random.random_range(1..40);
    let mut changes: Vec<Change> = (0..count)
        .map(|_| {
            let id = PageId(random.random_range(1..=1 << widest));
            let sector = random.random_range(0..1 << 30);
            let class = random.random_range(0..9);
            let length = random.random_range(1..=8 << class) * 512;
            let location = Location::new(sector * 512, length, class);
            Change::Page(id, random.random_bool(0.8).then_some(location))
        })
        .collect();
    changes.extend(
        (0..count / 10)
            .map(|_| Change::Segment(random.random_range(0..1 << widest), UnitSequence(random.random()))),
    );
    changes
}

/// Several checkpoints, in one chain or in several.
fn run(seed: u64, checkpoints: usize, changes_max: usize) {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut medium, mut model) = (Medium::default(), MapModel::default());
    let (mut priors, mut next_serial, mut first_serial) = (Vec::new(), random.random_range(0..1000), 0);
    for _ in 0..checkpoints {
        let anew = priors.is_empty() || random.random_bool(0.1);
        if anew {
            (priors, first_serial, model) = (Vec::new(), next_serial, MapModel::default());
        }
        let mut writer = Writer::new(PAGE_BYTES, priors, next_serial);
        let count = random.random_range(0..=changes_max);
        for change in random_changes(&mut random, count) {
            model.apply(change);
            writer.push(change, &mut |serial, page| Ok(medium.write(serial, page))).unwrap();
        }
        (priors, next_serial) = writer.finish(&mut |serial, page| Ok(medium.write(serial, page))).unwrap();
        medium.reads = 0;
        assert_eq!(medium.state(priors[0], first_serial).unwrap(), model, "seed {seed}");
        let length = (next_serial - first_serial) as usize;
        assert!(medium.reads <= 1 + length / PRIORS, "{} reads for {length} pages", medium.reads);
    }
}

proptest! {
    #[test]
    fn a_map_says_what_was_put_into_it(seed: u64) {
        run(seed, 8, 300);
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic(bytes: Vec<u8>, counts: [u8; 4], serial in 0_u64..1000) {
        let own = OwnPage::new(PAGE_BYTES);
        own.page().copy_from(48, &bytes[..bytes.len().min(4000)]);
        (32..).step_by(4).zip(counts).for_each(|(at, count)| own.page().set_word(at, count.into()));
        let place = MapPageLocation { serial, location: Location::new(0, 4096, 0) };
        let page = MapPage::new(own.page(), place);
        let _whatever = (page.priors(), page.changes(&mut Vec::new(), &mut |_| Ok(())));
    }
}

#[test]
fn a_long_chain_takes_few_dependent_reads() {
    run(5, 12, 20_000);
}

#[test]
fn a_chain_that_does_not_begin_where_it_should_is_refused() {
    let mut medium = Medium::default();
    let mut priors = Vec::new();
    for serial in 0..3 {
        let mut writer = Writer::new(PAGE_BYTES, priors, serial);
        let change = Change::Page(PageId(serial + 1), None);
        writer.push(change, &mut |serial, page| Ok(medium.write(serial, page))).unwrap();
        (priors, _) = writer.finish(&mut |serial, page| Ok(medium.write(serial, page))).unwrap();
    }
    assert!(medium.state(priors[0], 0).is_ok());
    assert!(matches!(medium.state(priors[0], 1), Err(Error::Corrupt { .. })));
}

/// Whichever page it is.
#[test]
fn a_map_that_cannot_be_written_is_not_gone_on_with() {
    for nth in 1..=3 {
        let (mut writer, mut pages) = (Writer::new(PAGE_BYTES, Vec::new(), 1), 0);
        let mut write = |_: u64, _: Page<'_>| {
            pages += 1;
            match pages == nth {
                true => Err(Error::io("write a page", libc::EIO)),
                false => Ok(Location::new(pages << 20, PAGE_BYTES, 0)),
            }
        };
        let change = |id| Change::Page(PageId(id), Some(Location::new(id << 20, PAGE_BYTES, 0)));
        let pushed = (0..1200).try_for_each(|id| writer.push(change(id), &mut write));
        let written = pushed.and_then(|()| writer.finish(&mut write).map(drop));
        assert_eq!(written.map_err(|error| error.kind()), Err(crate::ErrorKind::Io), "page {nth}");
        assert_eq!(pages, nth);
    }
}
