//! Rows by their keys, and transactions that are tried until they are done.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use flashgrain_device::Nanos;

use super::TABLES;
use super::rows::Row;
use crate::drive::UserBytes;
use crate::engine::{Direction, Failure, Session, Table};

/// How long a transaction that has lost twice waits before it is tried again; twice as long after each
/// further time, up to the longest.
const PATIENCE: Duration = Duration::from_micros(20);
const PATIENCE_MAX: Duration = Duration::from_millis(2);

/// A client's access to the database.
pub(super) struct Access<'a> {
    session: &'a mut dyn Session,
    /// Used again and again: transactions allocate little.
    value: Vec<u8>,
    /// So far, without attempts that were in vain.
    user: UserBytes,
}

/// Whether a transaction is going to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
}

/// How a transaction wants to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending<T> {
    Commit(T),
    RollBack,
}

impl<'a> Access<'a> {
    pub fn new(session: &'a mut dyn Session) -> Self {
        Self { session, value: Vec::new(), user: UserBytes::default() }
    }

    /// Returns and resets the bytes read and written, without those of attempts that lost to others.
    pub fn take_user(&mut self) -> UserBytes {
        std::mem::take(&mut self.user)
    }

    /// Does `body` in a transaction, again for as long as it loses to others; `conflicts` is raised by the
    /// number of repetitions. `None` if it was rolled back.
    pub fn transaction<T>(
        &mut self,
        intent: Intent,
        conflicts: &mut u64,
        mut body: impl FnMut(&mut Self) -> Result<Ending<T>, Failure>,
    ) -> anyhow::Result<Option<T>> {
        let mut patience = Duration::ZERO;
        let before = self.user;
        loop {
            let ended = self.attempt(intent, &mut body);
            if !matches!(ended, Ok(Some(_))) {
                self.session.rollback();
            }
            match ended {
                Err(Failure::Conflict) => {
                    *conflicts += 1;
                    self.user = before;
                    patience = self.stand_back(patience)?;
                }
                Err(Failure::Broken(error)) => return Err(error),
                Ok(result) => return Ok(result),
            }
        }
    }

    /// Waits before the next try, and gives how long to wait after that. With some engines those that have
    /// won are not at their end by now, and trying is of no use until they are.
    fn stand_back(&mut self, patience: Duration) -> Result<Duration, Failure> {
        if !patience.is_zero() {
            self.wait_until(Duration::from(self.now()) + patience)?;
        }
        Ok((patience * 2).clamp(PATIENCE, PATIENCE_MAX))
    }

    pub fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        self.session.wait_until(until)
    }

    pub fn now(&self) -> Nanos {
        self.session.now()
    }

    fn attempt<T>(
        &mut self,
        intent: Intent,
        body: &mut impl FnMut(&mut Self) -> Result<Ending<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        match intent {
            Intent::Read => self.session.begin_reading()?,
            Intent::Write => self.session.begin()?,
        }
        match body(self)? {
            Ending::Commit(result) => self.session.commit().map(|()| Some(result)),
            Ending::RollBack => Ok(None),
        }
    }

    pub fn find<R: Row>(&mut self, key: &[u8]) -> Result<Option<R>, Failure> {
        if !self.session.get(R::TABLE, key, &mut self.value)? {
            return Ok(None);
        }
        self.user.read += bytes_of(key, &self.value);
        Ok(Some(decode(key, &self.value)?))
    }

    /// The row, which must be there.
    pub fn get<R: Row>(&mut self, key: &[u8]) -> Result<R, Failure> {
        let row = self.find(key)?;
        row.ok_or_else(|| Failure::Broken(anyhow!("{} {key:?} is not there", TABLES[R::TABLE])))
    }

    /// Visits those rows that are there, in any order, by their places in `keys`.
    pub fn get_many<R: Row>(
        &mut self,
        keys: &[&[u8]],
        mut visit: impl FnMut(usize, R),
    ) -> Result<(), Failure> {
        let mut refused = None;
        let user = &mut self.user;
        let mut seen = |place: usize, value: &[u8]| {
            user.read += bytes_of(keys[place], value);
            match decode(keys[place], value) {
                Ok(row) => visit(place, row),
                Err(error) => refused = Some(error),
            }
        };
        self.session.get_many(R::TABLE, keys, &mut seen)?;
        refused.map_or(Ok(()), |error| Err(Failure::Broken(error)))
    }

    /// Before a transaction that is going to change these rows.
    pub fn prefetch<R: Row>(&mut self, keys: &[&[u8]]) -> Result<(), Failure> {
        self.session.prefetch(R::TABLE, keys)
    }

    pub fn put<R: Row>(&mut self, key: &[u8], row: &R) -> Result<(), Failure> {
        self.value.clear();
        row.write(&mut self.value);
        self.user.written += bytes_of(key, &self.value);
        self.session.put(R::TABLE, key, &self.value)
    }

    /// Puts a record that is all key.
    pub fn put_key(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.put_bytes(table, key, &[])
    }

    pub fn put_bytes(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.user.written += bytes_of(key, value);
        self.session.put(table, key, value)
    }

    pub fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.user.written += bytes_of(key, &[]);
        self.session.remove(table, key)
    }

    /// Visits the records from `from` on whose keys begin with `prefix`, as long as `visit` says `true`.
    pub fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> anyhow::Result<bool>,
    ) -> Result<(), Failure> {
        let mut refused = None;
        let user = &mut self.user;
        let mut visit = |key: &[u8], value: &[u8]| {
            user.read += bytes_of(key, value);
            key.starts_with(prefix)
                && visit(key, value).unwrap_or_else(|error| {
                    refused = Some(error);
                    false
                })
        };
        self.session.scan(table, from, Direction::Forward, &mut visit)?;
        refused.map_or(Ok(()), |error| Err(Failure::Broken(error)))
    }

    /// The key of the first record from `from` on, if it begins with `prefix`.
    pub fn first_key(
        &mut self,
        table: Table,
        from: &[u8],
        prefix: &[u8],
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut first = None;
        self.scan(table, from, prefix, |key, _| {
            first = Some(key.to_vec());
            Ok(false)
        })?;
        Ok(first)
    }

    /// The key of the last record that is not above `from`.
    pub fn last_key(&mut self, table: Table, from: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut last = None;
        let user = &mut self.user;
        self.session.scan(table, from, Direction::Backward, &mut |key, value| {
            user.read += bytes_of(key, value);
            last = Some(key.to_vec());
            false
        })?;
        Ok(last)
    }
}

fn bytes_of(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

/// The row of a record.
pub(super) fn decode<R: Row>(key: &[u8], value: &[u8]) -> anyhow::Result<R> {
    R::decode(value).with_context(|| {
        let table = TABLES[R::TABLE];
        format!("{table} {key:?} is no row: it has {} bytes, which should be {}", value.len(), R::BYTES)
    })
}

/// The part of a key that it must have.
pub(super) fn part<T>(part: Option<T>) -> anyhow::Result<T> {
    part.context("a key is too short: the tables hold something else than TPC-C")
}
