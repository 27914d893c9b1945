//! Failing reads and writes: the caller gets the error, and acknowledged commits are there.

use std::collections::BTreeMap;

use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss, Operation};

use super::*;
use crate::ErrorKind;
use crate::index::May;
use crate::log::tests::device;
use crate::txn::throttle::Load;
use crate::versioned::map::{fail_at, has_failed};

/// The acknowledged records.
#[derive(Default)]
struct Life {
    content: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Values that a snapshot sees.
    old: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Life {
    fn write(
        &mut self,
        transactions: &Transactions,
        written: Written<'_>,
        value: Option<&[u8]>,
    ) -> Result<(), Error> {
        transactions.write(written, Durability::None)?;
        match value {
            Some(value) => self.content.insert(written.key.to_vec(), value.to_vec()),
            None => self.content.remove(written.key),
        };
        Ok(())
    }

    fn look(
        &self,
        transactions: &Transactions,
        tree: &Tree,
        at: Option<&Snapshot>,
        content: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<(), Error> {
        for key in [b"a", b"b", b"c", b"d"] {
            let mut value = Vec::new();
            let found = transactions.get(tree, key, at.map(Snapshot::timestamp), &mut value)?;
            let expected = content.get(key.as_slice());
            assert_eq!(found.map(|_| &value), expected, "{key:?}");
        }
        Ok(())
    }

    /// All operations of transactions, without concurrent ones.
    fn live(&mut self, transactions: &Arc<Transactions>, tree: &Tree) -> Result<(), Error> {
        for round in [b"1", b"2"] {
            let put = |key| Written { tree, key, write: Write::Put(round) };
            self.write(transactions, put(b"a"), Some(round))?;
            self.write(transactions, put(b"b"), Some(round))?;
            let overflow = Write::PutOverflow { reference: round, logged: b"pages" };
            self.write(transactions, Written { tree, key: b"c", write: overflow }, Some(round))?;
            let snapshot = transactions.snapshot()?;
            self.old = self.content.clone();
            self.write(transactions, put(b"c"), Some(round))?;
            self.write(transactions, Written { tree, key: b"b", write: Write::Remove }, None)?;
            let both = [put(b"a"), put(b"d")];
            transactions.commit(Some(snapshot.timestamp()), &[], &both, Durability::None)?;
            self.content.extend([b"a", b"d"].map(|key| (key.to_vec(), round.to_vec())));
            self.look(transactions, tree, Some(&snapshot), &self.old)?;
            self.look(transactions, tree, None, &self.content)?;
            let keys = [b"a".to_vec(), b"d".to_vec()];
            let look = || tree.index.read(b"a", None, May::Wait, &mut Vec::new()).map(|_| keys.to_vec());
            transactions.remove_alone(tree, look, |keys| keys, Durability::None)?;
            keys.iter().for_each(|key| drop(self.content.remove(key)));
            self.look(transactions, tree, Some(&snapshot), &self.old)?;
            drop(snapshot);
            // By either way.
            match round {
                b"1" => transactions.alone(|| Ok(Some(())))?.unwrap_or(()),
                _ => transactions.settle()?,
            }
            assert_eq!(transactions.old_versions(), OldVersions::default());
        }
        Ok(())
    }
}

#[test]
fn any_access_to_a_record_may_fail() {
    let mut failures = 0;
    for nth in 1.. {
        let (transactions, _harness) = store(1);
        let (tree, _) = transactions.tree(1);
        transactions.when_overflow_is_gone(Box::new(|_| ()));
        let mut life = Life::default();
        fail_at(nth);
        let lived = life.live(&transactions, &tree);
        if !has_failed() {
            fail_at(0);
            lived.unwrap();
            break;
        }
        failures += 1;
        let kind = lived.map_err(|error| error.kind()).unwrap_err();
        assert_eq!(kind, ErrorKind::Io, "access {nth}");
        // A commit that was not acknowledged may have changed a record only if the store refuses all reads.
        match life.look(&transactions, &tree, None, &life.content) {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned, "access {nth}"),
        }
    }
    assert!(failures > 50, "{failures}");
}

#[test]
fn nothing_is_removed_alone_when_nothing_can_be_promised() {
    let device = device(1);
    let (transactions, _harness) = store_on(Arc::clone(&device) as _, 1, RECENT_BYTES);
    let (tree, map) = transactions.tree(1);
    put(&transactions, &tree, b"a", b"1");
    let keys = [b"a".to_vec()];
    let remove = || transactions.remove_alone(&tree, || Ok(keys.to_vec()), |keys| keys, Durability::Sync);
    device.inject(Fault::new(FaultKind::FlushError { data: FlushLoss::Dropped }).on(Operation::Flush));
    device.inject(Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write));
    assert_eq!(remove().unwrap_err().kind(), ErrorKind::Io);
    // It was removed, and later callers are told that this is no promise.
    assert_eq!(map.len(), 0);
    device.disarm_faults();
    let (devices, load) = (Devices::new(device as _, None), Load { dirty: 0.5, ..Load::default() });
    transactions.watch(devices, Arc::default(), move |_| load);
    assert_eq!(remove().unwrap_err().kind(), ErrorKind::Poisoned);
}

/// Those under way will never be done.
#[test]
fn who_waits_because_too_many_commits_are_under_way_is_told_when_they_fail() {
    let (transactions, _harness) = store(1);
    let (tree, map) = transactions.tree(1);
    for _ in 0..=1 << 15 {
        transactions.log.append_noting(b"", |logged| transactions.visible.begin(logged)).unwrap();
    }
    transactions.poison.note("the drive is gone".into());
    let written = Written { tree: &tree, key: b"a", write: Write::Put(b"1") };
    let refused = transactions.write(written, Durability::None).unwrap_err();
    assert_eq!((refused.kind(), map.len()), (ErrorKind::Poisoned, 0));
}
