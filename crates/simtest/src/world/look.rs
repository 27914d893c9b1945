//! Compares a store with its expected content.

use flashgrain::{Db, Error};

use super::history::Content;

/// Everything in a store.
///
/// # Errors
/// The store's.
pub fn look(db: &Db) -> Result<Content, Error> {
    let tree = |name: String| {
        let tree = db.existing_tree(&name)?;
        let records = tree.iter()?.map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok((name, records.collect::<Result<_, Error>>()?))
    };
    db.tree_names().into_iter().map(tree).collect()
}

/// `None` if the store contains exactly `content`, else the first difference, in words.
///
/// # Errors
/// Errors of the store.
pub fn same(db: &Db, content: &Content) -> Result<Option<String>, Error> {
    let mut names = db.tree_names();
    names.sort_unstable();
    if !names.iter().eq(content.keys()) {
        let expected: Vec<&String> = content.keys().collect();
        return Ok(Some(format!("there are the trees {names:?}, not {expected:?}")));
    }
    for (name, expected) in content {
        let mut expected = expected.iter();
        for record in db.existing_tree(name)?.iter()? {
            let (key, value) = record?;
            match expected.next() {
                Some((other, same)) if key == *other && value == *same => {}
                other => {
                    let (found, expected) = (text(&key, &value), other.map(|(key, value)| text(key, value)));
                    let expected = expected.unwrap_or_else(|| "nothing more".into());
                    return Ok(Some(format!("tree {name}: found {found}, expected {expected}")));
                }
            }
        }
        if let Some((key, value)) = expected.next() {
            return Ok(Some(format!("tree {name}: {} is missing", text(key, value))));
        }
    }
    Ok(None)
}

/// A record, shortened.
pub(super) fn text(key: &[u8], value: &[u8]) -> String {
    let short = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned();
    format!("{} = {} ({} bytes)", short(key), short(value), value.len())
}
