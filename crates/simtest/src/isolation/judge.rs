//! Derives the dependencies in a history, and finds anomalies in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::graph::{Cycle, Graph};
use super::history::{History, Key, Operation, Outcome, Transaction};

/// Kinds of anomalies. Names in brackets are Adya's and Elle's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A number was read that no transaction has appended, or that is there twice.
    Garbage,
    /// A write of an aborted transaction was read (G1a).
    AbortedRead,
    /// An intermediate write of a transaction, which it replaced later, was read by another one (G1b).
    IntermediateRead,
    /// A transaction did not see its own writes, or saw a list change that it did not write to.
    InternalRead,
    /// Two reads show the same list in different orders.
    IncompatibleOrder,
    /// A committed write is not there later on.
    LostWrite,
    /// Two committed transactions changed the same version of a list (P4).
    LostUpdate,
    /// Writes of two transactions in each other's midst (G0).
    DirtyWrite,
    /// Two transactions have each seen, or overwritten, a write of the other one (G1c).
    CircularFlow,
    /// A transaction has seen one write of a commit and missed another one (G-single).
    ReadSkew,
    /// Two commits were seen in both orders (G-nonadjacent).
    LongFork,
    /// A transaction did not see, or overwrote without seeing it, a write that had been committed before it
    /// began.
    Stale,
    /// Transactions that each read a list which another one changed, without any other anomaly (G2-item):
    /// snapshot isolation allows it.
    WriteSkew,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Kind of anomaly.
    pub kind: Kind,
    /// The transactions and lists involved, for people.
    pub story: String,
}

/// Findings about a history.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// All anomalies, write skew included.
    pub anomalies: Vec<Anomaly>,
    /// Transactions that are committed, or must have been.
    pub committed: usize,
    /// Dependencies between transactions.
    pub dependencies: usize,
    /// Transactions before a crash that read writes which the crash took away, before these were durable;
    /// they are left out.
    pub read_too_early: usize,
}

/// Why one transaction comes before another one, or its beginning before that one's commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It wrote the version before (ww).
    Overwritten(Key),
    /// It made a write that the other one read (wr).
    Seen(Key),
    /// It read the version before (rw).
    Missed(Key),
    /// It had returned before the other one began.
    Earlier,
    /// A transaction begins before it ends.
    Own,
}

impl Kind {
    /// Whether the store may let it happen.
    pub fn is_allowed(self) -> bool {
        self == Self::WriteSkew
    }
}

impl Judgement {
    /// Judges `history`.
    pub fn of(history: &History) -> Self {
        let mut judge = Judge::new(history);
        judge.leave_out_what_a_crash_took();
        judge.look_inside();
        judge.find_orders();
        judge.find_lost();
        judge.find_cycles();
        judge.judgement
    }

    /// The anomalies that the store does not allow.
    pub fn violations(&self) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().filter(|anomaly| !anomaly.kind.is_allowed())
    }

    /// Kinds of the anomalies found.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.anomalies.iter().map(|anomaly| anomaly.kind).collect()
    }
}

/// Effects of a transaction on one list.
#[derive(Clone, Default)]
struct Touch {
    /// The list as the transaction found it before its first append.
    found: Option<Vec<u64>>,
    appended: Vec<u64>,
}

struct Judge<'a> {
    all: Vec<&'a Transaction>,
    /// Accesses to lists, by transaction.
    touches: Vec<BTreeMap<Key, Touch>>,
    /// The transaction that appended each number.
    writers: HashMap<(Key, u64), usize>,
    /// The longest list of each key.
    orders: BTreeMap<Key, Vec<u64>>,
    committed: Vec<bool>,
    judgement: Judgement,
}

impl<'a> Judge<'a> {
    fn new(history: &'a History) -> Self {
        let mut judge = Self {
            all: history.transactions.iter().collect(),
            touches: Vec::new(),
            writers: HashMap::new(),
            orders: BTreeMap::new(),
            committed: Vec::new(),
            judgement: Judgement::default(),
        };
        judge.index();
        judge
    }

    /// From the transactions: the lists they touched, and which transactions are committed.
    fn index(&mut self) {
        self.touches = self.all.iter().map(|transaction| touches(transaction)).collect();
        self.writers.clear();
        for (index, transaction) in self.all.iter().enumerate() {
            self.writers.extend(transaction.appends().map(|append| (append, index)));
        }
        let seen: BTreeSet<usize> = (self.touches.iter().enumerate())
            .flat_map(|(reader, touches)| touches.iter().map(move |touch| (reader, touch)))
            .flat_map(|(reader, (key, touch))| {
                touch.found.iter().flatten().map(move |number| (reader, (*key, *number)))
            })
            .filter_map(|(reader, append)| self.writers.get(&append).filter(|writer| **writer != reader))
            .copied()
            .collect();
        let is_committed = |(index, transaction): (usize, &&Transaction)| match transaction.outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => seen.contains(&index),
        };
        self.committed = self.all.iter().enumerate().map(is_committed).collect();
        self.judgement.committed = self.committed.iter().filter(|is| **is).count();
    }

    fn note(&mut self, kind: Kind, story: String) {
        self.judgement.anomalies.push(Anomaly { kind, story });
    }

    /// A commit can be seen before it is durable, and then not survive; a transaction that has seen such a
    /// commit and commits something does not survive either. But a transaction that only reads has then read
    /// a state that did not survive.
    fn leave_out_what_a_crash_took(&mut self) {
        let mut last: BTreeMap<Key, (u64, &[u64])> = BTreeMap::new();
        for (transaction, touches) in self.all.iter().zip(&self.touches) {
            for (key, found) in touches.iter().filter_map(|(key, touch)| Some((*key, touch.found.as_ref()?)))
            {
                let newest = last.entry(key).or_default();
                if transaction.begun >= newest.0 {
                    *newest = (transaction.begun, found);
                }
            }
        }
        let is_gone = |key: Key, number: u64| {
            let writer = self.writers.get(&(key, number)).map(|writer| self.all[*writer].outcome);
            writer == Some(Outcome::Unknown)
                && last.get(&key).is_some_and(|(_, list)| !list.contains(&number))
        };
        let was_early = |(transaction, touches): (&&Transaction, &BTreeMap<Key, Touch>)| {
            let has_told = transaction.outcome == Outcome::Committed && !transaction.is_reader();
            let mut read = touches
                .iter()
                .flat_map(|(key, touch)| touch.found.iter().flatten().map(move |number| (*key, *number)));
            !has_told && read.any(|(key, number)| is_gone(key, number))
        };
        let early: Vec<bool> = self.all.iter().zip(&self.touches).map(was_early).collect();
        let mut number = 0;
        self.all.retain(|_| {
            number += 1;
            !early[number - 1]
        });
        self.judgement.read_too_early = early.iter().filter(|is| **is).count();
        self.index();
    }

    /// Checks each transaction by itself.
    fn look_inside(&mut self) {
        for index in 0..self.all.len() {
            let transaction = self.all[index];
            let mut expected: BTreeMap<Key, (bool, Vec<u64>)> = BTreeMap::new();
            for operation in &transaction.operations {
                match operation {
                    Operation::Append(key, number) => expected.entry(*key).or_default().1.push(*number),
                    Operation::Read(key, list) => {
                        let before = expected.insert(*key, (true, list.clone()));
                        let fits = before.is_none_or(|(known, before)| match known {
                            true => before == *list,
                            false => list.ends_with(&before),
                        });
                        if !fits {
                            self.note(Kind::InternalRead, format!("{operation} in {transaction}"));
                        }
                    }
                }
            }
        }
    }

    /// Finds the order of each list's writes, and impossible reads.
    fn find_orders(&mut self) {
        for touches in &self.touches {
            for (key, touch) in touches {
                let order = self.orders.entry(*key).or_default();
                if let Some(found) = &touch.found
                    && found.len() > order.len()
                {
                    order.clone_from(found);
                }
            }
        }
        for index in 0..self.all.len() {
            for (key, touch) in self.touches[index].clone() {
                self.look_at_read(index, key, touch.found.as_deref().unwrap_or_default());
            }
        }
    }

    fn look_at_read(&mut self, reader: usize, key: Key, found: &[u64]) {
        let read_by = self.all[reader];
        if !self.orders[&key].starts_with(found) {
            let story = format!("{:?} is not the beginning of {:?}: {read_by}", found, self.orders[&key]);
            self.note(Kind::IncompatibleOrder, story);
        }
        let mut seen = BTreeSet::new();
        for number in found {
            let writer = self.writers.get(&(key, *number)).copied();
            match writer {
                Some(writer) if !seen.insert(*number) => {
                    self.note(
                        Kind::Garbage,
                        format!("{number} of {} is there twice: {read_by}", self.all[writer]),
                    );
                }
                None => self.note(Kind::Garbage, format!("{number} was never written: {read_by}")),
                Some(writer) if self.all[writer].outcome == Outcome::Aborted => {
                    self.note(Kind::AbortedRead, format!("{} was seen by {read_by}", self.all[writer]));
                }
                Some(_) => {}
            }
        }
        let last = found.last().and_then(|last| Some((*last, *self.writers.get(&(key, *last))?)));
        if let Some((last, writer)) = last
            && writer != reader
            && self.touches[writer].get(&key).and_then(|touch| touch.appended.last()) != Some(&last)
        {
            self.note(
                Kind::IntermediateRead,
                format!("{last} of {} was seen by {read_by}", self.all[writer]),
            );
        }
    }

    /// Committed writes that are gone, and those that began from the same version.
    fn find_lost(&mut self) {
        let mut changers: BTreeMap<(Key, Option<u64>), Vec<usize>> = BTreeMap::new();
        for index in (0..self.all.len()).filter(|index| self.committed[*index]) {
            for (key, touch) in &self.touches[index] {
                if let Some(found) = touch.found.as_ref().filter(|_| !touch.appended.is_empty()) {
                    changers.entry((*key, found.last().copied())).or_default().push(index);
                }
            }
        }
        let mut stories = Vec::new();
        for ((key, version), changers) in changers {
            if let [one, other, ..] = changers[..] {
                let story =
                    format!("both changed {version:?} of {key}: {}\n{}", self.all[one], self.all[other]);
                stories.push((Kind::LostUpdate, story));
            }
        }
        for (index, transaction) in self.all.iter().enumerate() {
            let is_missing = |(key, number): &(Key, u64)| {
                let is_there = self.orders.get(key).is_some_and(|order| order.contains(number));
                let looked = |(later, touches): (&&Transaction, &BTreeMap<Key, Touch>)| {
                    later.begun > transaction.ended
                        && touches.get(key).is_some_and(|touch| touch.found.is_some())
                };
                !is_there && self.all.iter().zip(&self.touches).any(looked)
            };
            if transaction.outcome == Outcome::Committed
                && let Some((key, number)) = transaction.appends().find(is_missing)
            {
                stories.push((
                    Kind::LostWrite,
                    format!("{number} is not in {key} later on: {}", self.all[index]),
                ));
            }
        }
        stories.into_iter().for_each(|(kind, story)| self.note(kind, story));
    }

    /// Calls `see` with every dependency between two transactions.
    fn dependencies(&self, mut see: impl FnMut(usize, usize, Why)) {
        let writer = |key: Key, number: u64| {
            self.writers.get(&(key, number)).copied().filter(|writer| self.committed[*writer])
        };
        for (key, order) in &self.orders {
            for pair in order.windows(2) {
                if let (Some(one), Some(other)) = (writer(*key, pair[0]), writer(*key, pair[1]))
                    && one != other
                {
                    see(one, other, Why::Overwritten(*key));
                }
            }
        }
        for (reader, touches) in self.touches.iter().enumerate() {
            for (key, found) in touches.iter().filter_map(|(key, touch)| Some((*key, touch.found.as_ref()?)))
            {
                if let Some(seen) =
                    found.last().and_then(|last| writer(key, *last)).filter(|seen| *seen != reader)
                {
                    see(seen, reader, Why::Seen(key));
                }
                let next = self.orders[&key].get(found.len()).and_then(|next| writer(key, *next));
                if let Some(next) = next.filter(|next| *next != reader) {
                    see(reader, next, Why::Missed(key));
                }
            }
        }
    }

    /// Snapshot isolation holds if and only if beginnings and commits can be put into one order: each
    /// transaction begins after the commits of the versions it saw and overwrote, and after all that had
    /// returned before, and before the commits of the versions it missed. (The remaining cycles have two
    /// misses in a row.)
    fn find_cycles(&mut self) {
        let count = self.all.len();
        let (begin, commit) = (|index: usize| 2 * index, |index: usize| 2 * index + 1);
        let mut snapshots = Graph::new(3 * count);
        let mut serial = Graph::new(count);
        let mut dependencies = 0;
        self.dependencies(|one, other, why| {
            dependencies += 1;
            match why {
                Why::Missed(_) => snapshots.add(begin(one), commit(other), why),
                _ => snapshots.add(commit(one), begin(other), why),
            }
            if self.committed[one] && self.committed[other] {
                serial.add(one, other, why);
            }
        });
        (0..count).for_each(|index| snapshots.add(begin(index), commit(index), Why::Own));
        let mut found = snapshots.cycles();
        if found.is_empty() {
            // Whatever is wrong without the time says more.
            self.add_time(&mut snapshots);
            found = snapshots.cycles();
        }
        let found = found.iter().map(|cycle| self.anomaly(cycle, 2));
        let skews = serial.cycles().into_iter().filter(is_skew).map(|cycle| {
            let story = self.anomaly(&cycle, 1).story;
            Anomaly { kind: Kind::WriteSkew, story }
        });
        let found: Vec<_> = found.chain(skews).collect();
        self.judgement.anomalies.extend(found);
        self.judgement.dependencies = dependencies;
    }

    /// The order in time, through a chain of moments at which transactions returned.
    fn add_time(&self, snapshots: &mut Graph<Why>) {
        let count = self.all.len();
        let mut ended: Vec<(u64, usize)> = (0..count)
            .filter(|index| self.all[*index].outcome == Outcome::Committed)
            .map(|index| (self.all[index].ended, index))
            .collect();
        ended.sort_unstable();
        let moment = |place: usize| 2 * count + place;
        for (place, (_, index)) in ended.iter().enumerate() {
            snapshots.add(2 * index + 1, moment(place), Why::Earlier);
            if place + 1 < ended.len() {
                snapshots.add(moment(place), moment(place + 1), Why::Earlier);
            }
        }
        for (index, transaction) in self.all.iter().enumerate() {
            if let Some(place) = ended.partition_point(|(end, _)| *end < transaction.begun).checked_sub(1) {
                snapshots.add(moment(place), 2 * index, Why::Earlier);
            }
        }
    }

    /// Classifies a cycle of a graph in which each transaction has `nodes` nodes.
    fn anomaly(&self, cycle: &Cycle<Why>, nodes: usize) -> Anomaly {
        let whys: Vec<Why> = cycle.iter().map(|(_, why)| *why).collect();
        let missed: Vec<Key> = whys
            .iter()
            .filter_map(|why| if let Why::Missed(key) = why { Some(*key) } else { None })
            .collect();
        let overwritten = |key: Key| whys.contains(&Why::Overwritten(key));
        let kind = match missed[..] {
            [key] if overwritten(key) => Kind::LostUpdate,
            _ if whys.contains(&Why::Earlier) => Kind::Stale,
            [] if whys.iter().any(|why| matches!(why, Why::Seen(_))) => Kind::CircularFlow,
            [] => Kind::DirtyWrite,
            [_] => Kind::ReadSkew,
            _ => Kind::LongFork,
        };
        let mut story = String::new();
        for (node, why) in cycle {
            let transaction = self.all.get(node / nodes);
            match (transaction, why) {
                (Some(transaction), Why::Overwritten(key)) => {
                    story += &format!("{transaction}\n  {key} was overwritten by\n")
                }
                (Some(transaction), Why::Seen(key)) => {
                    story += &format!("{transaction}\n  {key} was seen by\n")
                }
                (Some(transaction), Why::Missed(key)) => {
                    story += &format!("{transaction}\n  missed {key} of\n")
                }
                (Some(transaction), Why::Earlier) => story += &format!("{transaction}\n  returned before\n"),
                (_, Why::Own) | (None, _) => {}
            }
        }
        Anomaly { kind, story: story + "the first of these" }
    }
}

/// Whether two misses follow each other.
fn is_skew(cycle: &Cycle<Why>) -> bool {
    let is_miss = |place: usize| matches!(cycle[place % cycle.len()].1, Why::Missed(_));
    (0..cycle.len()).any(|place| is_miss(place) && is_miss(place + 1))
}

fn touches(transaction: &Transaction) -> BTreeMap<Key, Touch> {
    let mut touches: BTreeMap<Key, Touch> = BTreeMap::new();
    for operation in &transaction.operations {
        match operation {
            Operation::Append(key, number) => touches.entry(*key).or_default().appended.push(*number),
            Operation::Read(key, list) => {
                let touch = touches.entry(*key).or_default();
                if touch.appended.is_empty() && touch.found.is_none() {
                    touch.found = Some(list.clone());
                }
            }
        }
    }
    touches
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.kind, self.story)
    }
}
