//! A choice of the uncertain writes that survive a power cut.

use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::SECTOR_BYTES;

/// The fate of each uncertain write of a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// By write: whether it survives. Writes after the end do not survive.
    pub kept: Vec<bool>,
    /// The one write, if any, that survives in part.
    pub tear: Option<Tear>,
    /// Whether the ranges of writes that did not survive hold nonsense, rather than their previous content.
    pub is_spoilt: bool,
    /// Whether the drive is as short as it was before it grew without a flush.
    pub is_shorter: bool,
}

/// A torn write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tear {
    /// Number of the write.
    pub write: usize,
    /// Sectors of it that survive.
    pub left: Vec<Range<usize>>,
}

/// Number of choices in addition to the fixed ones: none, also with nonsense in their places, all, each
/// alone, all but each, all but each two of up to 8, and every prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Random subsets.
    pub subsets: usize,
    /// Torn writes, each torn at a border of sectors, of 4 KiB or of the write's half, or shorn of some of
    /// its units; the others survive, or not, or some of them.
    pub tears: usize,
}

/// Of more writes than these, not all pairs are left out in turn.
const PAIRS_OF_MAX: usize = 8;

impl Choices {
    /// The choices for uncertain writes of these numbers of sectors.
    pub fn of(self, writes: &[usize], random: &mut Pcg64) -> Vec<Choice> {
        let count = writes.len();
        let mut all = vec![whole(vec![false; count])];
        if count == 0 {
            return all;
        }
        all.push(Choice { is_spoilt: true, ..whole(vec![false; count]) });
        all.push(whole(vec![true; count]));
        for one in 0..count {
            all.push(whole((0..count).map(|write| write == one).collect()));
            all.push(whole((0..count).map(|write| write != one).collect()));
            all.push(whole((0..count).map(|write| write < one).collect()));
        }
        if count <= PAIRS_OF_MAX {
            let pairs = (0..count).flat_map(|one| (0..one).map(move |other| (one, other)));
            let without =
                pairs.map(|pair| (0..count).map(|write| write != pair.0 && write != pair.1).collect());
            all.extend(without.map(whole));
        }
        if count > 2 {
            all.extend(
                (0..self.subsets)
                    .map(|_| Choice { is_spoilt: random.random_bool(0.2), ..whole(some(count, random)) }),
            );
        }
        all.extend((0..self.tears).map(|_| torn(writes, random)));
        all
    }
}

impl Choice {
    /// The fate of a write, for people.
    pub fn fate(&self, write: usize) -> &'static str {
        match &self.tear {
            Some(tear) if tear.write == write => ": torn",
            _ if self.kept.get(write).is_some_and(|kept| *kept) => ": kept",
            _ if self.is_spoilt => ": spoilt",
            _ => ": lost",
        }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept: Vec<usize> = (0..self.kept.len()).filter(|write| self.kept[*write]).collect();
        write!(formatter, "of {} uncertain writes kept {kept:?}", self.kept.len())?;
        if let Some(tear) = &self.tear {
            write!(formatter, ", of {} the sectors {:?}", tear.write, tear.left)?;
        }
        formatter.write_str(if self.is_spoilt { ", the others spoilt" } else { "" })?;
        formatter.write_str(if self.is_shorter { ", not the new length" } else { "" })
    }
}

fn whole(kept: Vec<bool>) -> Choice {
    Choice { kept, ..Choice::default() }
}

/// Each with a probability that is itself drawn, so that few and many come up as often.
fn some(count: usize, random: &mut Pcg64) -> Vec<bool> {
    let share = random.random::<f64>();
    (0..count).map(|_| random.random_bool(share)).collect()
}

fn torn(writes: &[usize], random: &mut Pcg64) -> Choice {
    let count = writes.len();
    let write = random.random_range(0..count);
    let sectors = writes[write];
    let kept = match random.random_range(0..4) {
        0 => vec![false; count],
        1 => some(count, random),
        _ => vec![true; count],
    };
    let unit = [1, 4096 / SECTOR_BYTES, sectors.div_ceil(2).max(1)][random.random_range(0..3)];
    let border = random.random_range(0..=sectors / unit) * unit;
    let one = |left: Range<usize>| std::iter::once(left).collect();
    let left = match random.random_range(0..4) {
        // Shorn: any units of it.
        0 => {
            let units = sectors.div_ceil(unit);
            let kept = some(units, random).into_iter().enumerate().filter(|(_, kept)| *kept);
            kept.map(|(number, _)| number * unit..sectors.min((number + 1) * unit)).collect()
        }
        // Its end.
        1 => one(border..sectors),
        // Its beginning.
        _ => one(0..border),
    };
    let is_spoilt = random.random_bool(0.2);
    Choice { kept, tear: Some(Tear { write, left }), is_spoilt, is_shorter: false }
}
