//! A cache of keys, least recently used first out, whose dirty keys belong to groups that are written back
//! together.
//!
//! Nodes stand in one vector and are linked by their numbers; a table with open addressing finds them.
//! Nothing is allocated once it is full.

/// No node.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Lru {
    capacity: u32,
    nodes: Vec<Node>,
    /// Numbers of nodes; a power of two of them, at least half of them [`NONE`].
    table: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// The first dirty node of each group.
    dirty: Vec<u32>,
    keys_per_group: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u32,
    newer: u32,
    older: u32,
    dirty: bool,
    /// Among the dirty nodes of its group.
    previous_dirty: u32,
    next_dirty: u32,
}

impl Lru {
    /// Room for `capacity` keys, at least one; keys are below `keys`, and each `keys_per_group` of them are a
    /// group.
    pub fn new(capacity: u32, keys: u32, keys_per_group: u32) -> Self {
        Self {
            capacity: capacity.max(1),
            nodes: Vec::new(),
            table: vec![NONE; 16],
            newest: NONE,
            oldest: NONE,
            dirty: vec![NONE; keys.div_ceil(keys_per_group) as usize],
            keys_per_group,
        }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.table.fill(NONE);
        self.dirty.fill(NONE);
        (self.newest, self.oldest) = (NONE, NONE);
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        let hash = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (64 - self.table.len().ilog2())) as usize
    }

    /// The position in the table where the key is, or would be.
    #[inline]
    fn position(&self, key: u32) -> usize {
        let mut position = self.home(key);
        while self.table[position] != NONE && self.nodes[self.table[position] as usize].key != key {
            position = (position + 1) & (self.table.len() - 1);
        }
        position
    }

    /// Whether the key is in the cache; it becomes the newest.
    #[inline]
    pub fn touch(&mut self, key: u32) -> bool {
        let node = self.table[self.position(key)];
        if node == NONE {
            return false;
        }
        if node != self.newest {
            self.unlink(node);
            self.link_newest(node);
        }
        true
    }

    /// Marks the key dirty, if it is in the cache.
    pub fn make_dirty(&mut self, key: u32) {
        let node = self.table[self.position(key)];
        if node == NONE || self.nodes[node as usize].dirty {
            return;
        }
        let head = &mut self.dirty[(key / self.keys_per_group) as usize];
        let next = std::mem::replace(head, node);
        let entry = &mut self.nodes[node as usize];
        (entry.dirty, entry.previous_dirty, entry.next_dirty) = (true, NONE, next);
        if next != NONE {
            self.nodes[next as usize].previous_dirty = node;
        }
    }

    /// Puts a key in that is not there, clean. If the key that has to go for it is dirty, all of its group
    /// are clean from now on, and the group is returned: it must be written.
    pub fn insert(&mut self, key: u32) -> Option<u32> {
        let mut written = None;
        let node = if (self.nodes.len() as u32) < self.capacity {
            self.grow();
            self.nodes.push(Node {
                key,
                newer: NONE,
                older: NONE,
                dirty: false,
                previous_dirty: NONE,
                next_dirty: NONE,
            });
            (self.nodes.len() - 1) as u32
        } else {
            let oldest = self.oldest;
            let Node { key: old, dirty, .. } = self.nodes[oldest as usize];
            if dirty {
                let group = old / self.keys_per_group;
                self.clean(group);
                written = Some(group);
            }
            self.unlink(oldest);
            self.remove_from_table(old);
            self.nodes[oldest as usize].key = key;
            oldest
        };
        let position = self.position_of_new(key);
        self.table[position] = node;
        self.link_newest(node);
        written
    }

    /// The first free position for a key that is not in the table; its node may have the key already.
    fn position_of_new(&self, key: u32) -> usize {
        let mut position = self.home(key);
        while self.table[position] != NONE {
            position = (position + 1) & (self.table.len() - 1);
        }
        position
    }

    /// Nothing of the group is dirty any more.
    fn clean(&mut self, group: u32) {
        let mut node = std::mem::replace(&mut self.dirty[group as usize], NONE);
        while node != NONE {
            let entry = &mut self.nodes[node as usize];
            entry.dirty = false;
            node = entry.next_dirty;
        }
    }

    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, node: u32) {
        let older = std::mem::replace(&mut self.newest, node);
        let entry = &mut self.nodes[node as usize];
        (entry.newer, entry.older) = (NONE, older);
        match older {
            NONE => self.oldest = node,
            older => self.nodes[older as usize].newer = node,
        }
    }

    /// Removes a key that is in the table, and moves those after it up, so that searches need no marks.
    fn remove_from_table(&mut self, key: u32) {
        let mask = self.table.len() - 1;
        let mut hole = self.position(key);
        let mut position = hole;
        loop {
            position = (position + 1) & mask;
            let node = self.table[position];
            if node == NONE {
                break;
            }
            let home = self.home(self.nodes[node as usize].key);
            // It may move up if its home is not between the hole and itself.
            if (position.wrapping_sub(home) & mask) >= (position.wrapping_sub(hole) & mask) {
                self.table[hole] = node;
                hole = position;
            }
        }
        self.table[hole] = NONE;
    }

    /// Makes room for one more node.
    fn grow(&mut self) {
        if (self.nodes.len() + 1) * 2 <= self.table.len() {
            return;
        }
        self.table = vec![NONE; self.table.len() * 2];
        for node in 0..self.nodes.len() {
            let position = self.position_of_new(self.nodes[node].key);
            self.table[position] = node as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, slowly: keys, newest last, and whether they are dirty.
    #[derive(Default)]
    struct Model(Vec<(u32, bool)>);

    impl Model {
        fn touch(&mut self, key: u32) -> bool {
            let Some(index) = self.0.iter().position(|(known, _)| *known == key) else { return false };
            let entry = self.0.remove(index);
            self.0.push(entry);
            true
        }

        fn insert(&mut self, key: u32, capacity: usize, keys_per_group: u32) -> Option<u32> {
            let evicted = (self.0.len() == capacity).then(|| self.0.remove(0));
            self.0.push((key, false));
            let (old, _) = evicted.filter(|(_, dirty)| *dirty)?;
            let group = old / keys_per_group;
            self.0
                .iter_mut()
                .filter(|(key, _)| key / keys_per_group == group)
                .for_each(|(_, dirty)| *dirty = false);
            Some(group)
        }
    }

    proptest! {
        #[test]
        fn it_is_the_slow_one(
            capacity in 1_u32..40,
            keys_per_group in 1_u32..9,
            steps in proptest::collection::vec((0_u32..100, any::<bool>()), 0..600),
        ) {
            let mut fast = Lru::new(capacity, 100, keys_per_group);
            let mut slow = Model::default();
            for (key, write) in steps {
                let known = slow.touch(key);
                prop_assert_eq!(fast.touch(key), known);
                if !known {
                    let written = slow.insert(key, capacity as usize, keys_per_group);
                    prop_assert_eq!(fast.insert(key), written);
                }
                if write {
                    fast.make_dirty(key);
                    slow.0.iter_mut().filter(|(known, _)| *known == key).for_each(|(_, dirty)| *dirty = true);
                }
            }
        }
    }
}
