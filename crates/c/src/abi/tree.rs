//! Trees: one write or read at a time.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use flashgrain::{IndexKind, TreeOptions};

use super::handles::{IteratorHandle, StoreHandle, TreeHandle};
use super::iterator::iterate;
use super::range::range;
use crate::call::{ErrorHandle, call, quietly};
use crate::memory;
use crate::reading;
use crate::status::{Failure, Status};

/// The structure that a tree is kept in.
#[repr(i32)]
pub enum TreeKind {
    /// A B+-tree, for reads.
    BTree = 0,
    /// An LSM-tree: writes read nothing, and cost a small part of what they cost in a B+-tree that is larger
    /// than memory.
    Lsm = 1,
    /// A Bε-tree: writes read nothing, and look-ups read about as much as in a B+-tree.
    BeTree = 2,
}

/// The kind with this number.
fn index_kind(kind: i32) -> Result<IndexKind, Failure> {
    const B_TREE: i32 = TreeKind::BTree as i32;
    const LSM: i32 = TreeKind::Lsm as i32;
    const BE_TREE: i32 = TreeKind::BeTree as i32;
    match kind {
        B_TREE => Ok(IndexKind::BTree),
        LSM => Ok(IndexKind::Lsm),
        BE_TREE => Ok(IndexKind::BeTree),
        _ => Err(Failure::new(Status::Argument, format!("there is no kind of trees {kind}"))),
    }
}

/// The tree of this name, of 1 to 256 bytes in UTF-8. If there is none it is made: of `kind`, an
/// fg_tree_kind, with nodes of `node_bytes`, a power of two from 4096 to 65536, or zero for the store's own
/// size. A tree that there is stays as it is. Free the handle with fg_tree_free.
///
/// Errors: FG_STATUS_ARGUMENT for a name, a kind or a size that cannot be, and those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_open(
    store: Option<&StoreHandle>,
    name: *const c_char,
    kind: i32,
    node_bytes: u32,
    tree: Option<&mut MaybeUninit<*mut TreeHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(tree);
        let (tree, store) = (given!(tree), used!(store));
        let mut options = TreeOptions::new().kind(index_kind(kind)?);
        if node_bytes > 0 {
            options = options.node_bytes(node_bytes);
        }
        let opened = store.db.tree_with(utf8!(name), &options)?;
        tree.write(Box::into_raw(Box::new(store.tree(opened))));
        Ok(())
    })
}

/// The tree of this name, which there must be. Free the handle with fg_tree_free.
///
/// Errors: FG_STATUS_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_open_existing(
    store: Option<&StoreHandle>,
    name: *const c_char,
    tree: Option<&mut MaybeUninit<*mut TreeHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(tree);
        let (tree, store) = (given!(tree), used!(store));
        let opened = store.db.existing_tree(utf8!(name))?;
        tree.write(Box::into_raw(Box::new(store.tree(opened))));
        Ok(())
    })
}

/// Frees the handle of a tree; nothing at a null pointer. The tree stays.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_free(tree: Option<Box<TreeHandle>>) {
    quietly(|| drop(tree));
}

/// The kind of the tree, an fg_tree_kind, and the length of its longest keys.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_describe(
    tree: Option<&TreeHandle>,
    kind: Option<&mut MaybeUninit<i32>>,
    key_bytes_max: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(kind, key_bytes_max);
        let tree = &used!(tree).tree;
        let number = match tree.options().index_kind() {
            IndexKind::BTree => TreeKind::BTree,
            IndexKind::Lsm => TreeKind::Lsm,
            IndexKind::BeTree => TreeKind::BeTree,
            _ => {
                return Err(Failure::new(
                    Status::Internal,
                    "a kind of trees that this library does not know",
                ));
            }
        };
        memory::put(kind, "kind", number as i32)?;
        memory::put(key_bytes_max, "key_bytes_max", tree.key_bytes_max())
    })
}

/// Gives a key this value, as a commit of its own with the store's durability.
///
/// Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key; FG_STATUS_DROPPED,
/// FG_STATUS_FULL, FG_STATUS_TREE_FAILED, FG_STATUS_POISONED, FG_STATUS_IO, FG_STATUS_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_put(
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let (key, value) = (bytes!(key, key_length), bytes!(value, value_length));
        Ok(used!(tree).tree.insert(key, value)?)
    })
}

/// Removes a key, whether it is there or not.
///
/// Errors: those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_remove(
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(tree).tree.remove(bytes!(key, key_length))?))
}

/// Removes the records from `lower`, with it, to `upper`, without it; a null pointer is no bound. `*removed`
/// is how many they were. They are removed in steps, in the order of keys: after an error or a crash those
/// before some key are gone.
///
/// Errors: those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_remove_range(
    tree: Option<&TreeHandle>,
    lower: *const c_void,
    lower_length: usize,
    upper: *const c_void,
    upper_length: usize,
    removed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(removed);
        let range = range(bound!(lower, lower_length), bound!(upper, upper_length));
        let removed = given!(removed);
        removed.write(used!(tree).tree.remove_range::<&[u8]>(range)?);
        Ok(())
    })
}

/// Removes the records of a range, as fg_tree_remove_range does, without counting them. An LSM-tree notes the
/// range alone, and all of it is gone or none.
///
/// Errors: those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_clear_range(
    tree: Option<&TreeHandle>,
    lower: *const c_void,
    lower_length: usize,
    upper: *const c_void,
    upper_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let range = range(bound!(lower, lower_length), bound!(upper, upper_length));
        Ok(used!(tree).tree.clear_range::<&[u8]>(range)?)
    })
}

/// Reads the value of a key. `*value` is in memory of its own: free it with fg_free. It is null if there is
/// no such key, which is no error; the value of no bytes is not null.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_get(
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    value: Option<&mut MaybeUninit<*mut c_void>>,
    value_length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(value, value_length);
        reading::get(&used!(tree).db, &used!(tree).tree, bytes!(key, key_length), value, value_length)
    })
}

/// Reads the value of a key into memory of the program, as much of it as `capacity` bytes take.
/// `*value_length` is the length of the whole value, and `*found` whether there is such a key.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_get_into(
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(value_length, found);
        let room = room!(buffer, capacity);
        reading::get_into(
            &used!(tree).db,
            &used!(tree).tree,
            bytes!(key, key_length),
            room,
            value_length,
            found,
        )
    })
}

/// Whether there is such a key; the value is not read.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_contains(
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(found);
        reading::contains(&used!(tree).db, &used!(tree).tree, bytes!(key, key_length), found)
    })
}

/// An iterator over the records from `lower`, with it, to `upper`, without it; a null pointer is no bound. It
/// is on no record until it is moved, has a snapshot of its own, and does not need the other handles. Free it
/// with fg_iterator_free.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_tree_iterate(
    tree: Option<&TreeHandle>,
    lower: *const c_void,
    lower_length: usize,
    upper: *const c_void,
    upper_length: usize,
    iterator: Option<&mut MaybeUninit<*mut IteratorHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(iterator);
        iterate(
            &used!(tree).db,
            used!(tree),
            bound!(lower, lower_length),
            bound!(upper, upper_length),
            iterator,
        )
    })
}
