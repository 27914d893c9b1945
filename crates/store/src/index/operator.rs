//! Merge operators: how a value and the operands that were written over it become a value.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::operands;
use crate::Error;
use crate::sync::{Arc, Mutex, PoisonError};

/// Most bytes of an operator's name.
pub(crate) const OPERATOR_NAME_BYTES_MAX: usize = 64;

/// The reason for an operator's failure, in its own words.
pub type OperatorError = Box<dyn std::error::Error + Send + Sync>;

/// Makes a value of the one that a key has and of the *operands* that were written to it since, by
/// [`Tree::merge`](crate::Tree::merge) and its like.
///
/// The store calls an operator at any time: during reads, when tables are merged, at a commit; on any thread,
/// and for the same operands any number of times. So the result may depend on nothing but the arguments: the
/// same ones give the same result in every run of the program, and in every later version of it. Operands of
/// another meaning need an operator of another name.
///
/// An operator may fail, by an error or by a panic. No data is lost then and the store goes on: merges of
/// tables leave the operands as they are, and a read of the record, or a write that has to read it, returns
/// [`Error::OperatorFailed`](crate::Error::OperatorFailed). With an operator that does not fail, the record
/// can be read again.
///
/// ```
/// use flashgrain::{Db, IndexKind, MergeOperator, OperatorError, TreeOptions};
///
/// /// Keeps the largest value.
/// struct Largest;
///
/// impl MergeOperator for Largest {
///     fn name(&self) -> &str {
///         "example.largest"
///     }
///
///     fn full_merge(
///         &self,
///         _key: &[u8],
///         existing: Option<&[u8]>,
///         operands: &[&[u8]],
///     ) -> Result<Option<Vec<u8>>, OperatorError> {
///         Ok(operands.iter().copied().chain(existing).max().map(<[u8]>::to_vec))
///     }
///
///     fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
///         operands.iter().copied().max().map(<[u8]>::to_vec)
///     }
/// }
///
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// let db = Db::builder().path(folder.path().join("store")).merge_operator(Largest).create()?;
/// let options = TreeOptions::new().kind(IndexKind::Lsm).merge_operator("example.largest");
/// let heights = db.tree_with("heights", &options)?;
/// heights.merge("ada", "168")?;
/// heights.merge("ada", "171")?;
/// heights.merge("ada", "170")?;
/// assert_eq!(heights.get("ada")?.unwrap(), "171");
/// # Ok(())
/// # }
/// ```
pub trait MergeOperator: Send + Sync + 'static {
    /// The name that trees find it by: 1 to 64 bytes. Names that begin with `flashgrain.` are the store's
    /// own.
    fn name(&self) -> &str;

    /// The value of a key that had the value `existing`, or none, when these operands were written to it, the
    /// first one first. There is at least one. `None`: the record is removed.
    ///
    /// # Errors
    /// The reason why it cannot make a value of these. Reads of the record return it.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, OperatorError>;

    /// One operand that has the same effect as these, the first one first, for any value before and any
    /// operands after them. There are at least two. `None`, the default: there is no such operand, and they
    /// are kept.
    fn partial_merge(&self, _key: &[u8], _operands: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

/// The operators that are registered, by name.
#[derive(Clone, Default)]
pub(crate) struct Operators(BTreeMap<String, Arc<dyn MergeOperator>>);

impl Operators {
    /// Adds an operator, or replaces the one of the same name.
    pub fn add(&mut self, operator: Arc<dyn MergeOperator>) {
        self.0.insert(operator.name().to_owned(), operator);
    }

    /// The first name of an invalid length, if any.
    pub fn name_of_wrong_length(&self) -> Option<&str> {
        let is_wrong = |name: &&String| !(1..=OPERATOR_NAME_BYTES_MAX).contains(&name.len());
        self.0.keys().find(is_wrong).map(String::as_str)
    }

    pub fn named(&self, name: &str) -> Option<&Arc<dyn MergeOperator>> {
        self.0.get(name)
    }

    /// The operator as a tree that names it uses it.
    pub fn of_tree(&self, name: &str) -> Arc<TreeOperator> {
        let operator = self.named(name).cloned();
        Arc::new(TreeOperator { name: name.to_owned(), operator, tree: Mutex::default() })
    }
}

impl fmt::Debug for Operators {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// The operator of a tree.
pub(crate) struct TreeOperator {
    pub name: String,
    /// `None`: it is not registered.
    operator: Option<Arc<dyn MergeOperator>>,
    /// The tree's name, for errors.
    tree: Mutex<String>,
}

impl TreeOperator {
    /// Sets the tree's name.
    pub fn set_tree(&self, name: &str) {
        name.clone_into(&mut self.tree.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn tree(&self) -> String {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The operator, if it is registered.
    ///
    /// # Errors
    /// [`Error::OperatorMissing`].
    pub fn registered(&self) -> Result<&dyn MergeOperator, Error> {
        let missing = || Error::OperatorMissing { operator: self.name.clone(), tree: self.tree() };
        self.operator.as_deref().ok_or_else(missing)
    }

    /// See [`MergeOperator::full_merge`].
    ///
    /// # Errors
    /// [`Error::OperatorMissing`]; [`Error::OperatorFailed`] if it returns an error, or panics.
    pub fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, Error> {
        let operator = self.registered()?;
        let merged = catch_unwind(AssertUnwindSafe(|| operator.full_merge(key, existing, operands)));
        merged
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", text_of(&*panic)).into()))
            .map_err(|error| self.failed(error.to_string()))
    }

    /// See [`MergeOperator::partial_merge`]; `None` also if it cannot be asked, or panics.
    pub fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let operator = self.operator.as_deref()?;
        catch_unwind(AssertUnwindSafe(|| operator.partial_merge(key, operands))).ok().flatten()
    }

    /// One list of operands that does the same as these ones, the oldest first, if one exists that is not
    /// longer than the longest of them: as for a counter, but not for bytes that are appended.
    pub fn joined(&self, key: &[u8], lists: &[&[u8]]) -> Option<Vec<u8>> {
        let all: Vec<&[u8]> =
            lists.iter().map(|list| operands::all(list)).collect::<Option<Vec<_>>>()?.concat();
        let one = self.partial_merge(key, &all)?;
        let longest = lists.iter().map(|list| list.len()).max()?;
        let mut list = Vec::new();
        (operands::length(&one) <= longest).then(|| operands::push(&mut list, &one))?;
        Some(list)
    }

    #[cold]
    pub fn failed(&self, why: String) -> Error {
        Error::OperatorFailed { operator: self.name.clone(), tree: self.tree(), why }
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it gave no reason")
}
