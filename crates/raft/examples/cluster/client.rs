//! Asking a cluster.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::connection::Connection;
use crate::message::{ClientCall, Reply, Request};

/// One call to the node at `address`, and its reply.
pub async fn call(address: &str, call: ClientCall, timeout: Duration) -> anyhow::Result<Reply> {
    let mut connection = Connection::new(address.to_owned());
    let reply = tokio::time::timeout(timeout, connection.call(&Request::Client(call))).await;
    reply.context("no reply in time")?.with_context(|| format!("no reply of {address}"))
}

/// One call, sent on to the leader if `address` is another node.
pub async fn call_leader(address: &str, request: ClientCall, timeout: Duration) -> anyhow::Result<Reply> {
    let mut address = address.to_owned();
    for _ in 0..5 {
        match call(&address, request.clone(), timeout).await? {
            Reply::NotLeader(Some(leader)) => address = leader,
            Reply::NotLeader(None) => bail!("{address} knows no leader at present"),
            Reply::Failed(why) => bail!("{why}"),
            reply => return Ok(reply),
        }
    }
    bail!("the nodes do not agree about a leader at present")
}
