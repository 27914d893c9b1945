//! Bε-trees: changes are messages that gather in the buffers of inner nodes, and come to leaves many at a
//! time (Theorem 9 of the dictionaries paper: Bender et al., "Small Refinements to the DAM Can Have Big
//! Consequences for Data-Structure Design", §6).
//!
//! ```text
//! tree       the tree, and its memtables              index      the boundary of indexes
//! pages      reading and writing its pages            longest_key  on which it depends how full these get
//! options    the numbers of a tree                    shape      sizes of nodes, and what they weigh
//! part       a page: pivots beside messages           content    what is in a page
//! messages   versions on their way to a leaf          merging    which of them stay
//! enter      messages of memtables enter the root    flush      messages go down
//! division   what goes where not all has room        basements  messages come to their leaf
//! weight     nodes are rebuilt in balance             search     look-ups
//! scan       records in order                         check      every part is looked at
//! destroy    a tree is given up, buffers are emptied  stats      what is counted
//! progress   how far a memtable has been flushed      in_place   messages come and go in a page
//! ahead      room is made before it is needed
//! ```

mod ahead;
mod basements;
mod check;
mod content;
mod destroy;
mod division;
mod enter;
mod flush;
mod in_place;
mod index;
mod levels;
mod longest_key;
mod merging;
mod messages;
mod options;
mod pages;
mod part;
mod part_format;
#[cfg(test)]
mod part_tests;
mod progress;
mod scan;
mod search;
mod shape;
mod stats;
mod tree;
mod weight;

pub use options::BeTreeOptions;
pub(crate) use options::Decided;
pub(crate) use tree::BeTree;

/// Runs all operations of look-ups and flushes on a page that has arbitrary bytes.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn go_through(page: crate::page::Page<'_>, key: &[u8]) {
    let part = part::Part::new(page);
    let _any =
        (part.level(), part.pivot_of(key), part.pivot_before(None), part.child(part.pivot_before(Some(key))));
    let mut found = part.find(key, crate::log::Timestamp(u64::MAX));
    while let Some(number) = found {
        let mut value = Vec::new();
        part.value(number, &mut value);
        assert!(value.len() <= page.len_bytes() as usize, "a value that is longer than its page");
        found = part.next_of(number, key);
    }
    let _any = (part.summary(), part.page_bytes(), part.copied(part.messages()));
    let before = part.content();
    if let Some(content) = &before {
        let _any = (content.groups(), content.page_bytes());
    }
    let Some(groups) = part.groups() else { return };
    let some = groups.len() / 2;
    let Some(changes) = in_place::Changes::without(part, &groups[some..]) else { return };
    changes.make(page);
    if let Some(before) = before {
        let (after, count) = (part.content(), groups.get(some).map(|group| group.messages.start));
        let after = after.map(|after| (after.pivots, after.messages.len()));
        let first = count.map_or(before.messages.len(), |count| count - part.pivots() as usize);
        assert_eq!(after, Some((before.pivots, first)), "the rest stays as it was");
    }
}
