//! Asking a cluster.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::connection::Connection;
use crate::message::{ClientCall, Reply, Request};

/// A node that has not replied by then is asked no longer.
const CALL: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// One call to the node at `address`, and its reply.
pub async fn call(address: &str, call: ClientCall, timeout: Duration) -> anyhow::Result<Reply> {
    let mut connection = Connection::new(address.to_owned());
    let reply = tokio::time::timeout(timeout, connection.call(&Request::Client(call))).await;
    reply.context("no reply in time")?.with_context(|| format!("no reply of {address}"))
}

/// A call for the leader, to which the node at `address` shows the way. While there is no leader, or none
/// that has a majority, it is asked again, until `patience` is over. So a write whose reply was lost is
/// written again.
pub async fn call_leader(address: &str, request: ClientCall, patience: Duration) -> anyhow::Result<Reply> {
    let mut why = String::new();
    let asked = async {
        let mut at = address.to_owned();
        loop {
            let (next, failure) = match call(&at, request.clone(), CALL).await {
                Ok(Reply::NotLeader(Some(leader))) => {
                    let failure = format!("{at} says that {leader} is the leader");
                    (leader, failure)
                }
                Ok(Reply::NotLeader(None)) => (address.to_owned(), format!("{at} knows no leader")),
                Ok(Reply::Unavailable(failure)) => (address.to_owned(), failure),
                Ok(Reply::Failed(failure)) => bail!("{failure}"),
                Ok(reply) => return Ok(reply),
                Err(failure) => (address.to_owned(), format!("{failure:#}")),
            };
            (at, why) = (next, failure);
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(patience, asked).await {
        Ok(reply) => reply,
        Err(_) => bail!("no reply of a leader within {patience:?}: {why}"),
    }
}
