//! `flashgrain-bench`: compares Flashgrain with other key-value stores.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use flashgrain_bench::engine::Durability;
use flashgrain_bench::run::Sizes;

/// Benchmarks of Flashgrain and other key-value stores.
#[derive(Debug, Parser)]
#[command(name = "flashgrain-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the engines: which are compiled in, with version and settings, and how to get the others.
    Engines {
        /// Memory that the settings are for, in MiB.
        #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..))]
        cache_mib: u64,
        /// Promise of each commit.
        #[arg(long, value_enum, default_value_t = Durability::Buffered)]
        durability: Durability,
    },
    /// List the workloads.
    Workloads,
    /// Run one workload on one engine.
    Run(commands::run::Arguments),
    /// Run suites on several engines, each run in a process of its own, in interleaved rounds; runs that the
    /// file of results has already are left out.
    Suite(commands::suite::Arguments),
    /// Show results side by side: tables, and a page with charts.
    Compare(commands::compare::Arguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Engines { cache_mib, durability } => commands::engines::engines(cache_mib, durability),
        Command::Workloads => {
            Sizes::names().for_each(|(name, what)| println!("{name:<22} {what}"));
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Suite(arguments) => commands::suite::suite(arguments),
        Command::Compare(arguments) => commands::compare::compare(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("flashgrain-bench: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
#[path = "../../cli/tests/documentation/parsed.rs"]
mod documented;

#[cfg(test)]
mod tests {
    use super::{Cli, documented};
    use clap::Parser;

    #[test]
    fn documented_commands_are_understood() {
        let refused = documented::refused("flashgrain-bench", Cli::try_parse_from);
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}
