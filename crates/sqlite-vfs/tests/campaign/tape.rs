//! What reaches a medium, in order, and what a power cut may leave of it.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand_pcg::Pcg64;

/// A file, whatever names it has; a device is file 0.
pub type Inode = u64;

/// Something that reaches the medium, or that the program was told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A new file.
    Create(Inode, String),
    /// Bytes of a file.
    Write(Inode, u64, Vec<u8>),
    /// A file gets this length.
    Truncate(Inode, u64),
    /// All before is durable of this file, and of the directory.
    Sync(Inode),
    /// A name is gone; durably if the directory is synced.
    Delete(String, bool),
    /// The transaction of this number begins.
    Submitted(usize),
    /// It is acknowledged.
    Acknowledged(usize),
}

/// Files and their names.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub names: BTreeMap<String, Inode>,
    pub files: BTreeMap<Inode, Vec<u8>>,
}

/// Of unsynced changes, those that a cut leaves.
#[derive(Clone, Copy, Debug)]
enum Survivors {
    None,
    All,
    Each,
    First,
    AllButOne,
    Only,
}

/// A change of a file that is not durable.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, content) => {
            let end = *offset as usize + content.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset as usize..end].copy_from_slice(content);
        }
        Change::Truncate(length) => bytes.resize(*length as usize, 0),
    }
}

/// The sectors of a write that a cut leaves.
fn torn(change: &Change, random: &mut Pcg64) -> Vec<Change> {
    let Change::Write(offset, content) = change else { return vec![change.clone()] };
    let sector = if random.random() { 512 } else { 4096 };
    let first = random.random_range(0..=content.len() / sector);
    let is_prefix: bool = random.random();
    let (mut left, mut at) = (Vec::new(), 0);
    while at < content.len() {
        // A sector of the medium, which a write that is not aligned shares.
        let end = (at + sector - (*offset as usize + at) % sector).min(content.len());
        if if is_prefix { at / sector < first } else { random.random() } {
            left.push(Change::Write(offset + at as u64, content[at..end].to_vec()));
        }
        at = end;
    }
    left
}

/// What is on the medium after a cut behind these events. `is_torn` if writes may be cut within.
pub fn cut(before: &Image, events: &[Event], is_torn: bool, random: &mut Pcg64) -> Image {
    let mut image = before.clone();
    let mut changes: BTreeMap<Inode, Vec<Change>> = BTreeMap::new();
    let mut names: Vec<(String, Option<Inode>)> = Vec::new();
    for event in events {
        match event {
            Event::Create(inode, name) => {
                image.files.insert(*inode, Vec::new());
                names.push((name.clone(), Some(*inode)));
            }
            Event::Write(inode, offset, bytes) => {
                changes.entry(*inode).or_default().push(Change::Write(*offset, bytes.clone()));
            }
            Event::Truncate(inode, length) => {
                changes.entry(*inode).or_default().push(Change::Truncate(*length));
            }
            Event::Sync(inode) => {
                let file = image.files.entry(*inode).or_default();
                changes.remove(inode).unwrap_or_default().iter().for_each(|change| apply(file, change));
                names.drain(..).for_each(|name| rename(&mut image, name));
            }
            Event::Delete(name, is_durable) => {
                names.push((name.clone(), None));
                if *is_durable {
                    names.drain(..).for_each(|name| rename(&mut image, name));
                }
            }
            Event::Submitted(_) | Event::Acknowledged(_) => {}
        }
    }
    // File systems keep the order of names.
    let kept = random.random_range(0..=names.len());
    names.into_iter().take(kept).for_each(|name| rename(&mut image, name));
    let survivors = [
        Survivors::None,
        Survivors::All,
        Survivors::Each,
        Survivors::First,
        Survivors::AllButOne,
        Survivors::Only,
    ][random.random_range(0..6)];
    for (inode, changes) in changes {
        let Some(file) = image.files.get_mut(&inode) else { continue };
        let chosen = random.random_range(0..=changes.len());
        for (number, change) in changes.iter().enumerate() {
            let survives = match survivors {
                Survivors::None => false,
                Survivors::All => true,
                Survivors::Each => random.random(),
                Survivors::First => number < chosen,
                Survivors::AllButOne => number != chosen,
                Survivors::Only => number == chosen,
            };
            if survives && is_torn && random.random() {
                torn(change, random).iter().for_each(|change| apply(file, change));
            } else if survives {
                apply(file, change);
            }
        }
    }
    let named: Vec<Inode> = image.names.values().copied().chain([0]).collect();
    image.files.retain(|inode, _| named.contains(inode));
    image
}

fn rename(image: &mut Image, (name, inode): (String, Option<Inode>)) {
    match inode {
        Some(inode) => image.names.insert(name, inode),
        None => image.names.remove(&name),
    };
}
