//! Values at measured concurrencies, and the place of another concurrency between them.

/// The values at the measured concurrencies around `concurrency`, and its place between them: 0 at the lower,
/// 1 at the upper, linear in the logarithm. Beyond the measured ones both values are the nearest, and the
/// place is 1. `None` without values. Concurrencies are positive and rise.
pub(crate) fn neighbours<T>(by_concurrency: &[(f64, T)], concurrency: f64) -> Option<(&T, &T, f64)> {
    let above = by_concurrency.iter().position(|(k, _)| *k >= concurrency);
    let (upper_k, upper) = match above {
        Some(place) => by_concurrency.get(place),
        None => by_concurrency.last(),
    }?;
    let below = above.and_then(|place| by_concurrency.get(place.checked_sub(1)?));
    let Some((lower_k, lower)) = below.filter(|(k, _)| k < upper_k) else { return Some((upper, upper, 1.0)) };
    let place = (concurrency / lower_k).ln() / (upper_k / lower_k).ln();
    Some((lower, upper, if *upper_k == concurrency { 1.0 } else { place }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_linear_in_the_logarithm_and_the_nearest_value_stands_beyond() {
        let measured = [(1.0, 'a'), (4.0, 'b'), (64.0, 'c')];
        let at = |concurrency| neighbours(&measured, concurrency).unwrap();
        assert_eq!(at(0.5), (&'a', &'a', 1.0));
        assert_eq!(at(1.0), (&'a', &'a', 1.0));
        assert_eq!(at(2.0), (&'a', &'b', 0.5));
        assert_eq!(at(4.0), (&'a', &'b', 1.0));
        assert_eq!(at(8.0), (&'b', &'c', 0.25));
        assert_eq!(at(100.0), (&'c', &'c', 1.0));
        assert_eq!(neighbours::<char>(&[], 1.0), None);
    }
}
