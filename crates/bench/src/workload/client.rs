//! One client's operations, the same for every engine: they are drawn from the seed and the client's number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use flashgrain_device::Nanos;

use super::{Mix, Operation};
use crate::drive::{self, Done, UserBytes};
use crate::engine::{Direction, Failure, Session, Table};
use crate::keys::{self, Picker, Popularity};
use crate::records::Records;

/// See the module.
pub(super) struct Client<'s> {
    session: &'s mut dyn Session,
    mix: Mix,
    picker: Picker,
    /// Records by now, of all clients together.
    count: Arc<AtomicU64>,
    /// Of values that this client writes, so that each is another one.
    version: u64,
    is_loaded: bool,
    /// Conflicts of the operation under way.
    conflicts: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    found: Vec<u8>,
}

const RECORDS: Table = 0;

impl<'s> Client<'s> {
    /// The `number`-th one of a seed. `count`: of records, which inserts raise.
    pub fn new(
        session: &'s mut dyn Session,
        mix: Mix,
        records: &Records,
        popularity: Popularity,
        (seed, number): (u64, usize),
        count: Arc<AtomicU64>,
    ) -> Self {
        Self {
            session,
            mix,
            picker: Picker::new(popularity, seed, number as u64),
            count,
            version: (number as u64) << 40,
            is_loaded: records.count > 0,
            conflicts: 0,
            key: vec![0; records.key_bytes],
            value: vec![0; records.value_bytes],
            found: Vec::with_capacity(records.value_bytes),
        }
    }

    fn set_key(&mut self, record: u64) {
        self.mix.key(record, &mut self.key);
    }

    fn pick(&mut self) -> u64 {
        self.picker.record_of(self.count.load(Ordering::Relaxed))
    }

    fn read(&mut self) -> anyhow::Result<u64> {
        if self.mix.batch > 1 {
            return self.read_many();
        }
        let record = self.pick();
        self.set_key(record);
        let is_there = self.session.get(RECORDS, &self.key, &mut self.found)?;
        // A record is counted before it is there.
        let is_new = !is_there && self.mix.insert > 0.0;
        ensure!(is_new || is_there && keys::is_of(record, &self.found), "record {record} is not there");
        Ok(1)
    }

    /// Keys of missing records lie among those that are there.
    fn miss(&mut self) -> anyhow::Result<u64> {
        let record = u64::MAX - self.pick();
        self.set_key(record);
        let is_there = self.session.get(RECORDS, &self.key, &mut self.found)?;
        ensure!(!is_there, "record {record} is there, but was never inserted");
        Ok(1)
    }

    fn read_many(&mut self) -> anyhow::Result<u64> {
        let records: Vec<u64> = (0..self.mix.batch).map(|_| self.pick()).collect();
        let length = self.key.len();
        let mut bytes = vec![0; length * records.len()];
        for (record, key) in records.iter().zip(bytes.chunks_mut(length)) {
            self.mix.key(*record, key);
        }
        let keys: Vec<&[u8]> = bytes.chunks(length).collect();
        let mut found = 0;
        self.session.get_many(RECORDS, &keys, &mut |place, value| {
            found += u64::from(keys::is_of(records[place], value));
        })?;
        ensure!(found == records.len() as u64, "{found} of {} records are there", records.len());
        Ok(found)
    }

    fn update(&mut self) -> anyhow::Result<u64> {
        let record = self.pick();
        self.put(record)
    }

    fn put(&mut self, record: u64) -> anyhow::Result<u64> {
        self.version += 1;
        keys::value(record, self.version, &mut self.value);
        if self.mix.half_zeros {
            let half = self.value.len() / 2;
            self.value[half..].fill(0);
        }
        self.set_key(record);
        loop {
            match self.session.put(RECORDS, &self.key, &self.value) {
                Err(Failure::Conflict) => self.conflicts += 1,
                result => break result?,
            }
        }
        Ok(1)
    }

    fn insert(&mut self) -> anyhow::Result<u64> {
        let record = self.count.fetch_add(1, Ordering::Relaxed);
        self.put(record)
    }

    fn scan(&mut self) -> anyhow::Result<u64> {
        let (fewest, most) = self.mix.scan_records;
        let wanted = self.picker.between(u64::from(fewest), u64::from(most));
        let record = self.pick();
        self.set_key(record);
        let mut remaining = wanted;
        let mut bytes = 0;
        self.session.scan(RECORDS, &self.key, Direction::Forward, &mut |key, value| {
            bytes += key.len() + value.len();
            remaining -= 1;
            remaining > 0
        })?;
        ensure!(bytes > 0 || !self.is_loaded, "a scan from record {record} on finds nothing");
        Ok(wanted - remaining)
    }

    fn modify(&mut self) -> anyhow::Result<u64> {
        let record = self.pick();
        self.set_key(record);
        let is_there = self.session.get(RECORDS, &self.key, &mut self.found)?;
        ensure!(is_there && keys::is_of(record, &self.found), "record {record} is not there");
        self.put(record)
    }
}

impl drive::Client for Client<'_> {
    /// A look-up that finds nothing, or the value of another record, is an error.
    fn step(&mut self) -> anyhow::Result<Done> {
        self.conflicts = 0;
        let operation = self.mix.draw(&mut self.picker);
        let records = match operation {
            Operation::Read => self.read()?,
            Operation::Miss => self.miss()?,
            Operation::Update => self.update()?,
            Operation::Insert => self.insert()?,
            Operation::Scan => self.scan()?,
            Operation::Modify => self.modify()?,
        };
        // A scan is one operation, however long.
        let count = if operation == Operation::Scan { 1 } else { records };
        let bytes = records * (self.key.len() + self.value.len()) as u64;
        let user = match operation {
            Operation::Miss => UserBytes::default(),
            Operation::Read | Operation::Scan => UserBytes { read: bytes, written: 0 },
            Operation::Update | Operation::Insert => UserBytes { read: 0, written: bytes },
            Operation::Modify => UserBytes { read: bytes, written: bytes },
        };
        Ok(Done { kind: operation.name(), count, records, conflicts: self.conflicts, user })
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        self.session.wait_until(until)
    }

    fn now(&self) -> Nanos {
        self.session.now()
    }
}
