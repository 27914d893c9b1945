//! The trees of an opened store.
//!
//! The catalog's keys are the names. In addition, it has keys that cannot be names, as no UTF-8 begins with
//! 0xff:
//!
//! ```text
//! 0xff                              the number of the next tree, u32
//! 0xff, tree id (u32, big-endian)   the entry of a dropped tree whose pages are not all free yet
//! ```
//!
//! Creations, drops and renamings are in the log like all operations. Replaying one that a checkpoint
//! contains, or a later one of the same name, changes nothing: tree ids only grow. A checkpoint's cut may
//! fall into a renaming, so that the catalog has a tree under both names: the log still has the renaming
//! then, and replaying it leaves the new one.

use crate::Decision;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::collections::{BTreeMap, HashMap};

use super::Entry;
use crate::Error;
use crate::btree::{BTree, Change, Scan};
use crate::factory::{Factory, TreePlan};
use crate::header::PageId;
use crate::index::{Clearing, Direction, Horizon, Operators, Parameters, Piece, Tree, TreeId, TreeOperator};
use crate::log::Timestamp;

const OWN_KEYS: u8 = 0xff;

/// Size class of the catalog's nodes.
pub(crate) const CATALOG_CLASS: u8 = 0;

/// A tree that exists.
pub(crate) struct NamedTree {
    pub name: String,
    pub entry: Entry,
    pub tree: Tree,
    pub operator: Option<Arc<TreeOperator>>,
    /// Whether it must not be written to any more.
    pub dropped: AtomicBool,
    /// The number of commits that are writing to it, under any name. Its pages are not freed before that is
    /// zero.
    pub writers: Arc<AtomicU64>,
}

/// See the module.
pub(crate) struct Trees {
    factory: Arc<Factory>,
    catalog: BTree,
    known: RwLock<Names>,
}

/// A tree that was dropped and has pages left.
struct Dropped {
    entry: Entry,
    tree: Tree,
    /// Handles of the tree that may still be in use.
    known: Vec<Weak<NamedTree>>,
    /// As [`NamedTree::writers`].
    writers: Arc<AtomicU64>,
}

#[derive(Default)]
struct Names {
    by_name: BTreeMap<String, Arc<NamedTree>>,
    by_id: HashMap<TreeId, Arc<NamedTree>>,
    next: u32,
    /// All changes up to this commit are in the catalog.
    changed: Timestamp,
    dropped: Vec<Dropped>,
    /// Trees under their names before a renaming: these handles may still be in use.
    renamed: Vec<(TreeId, Weak<NamedTree>)>,
}

impl Trees {
    /// The catalog of a new store, without trees.
    pub fn create(factory: &Arc<Factory>) -> Result<Self, Error> {
        let catalog = BTree::create(factory.pool(), usize::from(CATALOG_CLASS), false)?;
        let names = Names { next: 1, ..Names::default() };
        Ok(Self { factory: Arc::clone(factory), catalog, known: RwLock::new(names) })
    }

    /// The catalog with this root.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn open(factory: &Arc<Factory>, root: PageId, class: u8) -> Result<Self, Error> {
        let catalog = BTree::open(factory.pool(), root, usize::from(class));
        let mut names = Names { next: 1, ..Names::default() };
        let (mut scan, mut piece) = (Scan::new(Direction::Forward, &[], None, 4), Piece::default());
        while catalog.step(&mut scan, &mut piece)? {
            for (key, value) in piece.iter() {
                names.take_in(factory, key, value)?;
            }
        }
        Ok(Self { factory: Arc::clone(factory), catalog, known: RwLock::new(names) })
    }

    /// The merge operators that are registered.
    pub fn operators(&self) -> &Operators {
        self.factory.operators()
    }

    /// As [`Factory::set_horizon`].
    pub fn set_horizon(&self, horizon: &Arc<dyn Horizon>) {
        self.factory.set_horizon(horizon);
    }

    /// The root page, which identifies the catalog.
    pub fn root(&self) -> PageId {
        self.catalog.root()
    }

    fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree of this name.
    pub fn named(&self, name: &str) -> Option<Arc<NamedTree>> {
        self.names().by_name.get(name).cloned()
    }

    /// The tree with this number.
    pub fn numbered(&self, id: TreeId) -> Option<Arc<NamedTree>> {
        self.names().by_id.get(&id).cloned()
    }

    /// All trees, by name.
    pub fn all(&self) -> Vec<Arc<NamedTree>> {
        self.names().by_name.values().cloned().collect()
    }

    /// The number that the next tree gets.
    pub fn next_id(&self) -> TreeId {
        TreeId(self.names().next)
    }

    /// Whether a commit of a tree is under way, be it one that was dropped meanwhile: its overflow values are
    /// in pages already.
    pub fn any_has_writers(&self) -> bool {
        let names = self.names();
        let known = names.by_name.values().map(|known| &known.writers);
        let dropped = names.dropped.iter().map(|dropped| &dropped.writers);
        known.chain(dropped).any(|writers| writers.load(Ordering::SeqCst) > 0)
    }

    /// Whether any dropped tree has pages left.
    pub fn has_dropped(&self) -> bool {
        !self.names().dropped.is_empty()
    }

    /// Dropped trees with pages left, whether they are used or not.
    pub fn dropped(&self) -> Vec<Tree> {
        self.names().dropped.iter().map(|dropped| dropped.tree.clone()).collect()
    }

    /// Dropped trees with pages left that are not in use any more.
    pub fn abandoned(&self) -> Vec<Tree> {
        let is_unused = |dropped: &&Dropped| dropped.known.iter().all(|known| known.strong_count() == 0);
        self.names().dropped.iter().filter(is_unused).map(|dropped| dropped.tree.clone()).collect()
    }

    /// Frees the pages of a tree that is [abandoned](Trees::abandoned), a few at a time. If this is
    /// interrupted, opening the store again resumes it.
    ///
    /// # Errors
    /// As [`Index::clear`](crate::index::Index::clear).
    pub fn free(&self, tree: &Tree, clearing: &Clearing<'_>) -> Result<(), Error> {
        tree.index.clear(clearing)?;
        // Before the last of its pages are free: then their numbers may belong to other pages.
        self.forget(tree.id)?;
        tree.index.destroy()
    }

    /// Shows the pages of the catalog itself.
    ///
    /// # Errors
    /// The pool's.
    pub fn walk_catalog(&self, page: &mut dyn FnMut(PageId)) -> Result<(), Error> {
        self.catalog.walk(page, &mut |_, _| ()).map(drop)
    }

    /// Adds a tree to the catalog for a record of the log. Does nothing if the catalog had it before, or has
    /// a later one of its name. One caller at a time.
    ///
    /// # Errors
    /// The pool's.
    pub fn add(&self, name: &str, entry: Entry) -> Result<(), Error> {
        {
            let names = self.names();
            let is_older = entry.id.0 < names.next;
            let same = names.by_name.get(name).is_some_and(|known| known.entry.id >= entry.id);
            if same || (is_older && names.dropped.iter().any(|dropped| dropped.entry.id == entry.id)) {
                return Ok(());
            }
        }
        let next = entry.id.0.saturating_add(1).max(self.next_id().0);
        self.write_own(next, self.last_change())?;
        let bytes = entry.encode();
        self.catalog.update(name.as_bytes(), &mut |_| Change::Put(&bytes))?;
        let (tree, operator) = open(&self.factory, &entry)?;
        let mut names = self.known.write().unwrap_or_else(PoisonError::into_inner);
        names.next = next;
        names.insert(name, entry, (tree, operator), Arc::default());
        Ok(())
    }

    /// Writes the catalog's own record.
    fn write_own(&self, next: u32, changed: Timestamp) -> Result<(), Error> {
        let bytes = [&next.to_le_bytes()[..], &changed.0.to_le_bytes()].concat();
        self.catalog.update(&[OWN_KEYS], &mut |_| Change::Put(&bytes))
    }

    /// All changes up to this commit were in the catalog when it was opened, or were made since.
    pub fn last_change(&self) -> Timestamp {
        self.names().changed
    }

    /// Notes that all changes of the catalog up to this commit are done. One caller at a time.
    ///
    /// # Errors
    /// The pool's.
    pub fn note_change(&self, at: Timestamp) -> Result<(), Error> {
        self.write_own(self.next_id().0, at)?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).changed = at;
        Ok(())
    }

    /// Removes a tree from the catalog for a record of the log; its pages are left. Does nothing if the
    /// catalog does not have it. One caller at a time.
    ///
    /// # Errors
    /// The pool's.
    pub fn remove(&self, name: &str, id: TreeId) -> Result<(), Error> {
        let Some(known) = self.named(name).filter(|known| known.entry.id == id) else { return Ok(()) };
        let bytes = known.entry.encode();
        self.catalog.update(&grave(id), &mut |_| Change::Put(&bytes))?;
        self.catalog.update(name.as_bytes(), &mut |_| Change::Remove)?;
        let mut names = self.known.write().unwrap_or_else(PoisonError::into_inner);
        names.by_name.remove(name);
        names.by_id.remove(&id);
        known.dropped.store(true, Ordering::SeqCst);
        let mut used_by = vec![Arc::downgrade(&known)];
        used_by.extend(names.renamed.extract_if(.., |(renamed, _)| *renamed == id).map(|(_, known)| known));
        let (entry, tree, writers) = (known.entry.clone(), known.tree.clone(), Arc::clone(&known.writers));
        names.dropped.push(Dropped { entry, tree, known: used_by, writers });
        Ok(())
    }

    /// Renames a tree while the log is replayed. The tree's earlier handles count as dropped. Nothing happens
    /// if the tree does not exist, has that name already, or another tree has it. One caller at a time.
    ///
    /// # Errors
    /// The pool's.
    pub fn rename(&self, id: TreeId, new_name: &str) -> Result<(), Error> {
        let Some(known) = self.numbered(id) else { return Ok(()) };
        if self.named(new_name).is_some_and(|other| other.entry.id != id) {
            return Ok(());
        }
        let is_old = |one: &Arc<NamedTree>| one.entry.id == id && one.name != new_name;
        let old_names: Vec<String> =
            self.all().iter().filter(|one| is_old(one)).map(|one| one.name.clone()).collect();
        if old_names.is_empty() {
            return Ok(());
        }
        let bytes = known.entry.encode();
        self.catalog.update(new_name.as_bytes(), &mut |_| Change::Put(&bytes))?;
        for name in &old_names {
            self.catalog.update(name.as_bytes(), &mut |_| Change::Remove)?;
        }
        let mut names = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for old in old_names.iter().filter_map(|name| names.by_name.remove(name)).collect::<Vec<_>>() {
            old.dropped.store(true, Ordering::SeqCst);
            names.renamed.push((id, Arc::downgrade(&old)));
        }
        names.renamed.retain(|(_, known)| known.strong_count() > 0);
        // The same index: it may have changes in memory that are in no page.
        let same = (known.tree.clone(), known.operator.clone());
        names.insert(new_name, known.entry.clone(), same, Arc::clone(&known.writers));
        Ok(())
    }

    /// All pages of a dropped tree but its root are free.
    fn forget(&self, id: TreeId) -> Result<(), Error> {
        self.catalog.update(&grave(id), &mut |_| Change::Remove)?;
        let mut names = self.known.write().unwrap_or_else(PoisonError::into_inner);
        names.dropped.retain(|dropped| dropped.entry.id != id);
        Ok(())
    }

    /// Gives up the pages of a new tree that is not made after all.
    pub fn give_up(&self, entry: &Entry) {
        // An error here only leaks the pages: the pool keeps them allocated, and nothing refers to them.
        let tree = open(&self.factory, entry);
        let _tried = tree.and_then(|(tree, _)| tree.index.destroy());
    }

    /// Allocates a new tree's first pages and returns its parameters.
    ///
    /// # Errors
    /// The pool's.
    pub fn make(&self, plan: TreePlan) -> Result<Parameters, Error> {
        self.factory.create(plan)
    }

    /// The settings that a new tree would have of its own, and why they are so.
    ///
    /// # Errors
    /// As [`Factory::decisions`].
    pub fn decisions(&self, plan: TreePlan) -> Result<Vec<Decision>, Error> {
        self.factory.decisions(plan)
    }

    /// How a tree was made.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no tree has.
    pub fn plan(&self, entry: &Entry) -> Result<TreePlan, Error> {
        self.factory.plan(entry.id, entry.kind, &entry.parameters)
    }

    /// Like [`make`](Self::make), for a tree whose creation the log replays. It gets new pages, because those
    /// of the logged entry may belong to another tree by now.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for parameters that no tree has; the pool's.
    pub fn make_again(&self, logged: &Entry) -> Result<Parameters, Error> {
        self.factory.create_like(logged.id, logged.kind, &logged.parameters)
    }
}

/// The tree of an entry, and its merge operator.
fn open(factory: &Factory, entry: &Entry) -> Result<(Tree, Option<Arc<TreeOperator>>), Error> {
    let operator = entry.operator.as_deref().map(|name| factory.operators().of_tree(name));
    let tree = factory.open(entry.id, entry.kind, &entry.parameters, operator.clone())?;
    Ok((tree, operator))
}

fn grave(id: TreeId) -> [u8; 5] {
    let [a, b, c, d] = id.0.to_be_bytes();
    [OWN_KEYS, a, b, c, d]
}

impl Names {
    fn insert(
        &mut self,
        name: &str,
        entry: Entry,
        (tree, operator): (Tree, Option<Arc<TreeOperator>>),
        writers: Arc<AtomicU64>,
    ) {
        let (id, dropped) = (entry.id, AtomicBool::new(false));
        if let Some(operator) = &operator {
            operator.set_tree(name);
        }
        let known = NamedTree { name: name.to_owned(), entry, tree, operator, dropped, writers };
        let known = Arc::new(known);
        if let Some(old) = self.by_name.insert(name.to_owned(), Arc::clone(&known)) {
            self.by_id.remove(&old.entry.id);
        }
        self.by_id.insert(id, known);
    }

    /// A record of the catalog.
    fn take_in(&mut self, factory: &Factory, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match key {
            [OWN_KEYS] => {
                let (next, rest) = value.split_first_chunk().unwrap_or((&[0; 4], &[]));
                self.next = self.next.max(u32::from_le_bytes(*next));
                // Earlier versions wrote nothing there.
                let changed = rest.first_chunk().map_or(0, |changed| u64::from_le_bytes(*changed));
                self.changed = Timestamp(changed);
            }
            [OWN_KEYS, ..] => {
                let entry = Entry::decode("(dropped)", value)?;
                let (tree, _) = open(factory, &entry)?;
                self.dropped.push(Dropped { entry, tree, known: Vec::new(), writers: Arc::default() });
            }
            name => {
                let name = String::from_utf8_lossy(name);
                let entry = Entry::decode(&name, value)?;
                self.next = self.next.max(entry.id.0 + 1);
                let opened = open(factory, &entry)?;
                self.insert(&name, entry, opened, Arc::default());
            }
        }
        Ok(())
    }
}
