//! Which extents are free.

use super::directory::Run;

/// See the module.
#[derive(Debug)]
pub(super) struct Space {
    used: Vec<bool>,
    /// Given up, but a directory on the device may still have them.
    leaving: Vec<Run>,
}

impl Space {
    pub fn new(extents: u32, runs: impl Iterator<Item = Run>) -> Self {
        let mut used = vec![false; extents as usize];
        for run in runs {
            used[range(run)].fill(true);
        }
        Self { used, leaving: Vec::new() }
    }

    /// Extents of the device.
    pub fn extents(&self) -> u32 {
        self.used.len() as u32
    }

    /// Takes up to `wanted` free extents in a row: after `last` if there are any, or else from the first gap
    /// with as many, or from the longest one.
    pub fn take(&mut self, last: Option<Run>, wanted: u32) -> Option<Run> {
        let behind = last.map(|run| Run { first: run.first + run.count, count: wanted });
        let run = behind.map(|run| self.gap_at(run.first, wanted)).filter(|run| run.count > 0);
        let run = run.or_else(|| self.gap(wanted))?;
        self.used[range(run)].fill(true);
        Some(run)
    }

    fn gap_at(&self, first: u32, wanted: u32) -> Run {
        let rest = self.used.get(first as usize..).unwrap_or_default();
        let count = rest.iter().take(wanted as usize).take_while(|used| !**used).count();
        Run { first, count: count as u32 }
    }

    fn gap(&self, wanted: u32) -> Option<Run> {
        let (mut at, mut longest) = (0, None::<Run>);
        while at < self.used.len() as u32 {
            let gap = self.gap_at(at, wanted);
            if gap.count == wanted {
                return Some(gap);
            }
            if gap.count > longest.map_or(0, |run| run.count) {
                longest = Some(gap);
            }
            at += gap.count + 1;
        }
        longest
    }

    /// Gives extents up; they are free after [`Space::release`].
    pub fn leave(&mut self, run: Run) {
        self.leaving.push(run);
    }

    pub fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// No directory that counts has the extents that were given up.
    pub fn release(&mut self) {
        for run in self.leaving.drain(..) {
            self.used[range(run)].fill(false);
        }
    }
}

fn range(run: Run) -> std::ops::Range<usize> {
    run.first as usize..(run.first + run.count) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u32, count: u32) -> Run {
        Run { first, count }
    }

    #[test]
    fn files_stay_in_one_piece_while_they_can() {
        let mut space = Space::new(10, [run(0, 2)].into_iter());
        assert_eq!(space.take(Some(run(0, 2)), 3), Some(run(2, 3)));
        assert_eq!(space.take(None, 2), Some(run(5, 2)));
        assert_eq!(space.take(Some(run(2, 3)), 4), Some(run(7, 3)), "the longest gap");
        assert_eq!(space.take(None, 1), None);
    }

    #[test]
    fn extents_are_free_when_it_is_durable_that_they_are() {
        let mut space = Space::new(2, [run(0, 2)].into_iter());
        space.leave(run(1, 1));
        assert_eq!(space.take(None, 1), None);
        space.release();
        assert_eq!(space.take(None, 1), Some(run(1, 1)));
    }
}
