//! The checker sees a stale read, and `ensure_linearizable` prevents it.

use crate::client::call;
use crate::linearizable::{Kind, Operation, is_linearizable};
use crate::message::{ClientCall, Reply};
use crate::nodes::{Nodes, TIMEOUT};

fn number(reply: Reply) -> Option<u64> {
    let Reply::Value(value) = reply else { panic!("{reply:?}") };
    value.map(|value| String::from_utf8(value).unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_has_stale_values_and_linearizable_reads_do_not_show_them() {
    let nodes = Nodes::start(5000).await;
    nodes.put("k", 1).await;
    let old = nodes.leader(&[1, 2, 3]).await;
    let others: Vec<u64> = (1..=3).filter(|id| *id != old).collect();
    nodes.cut(old, others.clone()).await;
    let new = nodes.leader(&others).await;
    assert_ne!(old, new);
    let put = ClientCall::Put { key: b"k".into(), value: b"2".into() };
    assert!(matches!(call(nodes.address(new), put, TIMEOUT).await.unwrap(), Reply::Done));
    let get = |is_stale_allowed| ClientCall::Get { key: b"k".into(), is_stale_allowed };
    let fresh = number(call(nodes.address(new), get(false), TIMEOUT).await.unwrap());
    let stale = number(call(nodes.address(old), get(true), TIMEOUT).await.unwrap());
    let history = |read| {
        let operation = |kind, called| Operation { kind, called, returned: Some(called + 1) };
        [operation(Kind::Write(1), 0), operation(Kind::Write(2), 2), operation(Kind::Read(read), 4)]
    };
    assert_eq!((fresh, stale), (Some(2), Some(1)));
    assert!(is_linearizable(&history(fresh)) && !is_linearizable(&history(stale)));
    let asked = call(nodes.address(old), get(false), TIMEOUT).await;
    assert!(!matches!(asked, Ok(Reply::Value(_))), "a read without a quorum: {asked:?}");
    nodes.cut(old, []).await;
    nodes.wait(old, "the old leader follows", |status| status.leader == Some(new)).await;
}
