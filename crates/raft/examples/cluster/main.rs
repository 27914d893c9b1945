//! A replicated key-value service: processes that speak over TCP, each with a store of its own.
//!
//! ```text
//! cargo run -p flashgrain_raft --example cluster -- demo
//!
//! cluster node --id 1 --listen 127.0.0.1:7001 --folder n1
//! cluster client 127.0.0.1:7001 init
//! cluster client 127.0.0.1:7001 add-learner 2 127.0.0.1:7002
//! cluster client 127.0.0.1:7001 change-membership 1 2 3
//! cluster client 127.0.0.1:7001 put apple red
//! cluster client 127.0.0.1:7001 get apple
//! cluster client 127.0.0.1:7001 status
//! ```
//!
//! It has no authentication: it listens where you say, and whoever reaches it may do everything.

mod client;
mod connection;
mod demo;
mod message;
mod network;
mod node;
mod process;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use message::{ClientCall, Reply};

#[derive(Parser)]
#[command(about = "A replicated key-value service on Flashgrain's store")]
enum Arguments {
    /// Start a cluster of three processes, write, kill the leader with -9, and read
    Demo,
    /// Run a node
    Node(node::Options),
    /// Ask a node; a request for the leader is sent on to it
    Client {
        /// Address of a node
        address: String,
        #[command(subcommand)]
        call: Call,
    },
}

#[derive(Subcommand)]
enum Call {
    /// Make a cluster of this one node
    Init,
    /// Send the log to another node, without a vote for it
    AddLearner { id: u64, address: String },
    /// Give votes to these nodes and to no others
    ChangeMembership { ids: Vec<u64> },
    /// Give a key a value
    Put { key: String, value: String },
    /// Read a key, linearizably
    Get { key: String },
    /// Build a snapshot and purge the log
    Snapshot,
    /// Show the node's role, its leader and how far its log is
    Status,
}

impl From<Call> for ClientCall {
    fn from(call: Call) -> Self {
        match call {
            Call::Init => Self::Init,
            Call::AddLearner { id, address } => Self::AddLearner { id, address },
            Call::ChangeMembership { ids } => Self::ChangeMembership { ids: ids.into_iter().collect() },
            Call::Put { key, value } => Self::Put { key: key.into_bytes(), value: value.into_bytes() },
            Call::Get { key } => Self::Get { key: key.into_bytes(), is_stale_allowed: false },
            Call::Snapshot => Self::Snapshot,
            Call::Status => Self::Status,
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Demo => demo::run().await,
        Arguments::Node(options) => node::run(options).await,
        Arguments::Client { address, call } => {
            let reply = client::call_leader(&address, call.into(), Duration::from_secs(10)).await?;
            match reply {
                Reply::Value(Some(value)) => println!("{}", String::from_utf8_lossy(&value)),
                Reply::Value(None) => println!("(no such key)"),
                Reply::Done => println!("done"),
                Reply::Status(status) => println!("{status}"),
                other => anyhow::bail!("{other:?}"),
            }
            Ok(())
        }
    }
}

/// Folder for the nodes of a demonstration.
fn node_folder(parent: &std::path::Path, id: u64) -> PathBuf {
    parent.join(format!("node{id}"))
}
