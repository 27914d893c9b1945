//! The order of both sides' runs.

/// Settings that a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The engine's defaults.
    Default,
    /// The advised settings.
    Advised,
}

impl Side {
    pub const ALL: [Self; 2] = [Self::Default, Self::Advised];

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Default => "the defaults",
            Self::Advised => "the advised settings",
        }
    }

    /// Name of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Advised => "advised",
        }
    }
}

/// Both sides in each round, and each side first in every other round: A drift of the machine then does not
/// favour either.
pub(super) fn turns(rounds: u32) -> impl Iterator<Item = [Side; 2]> {
    (0..rounds).map(|round| match round % 2 {
        0 => [Side::Default, Side::Advised],
        _ => [Side::Advised, Side::Default],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_first_in_every_other_round() {
        let order: Vec<Side> = turns(3).flatten().collect();
        use Side::{Advised, Default};
        assert_eq!(order, [Default, Advised, Advised, Default, Default, Advised]);
    }
}
