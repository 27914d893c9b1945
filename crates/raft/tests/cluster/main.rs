//! A cluster of three processes over loopback, whose nodes are killed and whose links are cut.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../../examples/cluster/client.rs"]
mod client;
#[path = "../../examples/cluster/connection.rs"]
mod connection;
#[path = "../../examples/cluster/message.rs"]
mod message;
#[path = "../../examples/cluster/process.rs"]
mod process;

mod faults;
mod linearizable;
mod membership;
mod nodes;
mod stale_read;
