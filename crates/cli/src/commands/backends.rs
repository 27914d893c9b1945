//! `flashgrain backends`.

use clap::Args;
use flashgrain_device::BackendKind;
use serde::Serialize;

use crate::output::{print, print_json};

/// Say which kernel interfaces for I/O work here, best first, and why the others do not.
#[derive(Debug, Args)]
pub struct BackendsArguments {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    backend: &'static str,
    available: bool,
    why_not: Option<String>,
}

pub fn run(arguments: &BackendsArguments) -> anyhow::Result<()> {
    let rows: Vec<Row> = BackendKind::ALL
        .into_iter()
        .map(|backend| {
            let why_not = backend.ample().err();
            Row { backend: backend.name(), available: why_not.is_none(), why_not }
        })
        .collect();
    if arguments.json {
        return print_json(&rows);
    }
    let mut text = String::new();
    let mut chosen = false;
    for Row { backend, available, why_not } in rows {
        let state = match why_not {
            Some(why) => format!("not available: {why}"),
            None if backend == BackendKind::NvmePassthrough.name() => {
                "works; what --backend auto takes for /dev/ngXnY".to_owned()
            }
            None if backend == BackendKind::IoUringSqpoll.name() => {
                "works, and keeps a processor busy while requests come".to_owned()
            }
            None if chosen => "works".to_owned(),
            None => "works; what --backend auto takes".to_owned(),
        };
        chosen |= available;
        text += &format!("{backend:<18}{state}\n");
    }
    Ok(print(&text)?)
}
