//! SQLite's locks of a database, between connections of one process.

/// How far a connection has locked a database, as SQLite counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Not at all.
    #[default]
    None,
    /// It reads, as others may.
    Shared,
    /// It is going to write; others read.
    Reserved,
    /// It waits for readers to go; no new ones come.
    Pending,
    /// It writes.
    Exclusive,
}

impl Level {
    /// SQLite's number for it.
    pub fn of(number: i32) -> Self {
        match number {
            ..=0 => Self::None,
            1 => Self::Shared,
            2 => Self::Reserved,
            3 => Self::Pending,
            _ => Self::Exclusive,
        }
    }
}

/// The locks of one database.
#[derive(Debug, Default)]
pub(super) struct Locks {
    /// The highest level that any connection has.
    level: Level,
    /// Connections with at least a shared lock.
    sharers: u32,
}

impl Locks {
    /// Raises a connection's lock from `own`. It returns the new level, and whether that is the wanted one.
    pub fn raise(&mut self, own: Level, wanted: Level) -> (Level, bool) {
        if own >= wanted {
            return (own, true);
        }
        let is_others = own != self.level;
        if is_others && (self.level >= Level::Pending || wanted > Level::Shared) {
            return (own, false);
        }
        if wanted == Level::Shared {
            self.sharers += 1;
            self.level = self.level.max(Level::Shared);
            return (wanted, true);
        }
        let has = if wanted == Level::Exclusive && self.sharers > 1 { Level::Pending } else { wanted };
        self.level = has;
        (has, has == wanted)
    }

    /// Lowers a connection's lock.
    pub fn lower(&mut self, own: Level, to: Level) -> Level {
        if own <= to {
            return own;
        }
        if own > Level::Shared {
            self.level = Level::Shared;
        }
        if to == Level::None {
            self.sharers -= 1;
            if self.sharers == 0 {
                self.level = Level::None;
            }
        }
        to
    }

    /// Whether some connection is going to write.
    pub fn is_reserved(&self) -> bool {
        self.level >= Level::Reserved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_when_all_others_have_gone() {
        let mut locks = Locks::default();
        let (mut reader, _) = locks.raise(Level::None, Level::Shared);
        let (mut writer, _) = locks.raise(Level::None, Level::Shared);
        (writer, _) = locks.raise(writer, Level::Reserved);
        assert!(locks.is_reserved());
        assert_eq!(locks.raise(reader, Level::Reserved), (Level::Shared, false));
        assert_eq!(locks.raise(Level::None, Level::Shared), (Level::Shared, true), "readers still come");
        assert_eq!(locks.lower(Level::Shared, Level::None), Level::None);
        let (pending, has_it) = locks.raise(writer, Level::Exclusive);
        assert_eq!((pending, has_it), (Level::Pending, false));
        assert_eq!(locks.raise(Level::None, Level::Shared), (Level::None, false), "none comes any more");
        reader = locks.lower(reader, Level::None);
        writer = pending;
        (writer, _) = locks.raise(writer, Level::Exclusive);
        assert_eq!((reader, writer), (Level::None, Level::Exclusive));
        writer = locks.lower(writer, Level::Shared);
        assert_eq!(locks.raise(Level::None, Level::Shared), (Level::Shared, true));
        assert_eq!(locks.lower(writer, Level::None), Level::None);
        assert!(!locks.is_reserved());
    }
}
