//! Databases: opening and closing.

use std::ffi::c_char;
use std::path::Path;

use flashgrain::{Builder, DATA_FILE, Db, Tree};

use super::message::{ErrorText, Message, report};
use super::options::OptionsHandle;
use super::order::Order;
use crate::argument;
use crate::call::quietly;

/// In front of the comparator's name in that of the tree.
const TREE_PREFIX: &str = "leveldb:";
/// The name of the order by bytes.
const BYTES_NAME: &str = "leveldb.BytewiseComparator";

/// A database that is open.
pub struct Database {
    pub db: Db,
    pub tree: Tree,
    pub order: Order,
}

/// The path of a name.
///
/// # Errors
/// [`Message::invalid`] for a null pointer.
pub fn path<'a>(name: *const c_char) -> Result<&'a Path, Message> {
    // SAFETY: LevelDB's contract: a text with its end, which stays until the function returns.
    let name = unsafe { argument::text(name, "name") }?;
    Ok(argument::path(name))
}

/// Whether there is a database.
pub fn is_there(path: &Path) -> bool {
    path.join(DATA_FILE).exists()
}

impl Database {
    /// Opens the one at `path`, or makes one.
    ///
    /// # Errors
    /// As the options say, and those of the store.
    pub fn open(options: &OptionsHandle, path: &Path) -> Result<Self, Message> {
        let refused = |why: &str| Err(Message::invalid(format!("{}: {why}", path.display())));
        match is_there(path) {
            false if !options.is_made_if_missing => {
                return refused("no database, and create_if_missing is not set");
            }
            true if options.is_refused_if_there => return refused("a database, and error_if_exists is set"),
            _ => {}
        }
        let builder = options.builder().path(path);
        let open = if is_there(path) { Builder::open } else { Builder::open_or_create };
        let db = open(builder)?;
        let name = match &options.comparator {
            None => BYTES_NAME.to_owned(),
            Some(comparator) => {
                comparator.name().ok_or_else(|| Message::invalid("a comparator without a name"))?
            }
        };
        let names = db.tree_names();
        let other =
            names.iter().filter_map(|tree| tree.strip_prefix(TREE_PREFIX)).find(|other| *other != name);
        if let Some(other) = other {
            return refused(&format!("made with the comparator {other}, not with {name}"));
        }
        let tree = db.tree_with(&format!("{TREE_PREFIX}{name}"), &options.tree())?;
        Ok(Self { db, tree, order: Order::new(options.comparator.clone()) })
    }
}

/// Opens a database, or makes one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_open(
    options: Option<&OptionsHandle>,
    name: *const c_char,
    error: ErrorText<'_>,
) -> Option<Box<Database>> {
    report(error, || {
        let options = options.ok_or_else(|| Message::invalid("options are null"))?;
        Database::open(options, path(name)?).map(Box::new)
    })
}

/// Closes a database. Moves of its iterators and reads of its snapshots are errors then. The files stay
/// locked until these are gone.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(database: Option<Box<Database>>) {
    quietly(|| {
        if let Some(database) = database {
            let Database { db, tree, .. } = *database;
            let _opens_as_after_a_crash = db.close();
            drop(tree);
        }
    });
}
