//! Lists of points without repetitions.

/// Each of them once, in the order in which they were given: a point that is asked for twice is one point.
pub(super) fn distinct<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for one in given {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_ones_stays() {
        assert_eq!(distinct(&[2, 1, 2, 3, 1]), [2, 1, 3]);
    }
}
