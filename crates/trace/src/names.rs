//! Names of devices and files, each kept once.

use std::collections::HashMap;

/// A name of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(u32);

impl NameId {
    /// Its number: names of a trace count from 0 on, in the order of their first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All names of a trace so far.
#[derive(Debug, Default)]
pub struct Names {
    ids: HashMap<String, NameId>,
    texts: Vec<String>,
}

impl Names {
    /// The name with number `id`; empty if it is from another trace.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All names, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        (0..).map(NameId).zip(self.texts.iter().map(String::as_str))
    }

    /// The name `text`, which is new or was there before.
    pub fn id(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = NameId(self.texts.len() as u32);
        self.ids.insert(text.to_owned(), id);
        self.texts.push(text.to_owned());
        id
    }
}
