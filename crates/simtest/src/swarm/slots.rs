//! The trees of a store, each in a slot that all tasks see.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain::{AppendOperator, Db, Error, Tree, TreeOptions};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::feature::{Feature, Features};
use super::keys::Keys;
use super::kinds;
use super::site::Site;
use crate::world::{Change, Content, MixedOperator, Shared};

/// The tree of the history that has the names of all others.
pub const NAMES: &str = "names";

/// Names of a slot's tree, which are used again and again.
const NAMES_PER_SLOT: u32 = 3;

/// Options that are drawn for a tree before the store's own are taken.
const TRIES: u32 = 20;

/// Most trees of a store that has several.
const SLOTS_MAX: usize = 5;

/// The data of a tree, which stay the same when the store is opened again.
#[derive(Clone)]
pub struct Data {
    /// Its keys.
    pub keys: Arc<Keys>,
    /// Most bytes of a value.
    pub value_bytes_max: u64,
    /// The name of its operator.
    pub operator: &'static str,
}

/// A tree.
#[derive(Clone)]
pub struct Slot {
    /// Its name in the history, which stays when it gets another one in the store.
    pub identity: String,
    /// A handle.
    pub tree: Tree,
    /// Its data.
    pub data: Data,
}

struct State {
    slot: Option<Slot>,
    /// Whether a task makes, renames, converts or drops it.
    is_being_defined: bool,
}

/// See the module. A clone is the same slots.
#[derive(Clone)]
pub struct Slots {
    states: Arc<Vec<Mutex<State>>>,
    /// The data of all trees that were ever made, by their names in the history.
    known: Arc<Mutex<BTreeMap<String, Data>>>,
    identities: Arc<AtomicU64>,
}

/// Alone may define the tree of a slot, as long as this lives.
pub struct Defining<'a> {
    slots: &'a Slots,
    index: usize,
}

impl Drop for Defining<'_> {
    fn drop(&mut self) {
        self.slots.state(self.index).is_being_defined = false;
    }
}

impl Slots {
    /// Without trees.
    pub fn new(random: &mut Pcg64, features: Features) -> Self {
        let count = if features.has(Feature::SeveralTrees) { random.random_range(2..=SLOTS_MAX) } else { 1 };
        let states = (0..count).map(|_| Mutex::new(State { slot: None, is_being_defined: false })).collect();
        Self { states: Arc::new(states), known: Arc::default(), identities: Arc::default() }
    }

    fn state(&self, index: usize) -> MutexGuard<'_, State> {
        self.states[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots there are.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// A slot, if it has a tree.
    pub fn get(&self, index: usize) -> Option<Slot> {
        self.state(index).slot.clone()
    }

    /// One of them; the first is the common one, which most tasks use.
    pub fn any(&self, random: &mut Pcg64) -> (usize, Option<Slot>) {
        let index = if random.random_bool(0.6) { 0 } else { random.random_range(0..self.count()) };
        (index, self.get(index))
    }

    /// To define the tree of a slot, unless another task does.
    pub fn define(&self, index: usize) -> Option<Defining<'_>> {
        let mut state = self.state(index);
        let is_free = !std::mem::replace(&mut state.is_being_defined, true);
        drop(state);
        is_free.then(|| Defining { slots: self, index })
    }

    /// The data of a tree, by its name in the history.
    pub fn data(&self, identity: &str) -> Option<Data> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(identity).cloned()
    }

    /// A name in the history for a new tree.
    fn new_identity(&self) -> String {
        format!("#{}", self.identities.fetch_add(1, Ordering::Relaxed))
    }

    fn know(&self, identity: &str, data: &Data) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(identity.to_owned(), data.clone());
    }

    /// Forgets all handles, as the store is closed.
    pub fn forget(&self) {
        for index in 0..self.count() {
            *self.state(index) = State { slot: None, is_being_defined: false };
        }
    }

    /// Takes handles of the trees that a store has after it was opened.
    ///
    /// # Errors
    /// The store's.
    pub fn attach(&self, db: &Db, content: &Content) -> Result<(), Error> {
        for (name, identity) in names_of(content) {
            let Some(index) = slot_of(&name) else { continue };
            let Some(data) = self.data(&identity) else { continue };
            let tree = db.existing_tree(&name)?;
            self.state(index).slot = Some(Slot { identity, tree, data });
        }
        Ok(())
    }
}

impl Defining<'_> {
    /// The slot has this tree now, or none.
    pub fn set(&self, slot: Option<Slot>) {
        self.slots.state(self.index).slot = slot;
    }

    /// A name that the slot's tree does not have just now.
    pub fn other_name(&self, random: &mut Pcg64) -> String {
        let current = self.slots.get(self.index).map(|slot| slot.tree.name().to_owned());
        loop {
            let name = format!("{} of {}", random.random_range(0..NAMES_PER_SLOT), self.index);
            if current.as_deref() != Some(&name) {
                return name;
            }
        }
    }
}

/// Makes trees.
#[derive(Clone)]
pub struct Maker {
    /// The store's layout.
    pub site: Site,
    /// The run's features.
    pub features: Features,
    /// The history.
    pub shared: Shared,
    /// The trees.
    pub slots: Slots,
}

impl Maker {
    /// Makes a tree of that name, for `data` if there are some already. `None`: their keys are too long for
    /// it, and it is dropped again.
    ///
    /// # Errors
    /// The store's.
    pub fn make(
        &self,
        db: &Db,
        random: &mut Pcg64,
        name: &str,
        data: Option<Data>,
    ) -> Result<Option<Slot>, Error> {
        let identity = self.slots.new_identity();
        self.drop_leftover(db, name)?;
        let tree = self.create(db, random, (name, &identity), data.as_ref())?;
        let is_given = data.is_some();
        let data = data.unwrap_or_else(|| self.draw_data(random, &tree));
        self.slots.know(&identity, &data);
        if is_given && data.keys.longest() > tree.key_bytes_max() {
            self.drop_tree(db, name, &identity)?;
            return Ok(None);
        }
        Ok(Some(Slot { identity, tree, data }))
    }

    fn create(
        &self,
        db: &Db,
        random: &mut Pcg64,
        (name, identity): (&str, &str),
        data: Option<&Data>,
    ) -> Result<Tree, Error> {
        let changes = vec![
            Change::Create(NAMES.to_owned()),
            Change::Create(identity.to_owned()),
            Change::Write(NAMES.into(), name.into(), Some(identity.into())),
        ];
        let create = |options: TreeOptions| {
            let options = data.map_or(options.clone(), |data| options.merge_operator(data.operator));
            let mut made = None;
            self.shared.commit(changes.clone(), true, || {
                made = Some(db.tree_with(name, &options)?);
                Ok::<_, Error>(())
            })?;
            // Without a commit it is an old tree: its removal is in the log, but could not be applied.
            made.filter(|_| self.shared.has_committed()).ok_or(Error::Closed)
        };
        for _ in 0..TRIES {
            match create(kinds::draw(random, self.features, &self.site)) {
                // The numbers do not fit together.
                Err(Error::Options(_)) => {}
                made => return made,
            }
        }
        create(TreeOptions::new().merge_operator(AppendOperator::NAME))
    }

    fn draw_data(&self, random: &mut Pcg64, tree: &Tree) -> Data {
        let share_bytes = self.site.data_bytes / self.slots.count() as u64;
        let keys = Arc::new(Keys::draw(random, self.features, tree.key_bytes_max(), share_bytes / 2));
        let usual: u64 = if self.features.has(Feature::LargeValues) { 4096 } else { 200 };
        let most = if self.features.has(Feature::OverflowValues) { 60_000 } else { usual };
        // Most values are short: on average a tenth of the longest.
        let value_bytes_max = most.min(share_bytes / 2 * 10 / keys.all().len() as u64).max(16);
        let is_mixed = tree.options().name_of_merge_operator() == Some(MixedOperator::NAME);
        let operator = if is_mixed { MixedOperator::NAME } else { AppendOperator::NAME };
        Data { keys, value_bytes_max, operator }
    }

    /// Drops a tree of that name that no slot has: work that was cut short has left it.
    ///
    /// # Errors
    /// The store's.
    pub fn drop_leftover(&self, db: &Db, name: &str) -> Result<(), Error> {
        let content = {
            let mut history = self.shared.get();
            let newest = history.newest();
            history.content(newest)
        };
        match names_of(&content).iter().find(|(other, _)| other == name) {
            Some((_, identity)) => self.drop_tree(db, name, identity),
            None => Ok(()),
        }
    }

    /// Drops a tree.
    ///
    /// # Errors
    /// The store's.
    pub fn drop_tree(&self, db: &Db, name: &str, identity: &str) -> Result<(), Error> {
        let changes = vec![Change::Drop(identity.to_owned()), Change::Write(NAMES.into(), name.into(), None)];
        self.shared.commit(changes, true, || db.drop_tree(name))
    }

    /// Drops a tree and gives another one its name, as one.
    ///
    /// # Errors
    /// The store's.
    pub fn replace(
        &self,
        db: &Db,
        (name, identity): (&str, &str),
        (by, by_identity): (&str, &str),
    ) -> Result<(), Error> {
        let changes = vec![
            Change::Drop(identity.to_owned()),
            Change::Write(NAMES.into(), by.into(), None),
            Change::Write(NAMES.into(), name.into(), Some(by_identity.as_bytes().to_vec())),
        ];
        self.shared.commit(changes, true, || db.replace_tree(name, by))
    }

    /// Gives a tree another name.
    ///
    /// # Errors
    /// The store's.
    pub fn rename(&self, db: &Db, name: &str, new_name: &str, identity: &str) -> Result<(), Error> {
        let changes = vec![
            Change::Write(NAMES.into(), name.into(), None),
            Change::Write(NAMES.into(), new_name.into(), Some(identity.as_bytes().to_vec())),
        ];
        self.shared.commit(changes, true, || db.rename_tree(name, new_name))
    }
}

/// The name that a tree has while another one is converted into it.
pub fn temporary_name(index: usize) -> String {
    format!("new of {index}")
}

/// The slot of a tree of that name.
fn slot_of(name: &str) -> Option<usize> {
    let (number, index) = name.split_once(" of ")?;
    let _number: u32 = number.parse().ok()?;
    index.parse().ok()
}

/// The trees of a store by their names, as the history has them.
pub fn names_of(content: &Content) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let names = content.get(NAMES).into_iter().flatten();
    names.map(|(name, identity)| (text(name), text(identity))).collect()
}
