//! Nodes that leave, come back and are far behind.

use crate::message::{ClientCall, Reply};
use crate::nodes::Nodes;

async fn expect(nodes: &Nodes, key: &str, value: u64) {
    let reply = nodes.ask_leader(ClientCall::Get { key: key.into(), is_stale_allowed: false }).await;
    assert!(matches!(&reply, Reply::Value(Some(got)) if *got == value.to_string().into_bytes()), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_removed_and_killed_catches_up_by_a_snapshot() {
    let mut nodes = Nodes::start(50).await;
    let leader = nodes.leader(&[1, 2, 3]).await;
    let away = (1..=3).find(|id| *id != leader).unwrap();
    let rest: Vec<u64> = (1..=3).filter(|id| *id != away).collect();
    nodes.ask_leader(ClientCall::ChangeMembership { ids: rest.iter().copied().collect() }).await;
    nodes.node(away).kill();
    for value in 0..150 {
        nodes.put(&format!("k{}", value % 7), value).await;
    }
    let is_purged = |status: &crate::message::Status| status.purged_index.is_some_and(|index| index > 60);
    let purged = nodes.wait(leader, "the log is purged", is_purged).await;
    nodes.node(away).restart().unwrap();
    nodes.add(away).await;
    nodes.ask_leader(ClientCall::ChangeMembership { ids: (1..=3).collect() }).await;
    let caught_up = nodes
        .wait(away, "the snapshot is installed", |status| {
            status.voters.len() == 3 && status.snapshot_index.is_some()
        })
        .await;
    assert!(caught_up.snapshot_index >= purged.snapshot_index, "{caught_up}; {purged}");
    // Its vote counts: with another one killed, it and the third are a majority.
    nodes.node(leader).kill();
    expect(&nodes, "k2", 149).await;
    nodes.put("k2", 1000).await;
    expect(&nodes, "k2", 1000).await;
}
