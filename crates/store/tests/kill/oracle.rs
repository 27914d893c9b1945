//! What the store must hold, kept by a process that no kill meets.

use std::collections::BTreeMap;
use std::fmt;

use flashgrain::{Db, Tree};

use super::work::{
    ACTORS, SWEEPER, SWEPT_RECORDS, TREES, Trees, WRITERS, commit, number_in, swept, takes_ticket,
};

/// How far an actor is known to be, and may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// The last step that was acknowledged as durable.
    pub acknowledged: u64,
    /// The last that was begun.
    pub submitted: u64,
}

impl Bounds {
    fn contains(self, number: u64) -> bool {
        (self.acknowledged..=self.submitted).contains(&number)
    }

    /// Whether a crash may have left part of this step.
    fn may_be_under_way(self, step: u64) -> bool {
        self.acknowledged < step && step <= self.submitted
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} acknowledged, {} submitted", self.acknowledged, self.submitted)
    }
}

/// The writers' records as of some commit of each.
#[derive(Clone, Default)]
pub struct Oracle {
    done: [u64; WRITERS],
    trees: [BTreeMap<String, Vec<u8>>; TREES],
}

impl Oracle {
    /// Takes what the store holds for true if it may be, and says in words what is wrong otherwise; the
    /// bounds are then as narrow as what was found.
    pub fn accept(&mut self, db: &Db, bounds: &mut [Bounds; ACTORS]) -> Result<(), String> {
        let trees = Trees::of(db);
        for (writer, bounds) in bounds.iter_mut().take(WRITERS).enumerate() {
            let found = trees.commits_of(writer);
            if !bounds.contains(found) {
                return Err(format!("writer {writer}: {bounds}, {found} found"));
            }
            self.advance(writer, found);
            *bounds = Bounds { acknowledged: found, submitted: found };
        }
        for (number, (tree, expected)) in trees.written.iter().zip(&self.trees).enumerate() {
            compare(tree, expected).map_err(|what| format!("tree {number}: {what}"))?;
        }
        self.check_tickets(&trees.tickets)?;
        let at = accept_swept(&trees.swept, bounds[SWEEPER])?;
        bounds[SWEEPER] = at;
        db.check().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// How many commits there are.
    pub fn commits(&self) -> u64 {
        self.done.iter().sum()
    }

    fn advance(&mut self, writer: usize, to: u64) {
        for number in self.done[writer] + 1..=to {
            let commit = commit(writer, number);
            if let Some((tree, from, to)) = commit.range {
                let gone: Vec<String> =
                    self.trees[tree].range(from..to).map(|(key, _)| key.clone()).collect();
                gone.iter().for_each(|key| drop(self.trees[tree].remove(key)));
            }
            for ((tree, key), value) in commit.writes {
                match value {
                    Some(value) => drop(self.trees[tree].insert(key, value)),
                    None => drop(self.trees[tree].remove(&key)),
                }
            }
        }
        self.done[writer] = to;
    }

    /// Each ticket is there once and without gaps, so that no commit is lost that a later one of another
    /// writer has seen; and exactly the commits that are in the store have one.
    fn check_tickets(&self, tickets: &Tree) -> Result<(), String> {
        let mut last = [0; WRITERS];
        for (expected, record) in (1_u64..).zip(tickets.iter().map_err(|error| error.to_string())?) {
            let (ticket, holder) = record.map_err(|error| error.to_string())?;
            if ticket[..] != expected.to_be_bytes() {
                return Err(format!(
                    "ticket {expected} is missing: a commit was lost that a later one has seen"
                ));
            }
            let (number, writer) = (number_in(&holder), number_in(&holder[8..]) as usize);
            let next = (last[writer] + 1..).find(|number| takes_ticket(*number));
            if next != Some(number) || number > self.done[writer] {
                return Err(format!(
                    "ticket {expected}: commit {number} of writer {writer}, which has {}; its next with a ticket is {next:?}",
                    self.done[writer]
                ));
            }
            last[writer] = number;
        }
        for (writer, last) in last.into_iter().enumerate() {
            if let Some(missing) = (last + 1..=self.done[writer]).find(|number| takes_ticket(*number)) {
                return Err(format!("commit {missing} of writer {writer} has lost its ticket"));
            }
        }
        Ok(())
    }
}

fn compare(tree: &Tree, expected: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let mut expected = expected.iter();
    for found in tree.iter().map_err(|error| error.to_string())? {
        let (key, value) = found.map_err(|error| error.to_string())?;
        let due = expected.next();
        if due.is_none_or(|(due_key, due_value)| key[..] != *due_key.as_bytes() || value[..] != due_value[..])
        {
            return Err(format!(
                "{:?} of {} bytes where {:?} was committed",
                String::from_utf8_lossy(&key),
                value.len(),
                due.map(|(key, value)| (key, value.len()))
            ));
        }
    }
    expected.next().map_or(Ok(()), |(key, _)| Err(format!("{key:?} is lost")))
}

/// The swept tree is empty, or has consecutive records of one generation: the first while it was being
/// loaded, the last while it was being removed. At which step that is.
fn accept_swept(tree: &Tree, bounds: Bounds) -> Result<Bounds, String> {
    let mut found: Option<(u64, u64, u64)> = None;
    for record in tree.iter().map_err(|error| error.to_string())? {
        let (key, value) = record.map_err(|error| error.to_string())?;
        let (at, generation) = (u64::from_be_bytes(key[..].try_into().unwrap()), number_in(&value));
        let (first, end, _) = *found.get_or_insert((at, at, generation));
        if end != at
            || value[..] != swept(generation)
            || found.is_some_and(|(_, _, first)| first != generation)
        {
            return Err(format!("swept record {at} of generation {generation} follows {found:?}"));
        }
        found = Some((first, at + 1, generation));
    }
    let done = |step| Bounds { acknowledged: step, submitted: step };
    let under_way = |step| Bounds { acknowledged: step - 1, submitted: step };
    let at = match found {
        Some((0, SWEPT_RECORDS, generation)) => done(2 * generation),
        Some((0, _, generation)) => under_way(2 * generation),
        Some((_, SWEPT_RECORDS, generation)) => under_way(2 * generation + 1),
        // Loaded in part when one child was killed, and removed in part when the next one was.
        Some((_, _, generation)) => {
            Bounds { acknowledged: 2 * generation - 1, submitted: 2 * generation + 1 }
        }
        // Removed, or not yet loaded; the first step is 2, as if a generation 0 had been removed before.
        None if bounds.submitted % 2 == 1 || bounds.submitted == 0 => done(bounds.submitted),
        None => done(bounds.submitted - 1),
    };
    let possible = if at.acknowledged == at.submitted {
        bounds.contains(at.submitted)
    } else {
        (at.acknowledged + 1..=at.submitted).all(|step| bounds.may_be_under_way(step))
    };
    if !possible {
        return Err(format!("sweeper: {bounds}, and there are {found:?}"));
    }
    Ok(at)
}
