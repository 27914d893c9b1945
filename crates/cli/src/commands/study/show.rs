//! `flashgrain study list` and `flashgrain study show`.

use clap::Args;
use flashgrain_bench::study::comparison;
use flashgrain_report::page::{Cell, Kind, Table};

use super::entries;
use crate::output::{Context, print};

/// List the studies: the paper of each, and its parts that are repeated.
#[derive(Debug, Args)]
pub struct ListArguments {}

/// Show a study without running it: the paper's experiments, how they are scaled, and the paper's numbers.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The study.
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn list(_: &ListArguments, _: &Context) -> anyhow::Result<()> {
    let line = |entry: entries::Entry| {
        let about = entry.about;
        format!("{}\n    {}\n    {}\n", about.name, about.paper, about.parts)
    };
    Ok(print(&entries::all().into_iter().map(line).collect::<String>())?)
}

pub fn show(arguments: &ShowArguments, _: &Context) -> anyhow::Result<()> {
    let entry = entries::named(&arguments.name)?;
    let about = entry.about;
    let mut scaled = Table::new(&[("", Kind::Label), ("the paper", Kind::Label), ("here", Kind::Label)]);
    for (name, papers, ours) in about.scaled {
        scaled.push([*name, *papers, *ours].map(|text| Cell::from(text.to_owned())));
    }
    let mut out =
        format!("# {}\n\n{}\n\nRepeated: {}.\n\n{}\n\n", about.name, about.paper, about.parts, about.did);
    out += &scaled.markdown();
    if !entry.questions.is_empty() {
        out += &format!("\nQuestions (`--only`): {}.\n", entry.questions.join(", "));
    }
    out += &format!(
        "\n`flashgrain study run {0}` runs all of it, `flashgrain study run {0} --quick` less (`{1}`), `flashgrain study {0} --help` tells the rest.\n",
        about.name,
        entry.quick.join(" ")
    );
    let published = (entry.published)();
    if !published.is_empty() {
        out += &format!("\n## The paper's numbers\n\n{}", comparison::table(&published).markdown());
    }
    Ok(print(&out)?)
}
