//! `flashgrain study`: the questions of papers on B-trees and LSM-trees, put to the store's own, and on
//! SQLite's files.

mod distinct;
mod entries;
#[cfg(feature = "hidden-parameters")]
mod hidden_parameters;
mod mqssd_lsm;
mod node_size;
mod nvme;
mod output;
mod pdam_btree;
mod run;
mod show;
mod xpoint;

use clap::{Args, Subcommand};

use crate::output::Context;
pub use output::write_report;

/// Repeat the experiments of papers with the store's own trees, and with SQLite, and show both results side
/// by side.
///
/// On simulated drives times are virtual: the same everywhere, and no drive is worn. The data are fewer than
/// the papers'; the output says how many times fewer.
#[derive(Debug, Args)]
pub struct StudyArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    List(show::ListArguments),
    Show(show::ShowArguments),
    Run(run::RunArguments),
    #[cfg(feature = "hidden-parameters")]
    HiddenParameters(hidden_parameters::HiddenParametersArguments),
    #[command(name = "mqssd-lsm")]
    MqssdLsm(mqssd_lsm::MqssdLsmArguments),
    #[command(name = "node-size")]
    NodeSize(node_size::NodeSizeArguments),
    Nvme(nvme::NvmeArguments),
    #[command(name = "pdam-btree")]
    PdamBtree(pdam_btree::PdamBtreeArguments),
    Xpoint(xpoint::XpointArguments),
}

pub fn run(arguments: &StudyArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.what {
        What::List(arguments) => show::list(arguments, context),
        What::Show(arguments) => show::show(arguments, context),
        What::Run(arguments) => run::run(arguments, context),
        #[cfg(feature = "hidden-parameters")]
        What::HiddenParameters(arguments) => hidden_parameters::run(arguments, context),
        What::MqssdLsm(arguments) => mqssd_lsm::run(arguments, context),
        What::NodeSize(arguments) => node_size::run(arguments, context),
        What::Nvme(arguments) => nvme::run(arguments, context),
        What::PdamBtree(arguments) => pdam_btree::run(arguments, context),
        What::Xpoint(arguments) => xpoint::run(arguments, context),
    }
}
