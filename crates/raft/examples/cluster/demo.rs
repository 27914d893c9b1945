//! A cluster of three from one command.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::client::{call, call_leader};
use crate::message::{ClientCall, Reply, Status};
use crate::process::Process;

const TIMEOUT: Duration = Duration::from_secs(10);
const SNAPSHOT_EVERY: u64 = 5000;

/// Starts three nodes in a temporary folder, writes, kills the leader, and reads.
pub async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let program = std::env::current_exe()?;
    let start = |id| Process::start(&program, id, &crate::node_folder(folder.path(), id), SNAPSHOT_EVERY);
    let mut nodes = (1..=3).map(start).collect::<Result<Vec<_>, _>>()?;
    for node in &nodes {
        println!("node {} listens on {}", node.id, node.address);
    }
    let addresses: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let first = addresses.first().context("no node")?.clone();
    step(&first, ClientCall::Init).await?;
    await_leader(&addresses, None).await?;
    for node in nodes.iter().skip(1) {
        step(&first, ClientCall::AddLearner { id: node.id, address: node.address.clone() }).await?;
    }
    step(&first, ClientCall::ChangeMembership { ids: (1..=3).collect() }).await?;
    step(&first, ClientCall::Put { key: b"apple".into(), value: b"red".into() }).await?;
    step(&first, ClientCall::Get { key: b"apple".into(), is_stale_allowed: false }).await?;
    let leader = await_leader(&addresses, None).await?;
    println!("{leader}");
    println!("kill -9 of node {}", leader.id);
    nodes.iter_mut().filter(|node| node.id == leader.id).for_each(Process::kill);
    let leader = await_leader(&addresses, Some(leader.id)).await?;
    println!("{leader}");
    let survivor = nodes.iter().find(|node| node.id == leader.id).context("no survivor")?;
    step(&survivor.address, ClientCall::Get { key: b"apple".into(), is_stale_allowed: false }).await
}

/// Does a call, and says so.
async fn step(address: &str, request: ClientCall) -> anyhow::Result<()> {
    let what = match &request {
        ClientCall::Put { key, value } => {
            format!("put {} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value))
        }
        ClientCall::Get { key, .. } => format!("get {}", String::from_utf8_lossy(key)),
        ClientCall::AddLearner { id, .. } => format!("add-learner {id}"),
        ClientCall::ChangeMembership { ids } => format!("change-membership {ids:?}"),
        other => format!("{other:?}").to_lowercase(),
    };
    match call_leader(address, request, TIMEOUT).await? {
        Reply::Value(value) => {
            println!("{what}: {}", String::from_utf8_lossy(&value.context("the key is gone")?));
        }
        Reply::Done => println!("{what}: done"),
        other => bail!("{what}: {other:?}"),
    }
    Ok(())
}

/// Waits until a node says that it is the leader, other than `gone`.
async fn await_leader(addresses: &[String], gone: Option<u64>) -> anyhow::Result<Status> {
    for _ in 0..200 {
        for address in addresses {
            if let Ok(Reply::Status(status)) = call(address, ClientCall::Status, TIMEOUT).await
                && status.leader == Some(status.id)
                && gone != Some(status.id)
            {
                return Ok(status);
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("no node became the leader")
}
