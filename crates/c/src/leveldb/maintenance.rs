//! Compaction, repair and removal of databases.

use std::ffi::c_char;
use std::fs;
use std::io::ErrorKind;

use flashgrain::{DATA_FILE, Error, LOG_FILE};

use super::database::{Database, is_there, path};
use super::message::{ErrorText, Message, report};
use super::options::OptionsHandle;
use crate::call::quietly;

/// Gives back room: with two null keys the store's files become as short as their records allow; of a range,
/// removed records go as merges come to them, and the store's state is written.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_compact_range(
    database: Option<&Database>,
    start: *const c_char,
    _start_length: usize,
    limit: *const c_char,
    _limit_length: usize,
) {
    quietly(|| {
        let Some(Database { db, .. }) = database else { return };
        let is_whole = start.is_null() && limit.is_null();
        // LevelDB has no place for an error here either; writes have it if it lasts.
        let _untold = if is_whole { db.compact().map(drop) } else { db.checkpoint() };
    });
}

/// Opens a database, which replays its log, and verifies each page of it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_repair_db(
    options: Option<&OptionsHandle>,
    name: *const c_char,
    error: ErrorText<'_>,
) {
    report(error, || {
        let options = options.ok_or_else(|| Message::invalid("options are null"))?;
        let db = options.builder().path(path(name)?).open()?;
        db.check()?;
        Ok(db.close()?)
    });
}

/// Removes a database, and its directory if nothing else is in it. One that is not there is removed already.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_destroy_db(
    options: Option<&OptionsHandle>,
    name: *const c_char,
    error: ErrorText<'_>,
) {
    report(error, || {
        let options = options.ok_or_else(|| Message::invalid("options are null"))?;
        let path = path(name)?;
        if is_there(path) {
            // One that is in use stays. One that cannot be opened for another reason, such as damage, goes.
            let opened = options.builder().path(path).open_read_only();
            if let Err(error @ (Error::OpenHere { .. } | Error::Locked { .. })) = opened {
                return Err(error.into());
            }
        }
        for file in [DATA_FILE, LOG_FILE] {
            match fs::remove_file(path.join(file)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Message::io(format!("{}: {error}", path.join(file).display())));
                }
                _ => {}
            }
        }
        let _others_may_have_files_in_it = fs::remove_dir(path);
        Ok(())
    });
}
