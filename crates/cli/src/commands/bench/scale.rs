//! `flashgrain bench scale`.

use clap::Args;
use flashgrain_bench::experiment::{Experiment, scale};

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};

/// Look-ups on one simulated drive, two, and so on: how the rate grows, and whether drives or processors
/// bind.
///
/// The drives are shrunk to twice the room of the records, or 1 GiB each. The times of processors are
/// measured on this machine at first.
#[derive(Debug, Args)]
#[command(mut_arg("workers", |argument| argument.default_value("64")))]
#[command(mut_arg("tasks", |argument| argument.default_value("4096")))]
#[command(mut_arg("records", |argument| argument.default_value("4000000")))]
#[command(mut_arg("operations", |argument| argument.default_value("500000")))]
pub struct ScaleArguments {
    /// Numbers of drives, such as 1-8 or 1,2,4,8; by default one to as many as the target has.
    #[arg(long, value_name = "NUMBERS", value_parser = parse_drives)]
    drives: Option<Drives>,
    #[command(flatten)]
    options: BenchOptions,
}

/// Numbers of drives, as they are typed.
#[derive(Clone, Debug, PartialEq)]
struct Drives(Vec<u32>);

fn parse_drives(text: &str) -> Result<Drives, String> {
    const HELP: &str = "expected numbers of drives such as 1-8 or 1,2,4,8";
    let number = |text: &str| text.trim().parse().ok().filter(|count| (1..=1024).contains(count)).ok_or(HELP);
    let numbers: Vec<u32> = match text.split_once('-') {
        Some((first, last)) => (number(first)?..=number(last)?).collect(),
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    if numbers.is_empty() { Err(HELP.into()) } else { Ok(Drives(numbers)) }
}

pub fn run(arguments: &ScaleArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.options()?;
    let interrupt = context.interrupt.watch()?;
    let numbers = arguments.drives.clone().map(|Drives(numbers)| numbers);
    let result = scale(&Experiment { options, listener: context, interrupt }, numbers)?;
    if arguments.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_drives_are_ranges_or_lists() {
        assert_eq!(parse_drives("1-4"), Ok(Drives(vec![1, 2, 3, 4])));
        assert_eq!(parse_drives("1, 8"), Ok(Drives(vec![1, 8])));
        for nonsense in ["", "0", "4-1", "a", "1-", "2000"] {
            assert!(parse_drives(nonsense).is_err(), "{nonsense}");
        }
    }
}
