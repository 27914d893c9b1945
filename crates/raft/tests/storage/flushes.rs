//! Groups share flushes of the log.

use std::sync::Arc;

use flashgrain_raft::KeyValue;
use openraft::Vote;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use tokio::sync::Barrier;

use crate::types::{Log, Types, put, run, store};

const GROUPS: usize = 32;
const APPENDS: u64 = 16;

#[test]
fn appends_of_many_groups_share_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let open = |group: usize| store.group::<Types, _>(&format!("g{group}"), KeyValue).unwrap().0;
    let logs: Vec<Log> = (0..GROUPS).map(open).collect();
    let before = store.db().stats().log;
    run(async {
        let together = Arc::new(Barrier::new(GROUPS));
        let append = |mut log: Log| {
            let together = Arc::clone(&together);
            tokio::spawn(async move {
                for index in 0..APPENDS {
                    together.wait().await;
                    log.blocking_append([put(1, index, "k")]).await.unwrap();
                }
            })
        };
        for appended in logs.into_iter().map(append).collect::<Vec<_>>() {
            appended.await.unwrap();
        }
    });
    let after = store.db().stats().log;
    let (commits, flushes) = (after.records - before.records, after.syncs - before.syncs);
    println!("{GROUPS} groups, {commits} appends, {flushes} flushes");
    assert_eq!(commits, GROUPS as u64 * APPENDS);
    assert!((APPENDS..commits / 2).contains(&flushes), "{commits} appends, {flushes} flushes");
}

#[test]
fn appends_and_votes_wait_for_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (mut log, _) = store.group::<Types, _>("g", KeyValue).unwrap();
    let flushes = || store.db().stats().log.syncs;
    run(async {
        for index in 0..10 {
            let before = flushes();
            log.blocking_append([put(1, index, "k")]).await.unwrap();
            let appended = flushes();
            log.save_vote(&Vote::new(index, 1)).await.unwrap();
            assert!(before < appended && appended < flushes());
        }
    });
}
