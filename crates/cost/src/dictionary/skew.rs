//! The distribution of operations over records, and its effect on a cache.

use serde::{Deserialize, Serialize};

/// How accesses are distributed over records.
///
/// Frequently used records lie anywhere among the keys (as YCSB's scrambled keys do), so that a page that
/// holds many records is used more evenly than its records are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// All records alike.
    Uniform,
    /// The record of rank i is accessed in proportion to 1 / i^exponent.
    Zipf {
        /// 0 is uniform; YCSB has 0.99.
        exponent: f64,
    },
    /// A share of the accesses goes to a share of the records, alike within that and within the rest.
    HotSet {
        /// Share of the accesses, 0 to 1.
        access_share: f64,
        /// Share of the records, 0 to 1.
        record_share: f64,
    },
}

impl Skew {
    /// Share of the accesses that a cache answers which holds the most used pages: `cached_share` of all
    /// pages, each with `records_per_page` of the `record_count` records.
    ///
    /// Zipf: the hottest records are taken to lie on pages of their own, one each, as far as there are pages;
    /// the remaining records add the same to each page. Hot set: the number of hot records on a page is
    /// binomial.
    pub fn hit_share(&self, record_count: f64, records_per_page: f64, cached_share: f64) -> f64 {
        self.hits(record_count, records_per_page)(cached_share)
    }

    /// The same for caches of any share of the pages.
    pub(super) fn hits(&self, record_count: f64, records_per_page: f64) -> impl Fn(f64) -> f64 {
        let (skew, records) = (*self, record_count.max(1.0));
        let pages = (records / records_per_page.max(1.0)).max(1.0);
        let harmonic = match skew {
            Self::Zipf { exponent } => harmonic(exponent),
            Self::Uniform | Self::HotSet { .. } => harmonic(0.0),
        };
        let sum = harmonic(records);
        // Share of the accesses that go to the `count` most used records.
        let top = move |count: f64| match skew {
            Self::Zipf { .. } => (harmonic(count) / sum).clamp(count / records, 1.0),
            Self::Uniform | Self::HotSet { .. } => count / records,
        };
        let spread = 1.0 - top(pages);
        move |cached: f64| {
            let cached = cached.clamp(0.0, 1.0);
            match skew {
                Self::HotSet { access_share, record_share } => {
                    hot_set_hits(access_share, record_share, records_per_page, cached)
                }
                _ => top(cached * pages) + cached * spread,
            }
        }
    }
}

/// Pages of more records than this are taken to have the same share of hot records each.
const DRAWN_RECORDS_MAX: f64 = 1024.0;

/// Share of the accesses that go to the `cached` share of the pages with the most hot records.
fn hot_set_hits(access_share: f64, record_share: f64, records_per_page: f64, cached: f64) -> f64 {
    let (hot_accesses, hot) = (access_share.clamp(0.0, 1.0), record_share.clamp(0.0, 1.0));
    if hot_accesses <= hot || records_per_page > DRAWN_RECORDS_MAX {
        return cached;
    }
    let records = records_per_page.round().max(1.0);
    // Accesses of a hot and of a cold record, relative to the mean.
    let hot_weight = hot_accesses / hot.max(1e-12);
    let cold_weight = (1.0 - hot_accesses) / (1.0 - hot);
    let odds = hot.max(1e-12) / (1.0 - hot);
    let mut probabilities = vec![records * (-hot).ln_1p()];
    for drawn in 0..records as u32 {
        let more = f64::from(drawn) + 1.0;
        let last = probabilities.last().copied().unwrap_or_default();
        probabilities.push(last + ((records - f64::from(drawn)) / more * odds).ln());
    }
    let (mut pages, mut hits) = (0.0, 0.0);
    for (drawn, probability) in probabilities.iter().enumerate().rev() {
        let hot_records = drawn as f64;
        let weight = (hot_records * hot_weight + (records - hot_records) * cold_weight) / records;
        let share = probability.exp().min(cached - pages).max(0.0);
        pages += share;
        hits += share * weight;
    }
    hits.min(1.0)
}

/// The sum of 1 / i^exponent for i from 1 to `count`, continued to real counts: linear up to 1, then the
/// integral between the midpoints around the terms.
fn harmonic(exponent: f64) -> impl Fn(f64) -> f64 {
    let integral = move |x: f64| {
        if (exponent - 1.0).abs() < 1e-9 { x.ln() } else { x.powf(1.0 - exponent) / (1.0 - exponent) }
    };
    let first = integral(1.5);
    move |count| if count <= 1.0 { count.max(0.0) } else { 1.0 + integral(count + 0.5) - first }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEWS: [Skew; 4] = [
        Skew::Uniform,
        Skew::Zipf { exponent: 0.99 },
        Skew::Zipf { exponent: 1.2 },
        Skew::HotSet { access_share: 0.9, record_share: 0.1 },
    ];

    #[test]
    fn the_sum_of_a_zipf_distribution_is_met() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5] {
            for count in [1u32, 10, 1000, 100_000] {
                let sum: f64 = (1..=count).map(|i| f64::from(i).powf(-exponent)).sum();
                let got = harmonic(exponent)(f64::from(count));
                assert!((got / sum - 1.0).abs() < 0.04, "{exponent} {count}: {got} {sum}");
            }
        }
    }

    #[test]
    fn caches_of_more_pages_hit_more_and_never_less_than_uniform_accesses_would() {
        for skew in SKEWS {
            for per_page in [1.0, 10.0, 1000.0] {
                let mut last = 0.0;
                for step in 0..=100 {
                    let cached = f64::from(step) / 100.0;
                    let hits = skew.hit_share(1e6, per_page, cached);
                    assert!(hits >= last && hits >= cached - 1e-9, "{skew:?} {per_page} {cached}: {hits}");
                    last = hits;
                }
                assert!((last - 1.0).abs() < 1e-9, "{skew:?} {per_page}: {last}");
            }
        }
    }

    #[test]
    fn pages_of_many_records_hide_the_skew() {
        let zipf = Skew::Zipf { exponent: 0.99 };
        let of_records = zipf.hit_share(1e6, 1.0, 0.1);
        let of_pages = zipf.hit_share(1e6, 100.0, 0.1);
        assert!(of_records > 0.8 && of_pages < 0.65 && of_pages > 0.1, "{of_records} {of_pages}");
    }

    /// The approximation, compared with a drawn placement of records on pages.
    #[test]
    fn hits_of_a_drawn_placement_are_met() {
        use rand::seq::SliceRandom;
        const RECORDS: usize = 100_000;
        for (skew, slack) in [(SKEWS[1], 0.08), (SKEWS[2], 0.08), (SKEWS[3], 0.03)] {
            let mut weights: Vec<f64> = (1..=RECORDS)
                .map(|rank| {
                    let top = |rank: usize| skew.hit_share(RECORDS as f64, 1.0, rank as f64 / RECORDS as f64);
                    top(rank) - top(rank - 1)
                })
                .collect();
            weights.shuffle(&mut crate::test_support::generator(7));
            for per_page in [1usize, 10, 100] {
                let mut pages: Vec<f64> = weights.chunks(per_page).map(|page| page.iter().sum()).collect();
                pages.sort_by(|a, b| b.total_cmp(a));
                for cached in [0.05, 0.2, 0.5] {
                    let drawn: f64 = pages.iter().take((cached * pages.len() as f64) as usize).sum();
                    let got = skew.hit_share(RECORDS as f64, per_page as f64, cached);
                    assert!(
                        (got - drawn).abs() < slack,
                        "{skew:?} {per_page} {cached}: {got}, drawn {drawn}"
                    );
                }
            }
        }
    }
}
