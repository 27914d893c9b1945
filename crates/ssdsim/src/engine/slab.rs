//! Numbered slots that are used again: no allocation once there are as many as were ever in use at a time.

/// See the module.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Stores `value` and says where.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = value;
                index
            }
            None => {
                self.slots.push(value);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Gives a slot up; its value stays until the slot is used again.
    #[inline]
    pub fn remove(&mut self, index: u32) {
        debug_assert!(!self.free.contains(&index), "slot {index} given up twice");
        self.free.push(index);
    }

    /// The values in use, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut used = vec![true; self.slots.len()];
        for free in &self.free {
            used[*free as usize] = false;
        }
        self.slots.iter().zip(used).filter_map(|(value, used)| used.then_some(value))
    }

    /// Slots in use.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize]
    }
}
