//! Places that are used unequally often: how many of them a number of uses reaches, and the share of them
//! that an LRU cache holds.
//!
//! A place stays in such a cache for about the same time after each use, T (Che, Tung, Wang: "Hierarchical
//! Web Caching Systems", 2002): one that is used r times per unit of time is there with 1 - e^(-rT), and T is
//! such that all of this together fills the cache. A number of uses that is drawn at random reaches the same
//! share of the places; so T, counted in uses, is the number after which the cache is full.

use super::Skew;

/// Places that are used alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    pub places: f64,
    /// Share of all uses.
    pub share: f64,
}

/// The places by how often they are used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Uses(pub Vec<Kind>);

/// Each kind has this many times the places of all that are used more.
const KIND_FACTOR: f64 = 4.0;
const STEPS_MAX: usize = 40;
/// Each step doubles the digits that are right: after one of these all are.
const PRECISION: f64 = 1e-7;
/// Uses of each byte after which none is absent in the precision of numbers.
const USES_MAX: f64 = 40.0;
/// A cache that has this share of all places has the rest as well after enough uses.
const REACHED_MAX: f64 = 1.0 - 1e-9;

impl Uses {
    /// Of pages with `per_page` of the `count` records each.
    pub fn of(skew: &Skew, count: f64, per_page: f64) -> Self {
        let pages = (count / per_page).max(1.0);
        if *skew == Skew::Uniform {
            return Self(vec![Kind { places: pages, share: 1.0 }]);
        }
        let hits = skew.hits(count, per_page);
        let (mut kinds, mut below, mut used_below, mut upto) = (Vec::with_capacity(16), 0.0, 0.0, 1.0f64);
        while below < pages {
            upto = upto.min(pages);
            let used = if upto >= pages { 1.0 } else { hits(upto / pages) };
            kinds.push(Kind { places: upto - below, share: used - used_below });
            (below, used_below) = (upto, used);
            upto *= KIND_FACTOR;
        }
        Self(kinds)
    }

    /// Uses that each reach another place.
    pub fn all_new() -> Self {
        Self(Vec::new())
    }

    /// Whether a use may reach a place that another one has reached.
    pub fn repeat(&self) -> bool {
        !self.0.is_empty()
    }

    /// Places that `uses` uses reach.
    pub fn distinct(&self, uses: f64) -> f64 {
        if !self.repeat() {
            return uses;
        }
        self.0.iter().map(|kind| kind.places * -(-uses * kind.share / kind.places).exp_m1()).sum()
    }

    /// Share of these uses that are the first of their place.
    pub fn first_share(&self, uses: f64) -> f64 {
        if uses > 0.0 { (self.distinct(uses) / uses).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Uses that reach `places` places; very many for all.
    pub fn reaching(&self, places: f64) -> f64 {
        if !self.repeat() {
            return places;
        }
        let all: f64 = self.0.iter().map(|kind| kind.places).sum();
        let kinds = self.0.iter().map(|kind| (kind.places, kind.share / kind.places));
        time_to_fill(kinds, places.min(REACHED_MAX * all))
    }

    /// Share of `uses` uses, starting with an empty cache, that miss. Until it is full after `time`, each
    /// first use does.
    pub fn misses_from_empty(&self, uses: f64, time: f64) -> f64 {
        if uses <= time {
            return self.first_share(uses);
        }
        ((self.distinct(time) + (uses - time) * self.misses(time)) / uses).clamp(0.0, 1.0)
    }

    /// Share of the uses that miss in a cache that evicts each place `time` uses after its last.
    pub fn misses(&self, time: f64) -> f64 {
        let used = self.0.iter().filter(|kind| kind.share > 0.0);
        used.map(|kind| kind.share * (-time * kind.share / kind.places).exp()).sum()
    }
}

/// The time in which the bytes used fill a cache, from kinds with their bytes and the rate at which each byte
/// is used. If no byte were used twice before all of its kind are, it would be shorter: the search begins
/// there, as no exponential is needed for it.
pub(crate) fn time_to_fill(kinds: impl Iterator<Item = (f64, f64)> + Clone, cache_bytes: f64) -> f64 {
    let once = |uses: f64| if uses < 1.0 { (uses, 1.0) } else { (1.0, 0.0) };
    let drawn = |uses: f64| {
        let absent = if uses < USES_MAX { (-uses).exp() } else { 0.0 };
        (1.0 - absent, absent)
    };
    filled_from(filled_from(0.0, once, kinds.clone(), cache_bytes), drawn, kinds, cache_bytes)
}

/// Newton's method from below, where it never goes too far, as the bytes in use are concave in the time: the
/// share of a kind in use after a number of uses of each byte, and its slope, are given.
fn filled_from(
    mut time: f64,
    used: impl Fn(f64) -> (f64, f64),
    kinds: impl Iterator<Item = (f64, f64)> + Clone,
    cache_bytes: f64,
) -> f64 {
    for _ in 0..STEPS_MAX {
        let (mut held, mut slope) = (0.0, 0.0);
        for (bytes, rate) in kinds.clone() {
            let (share, more) = used(rate * time);
            held += bytes * share;
            slope += bytes * rate * more;
        }
        let step = (cache_bytes - held) / slope;
        // Only kinds that are never used are left out.
        if !step.is_finite() || step <= 0.0 {
            break;
        }
        time += step;
        if step <= PRECISION * time {
            break;
        }
    }
    time
}
