//! Accesses that wait for the arm.

use std::collections::VecDeque;

use super::cache::Dirty;
use super::geometry::HeadPosition;

/// Times that an access may be passed over for each place in the queue; then it is the next, however far away
/// it is.
const PATIENCE: u32 = 2;

/// One access of the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub place: HeadPosition,
    pub purpose: Purpose,
}

impl Access {
    pub fn end(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// The reason for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Read {
        command: u32,
    },
    /// A write that does not complete in the cache.
    Write {
        command: u32,
        version: u64,
    },
    /// A write of a range from the cache to the platters.
    WriteBack(Dirty),
}

/// Commands in order of arrival.
#[derive(Debug)]
pub(super) struct Queue {
    accesses: VecDeque<Access>,
    depth: usize,
    patience: u32,
    /// How many times the oldest command was passed over.
    passed_over: u32,
    /// The same count for the oldest range in the cache.
    write_back_passed_over: u32,
}

/// The next step of the arm.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// The command at this place of the queue.
    Command(usize),
    /// A range of the cache, and whether it is the oldest.
    WriteBack(Access, bool),
}

impl Queue {
    /// Chooses among the `depth` oldest.
    pub fn new(depth: u32) -> Self {
        Self {
            accesses: VecDeque::new(),
            depth: depth as usize,
            patience: PATIENCE.saturating_mul(depth),
            passed_over: 0,
            write_back_passed_over: 0,
        }
    }

    pub fn push(&mut self, access: Access) {
        self.accesses.push_back(access);
    }

    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }

    pub fn clear(&mut self) {
        self.accesses.clear();
        (self.passed_over, self.write_back_passed_over) = (0, 0);
    }

    /// The access that `cost` says is reached soonest, among commands and `write_backs`, which are ranges of
    /// the cache, oldest first; the older one of equals.
    pub fn choose(
        &self,
        write_backs: impl Iterator<Item = Access>,
        cost: impl Fn(&Access) -> u64,
    ) -> Option<Choice> {
        if self.passed_over >= self.patience && !self.accesses.is_empty() {
            return Some(Choice::Command(0));
        }
        let mut write_backs = write_backs.take(self.depth).enumerate().peekable();
        if self.write_back_passed_over >= self.patience
            && let Some((_, oldest)) = write_backs.peek()
        {
            return Some(Choice::WriteBack(*oldest, true));
        }
        let commands = self.accesses.iter().take(self.depth).enumerate();
        let commands = commands.map(|(index, access)| (cost(access), Choice::Command(index)));
        let write_backs =
            write_backs.map(|(index, access)| (cost(&access), Choice::WriteBack(access, index == 0)));
        commands.chain(write_backs).min_by_key(|(cost, _)| *cost).map(|(_, choice)| choice)
    }

    /// Removes the chosen access from the queue.
    pub fn take(&mut self, choice: Choice) -> Option<Access> {
        match choice {
            Choice::Command(index) => {
                self.passed_over = if index == 0 { 0 } else { self.passed_over + 1 };
                self.accesses.remove(index)
            }
            Choice::WriteBack(access, oldest) => {
                self.passed_over += u32::from(!self.accesses.is_empty());
                self.write_back_passed_over = if oldest { 0 } else { self.write_back_passed_over + 1 };
                Some(access)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(command: u32, cylinder: u32) -> Access {
        Access {
            offset_bytes: 0,
            length_bytes: 512,
            place: HeadPosition { cylinder, angle_ns: 0 },
            purpose: Purpose::Read { command },
        }
    }

    fn next(queue: &mut Queue) -> Option<u32> {
        let choice = queue.choose(std::iter::empty(), |access| u64::from(access.place.cylinder))?;
        match queue.take(choice)?.purpose {
            Purpose::Read { command } => Some(command),
            _ => None,
        }
    }

    #[test]
    fn the_nearest_of_the_oldest_goes_first() {
        let mut queue = Queue::new(3);
        for (command, cylinder) in [(0, 50), (1, 20), (2, 30), (3, 1)] {
            queue.push(access(command, cylinder));
        }
        let order: Vec<u32> = std::iter::from_fn(|| next(&mut queue)).collect();
        // The fourth is not seen before one of the first three has gone.
        assert_eq!(order, [1, 3, 2, 0]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_queue_of_one_keeps_the_order() {
        let mut queue = Queue::new(1);
        for (command, cylinder) in [(0, 50), (1, 20), (2, 30)] {
            queue.push(access(command, cylinder));
        }
        assert_eq!(std::iter::from_fn(|| next(&mut queue)).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn nothing_waits_for_ever() {
        let mut queue = Queue::new(2);
        queue.push(access(0, 1000));
        for turn in 1.. {
            queue.push(access(turn, 1));
            if next(&mut queue) == Some(0) {
                assert_eq!(turn, 2 * PATIENCE + 1);
                return;
            }
            assert!(turn < 100, "the far one never had its turn");
        }
    }
}
