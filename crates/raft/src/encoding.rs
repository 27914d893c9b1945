//! Values of Raft as bytes: postcard's format, which is stable and has no names of fields.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// The bytes of `value`.
///
/// # Errors
/// [`Error::Unencodable`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(value)
        .map_err(|error| Error::Unencodable { what: type_name::<T>(), reason: error.to_string() })
}

/// The value with these bytes, which a record of `tree` has.
///
/// # Errors
/// [`Error::Undecodable`].
pub fn decode<T: DeserializeOwned>(tree: &str, bytes: &[u8]) -> Result<T, Error> {
    postcard::from_bytes(bytes).map_err(|error| Error::Undecodable {
        tree: tree.to_owned(),
        expected: type_name::<T>(),
        reason: error.to_string(),
    })
}
