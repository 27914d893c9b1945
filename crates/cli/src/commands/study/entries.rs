//! All studies, as far as they are run and listed alike.

use clap::{Args, Parser};
use flashgrain_bench::study::comparison::Comparison;
#[cfg(feature = "hidden-parameters")]
use flashgrain_bench::study::hidden_parameters as hidden;
use flashgrain_bench::study::{About, Sheet, mqssd_lsm, node_size, nvme, pdam_btree, xpoint};
use serde::Serialize;

use super::{mqssd_lsm as of_mqssd_lsm, node_size as of_node_size, nvme as of_nvme};
use super::{pdam_btree as of_pdam_btree, xpoint as of_xpoint};
use crate::exit::Usage;
use crate::output::Context;

/// A study.
pub struct Entry {
    pub about: &'static About,
    /// The paper's numbers.
    pub published: fn() -> Vec<Comparison>,
    /// Questions that can be asked one by one, by `--only`; none: it is asked as a whole.
    pub questions: Vec<String>,
    /// Arguments for a run of a minute or less.
    pub quick: &'static [&'static str],
    run: fn(&[String], &Context) -> anyhow::Result<Outcome>,
}

/// The result of a study.
pub struct Outcome {
    pub json: serde_json::Value,
    pub sheet: Sheet,
}

impl Entry {
    /// Runs it with these arguments.
    pub fn run(&self, arguments: &[String], context: &Context) -> anyhow::Result<Outcome> {
        (self.run)(arguments, context)
    }
}

/// The arguments of a study on their own. Later ones count, so that users may change those of a quick study.
#[derive(Parser)]
#[command(no_binary_name = true, args_override_self = true, disable_help_flag = true)]
struct Alone<T: Args> {
    #[command(flatten)]
    arguments: T,
}

fn outcome<T: Args, R: Serialize>(
    arguments: &[String],
    measure: impl FnOnce(&T) -> anyhow::Result<R>,
    sheet: impl FnOnce(&R) -> Sheet,
) -> anyhow::Result<Outcome> {
    let Alone { arguments } = Alone::<T>::try_parse_from(arguments).map_err(|error| refused(&error))?;
    let result = measure(&arguments)?;
    Ok(Outcome { json: serde_json::to_value(&result)?, sheet: sheet(&result) })
}

/// The error of a parser, without the usage of a command that is not the user's.
fn refused(error: &clap::Error) -> Usage {
    let text = error.to_string();
    let text = text.split("\n\nUsage").next().unwrap_or_default();
    Usage(format!("arguments after --: {}", text.trim_start_matches("error: ").trim()))
}

fn names<Q: clap::ValueEnum>() -> Vec<String> {
    let values = Q::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

/// All studies of this build.
pub fn all() -> Vec<Entry> {
    vec![
        #[cfg(feature = "hidden-parameters")]
        Entry {
            about: &hidden::ABOUT,
            published: hidden::published,
            questions: names::<hidden::Technique>(),
            quick: &["--divisor=500", "--iterations=2", "--transactions=1,100"],
            run: |arguments, context| {
                let measure = |own: &_| super::hidden_parameters::measure(own, context);
                outcome(arguments, measure, hidden::HiddenResult::sheet)
            },
        },
        Entry {
            about: &mqssd_lsm::ABOUT,
            published: mqssd_lsm::published,
            questions: Vec::new(),
            quick: &["--records=16384", "--fanouts=2,8", "--concurrency=1,8,32", "--queries=512"],
            run: |arguments, context| {
                let measure = |own: &_| of_mqssd_lsm::measure(own, context);
                outcome(arguments, measure, mqssd_lsm::MqssdResult::sheet)
            },
        },
        Entry {
            about: &node_size::ABOUT,
            published: node_size::published,
            questions: Vec::new(),
            quick: &[
                "--records=100000",
                "--look-ups=2000",
                "--inserts=6000",
                "--node-bytes=4KiB,16KiB,64KiB,256KiB,1MiB",
            ],
            run: |arguments, context| {
                let measure = |own: &_| of_node_size::measure(own, context);
                outcome(arguments, measure, node_size::NodeSizeResult::sheet)
            },
        },
        Entry {
            about: &nvme::ABOUT,
            published: nvme::published,
            questions: names::<nvme::Question>(),
            quick: &["--requests=20000", "--operations=5000", "--cache=8MiB"],
            run: |arguments, context| {
                let measure = |own: &_| of_nvme::measure(own, context);
                outcome(arguments, measure, nvme::NvmeResult::sheet)
            },
        },
        Entry {
            about: &pdam_btree::ABOUT,
            published: pdam_btree::published,
            questions: Vec::new(),
            quick: &["--records=300000", "--look-ups=4000", "--clients=1,2,4"],
            run: |arguments, context| {
                let measure = |own: &_| of_pdam_btree::measure(own, context);
                outcome(arguments, measure, pdam_btree::PdamResult::sheet)
            },
        },
        Entry {
            about: &xpoint::ABOUT,
            published: xpoint::published,
            questions: names::<xpoint::Question>(),
            quick: &["--records=32768", "--seconds=60"],
            run: |arguments, context| {
                let measure = |own: &_| of_xpoint::measure(own, context);
                outcome(arguments, measure, xpoint::XpointResult::sheet)
            },
        },
    ]
}

/// The study of this name.
///
/// # Errors
/// Which there are.
pub fn named(name: &str) -> Result<Entry, Usage> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|entry| entry.about.name).collect();
    let known = names.join(", ");
    let found = all.into_iter().find(|entry| entry.about.name == name);
    found.ok_or_else(|| Usage(format!("there is no study {name}; there are {known}")))
}
