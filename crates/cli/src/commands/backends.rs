//! `flashgrain backends`.

use clap::Args;
use flashgrain_device::{BackendKind, devices_with_poll_queues};
use serde::Serialize;

use crate::output::{print, print_json};

/// Say which kernel interfaces for I/O work here, and why the others do not.
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
    /// Remark on one that works.
    remark: Option<String>,
}

impl Row {
    /// A backend; `chosen`: whether one was found before that `--backend auto` takes.
    fn of(backend: BackendKind, chosen: &mut bool) -> Self {
        let why_not = backend.ample().err();
        let remark = match backend {
            BackendKind::IoUringSqpoll => Some("keeps a processor busy while requests come".into()),
            BackendKind::NvmePassthrough => Some("chosen by --backend auto for /dev/ngXnY".into()),
            _ if why_not.is_none() && !std::mem::replace(chosen, true) => {
                Some("chosen by --backend auto for files and block devices".into())
            }
            _ => None,
        };
        Self { backend: backend.name(), available: why_not.is_none(), why_not, remark }
    }

    /// Completions that are polled for, with `io_uring` or passthrough.
    fn of_polling() -> Self {
        let drives = devices_with_poll_queues();
        let why_not = drives.is_empty().then(|| {
            "no drive here has poll queues; NVMe drives get some by the kernel's parameter nvme.poll_queues=2".into()
        });
        let remark = Some(format!("io --polled on {}", drives.join(", ")));
        Self { backend: "polled", available: why_not.is_none(), why_not, remark }
    }

    fn line(&self) -> String {
        let state = match (&self.why_not, &self.remark) {
            (Some(why), _) => format!("not available: {why}"),
            (None, Some(remark)) => format!("works; {remark}"),
            (None, None) => "works".into(),
        };
        format!("{:<18}{state}\n", self.backend)
    }
}

pub fn run(arguments: &BackendsArguments) -> anyhow::Result<()> {
    let mut chosen = false;
    let mut rows: Vec<Row> = BackendKind::ALL.into_iter().map(|kind| Row::of(kind, &mut chosen)).collect();
    rows.push(Row::of_polling());
    if arguments.json {
        return print_json(&rows);
    }
    Ok(print(&rows.iter().map(Row::line).collect::<String>())?)
}
