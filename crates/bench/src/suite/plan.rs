//! The runs of each suite. One command makes the tables of docs/benchmarks/tables.md.

use clap::ValueEnum;

use crate::engine::Durability;

/// A question to all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Random look-ups out of memory, with several numbers of clients, and on one core.
    Lookups,
    /// Random inserts and updates out of memory.
    Writes,
    /// Look-ups when everything is in memory, on one core.
    Memory,
    /// YCSB A to F out of memory.
    Ycsb,
    /// db_bench's fills, seeks and mixes.
    DbBench,
    /// Latency of a mix at several rates, in an open loop.
    Tail,
    /// Bursts of writes, long scans during writes.
    Mixed,
    /// Small durable commits.
    Commits,
    /// TPC-C out of memory, and with durable commits.
    Tpcc,
    /// A few questions of each kind, for trying.
    Quick,
}

/// Runs that differ only in their engine, and are repeated in rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Name of the workload.
    pub workload: &'static str,
    /// Clients at a time.
    pub clients: usize,
    /// Processors; all unless given.
    pub cores: Option<usize>,
    /// Cache, as a share of the bytes of keys and values.
    pub cache_share: f64,
    /// Promise of each commit.
    pub durability: Durability,
    /// Share of the rate that each engine reaches in a closed loop, for an open one.
    pub load: Option<f64>,
}

/// Data are ten times the cache, as in the papers.
const OUT_OF_MEMORY: f64 = 0.1;

/// With room for the engines' needs in addition to keys and values.
const IN_MEMORY: f64 = 3.0;

/// Numbers of clients that engines are tried with: each is judged by its best.
const CLIENTS: [usize; 5] = [1, 8, 32, 64, 128];

/// Of mixes, and of TPC-C with durable commits.
const MIX_CLIENTS: usize = 64;

/// Of TPC-C else: threads do best with few, tasks with many.
const TPCC_CLIENTS: [usize; 3] = [32, 64, 128];

impl Planned {
    fn new(workload: &'static str, clients: usize) -> Self {
        Self {
            workload,
            clients,
            cores: None,
            cache_share: OUT_OF_MEMORY,
            durability: Durability::None,
            load: None,
        }
    }
}

impl Suite {
    /// Its runs, for one engine and one round.
    pub fn runs(self) -> Vec<Planned> {
        match self {
            Self::Lookups => {
                let mut runs: Vec<_> =
                    CLIENTS.iter().map(|clients| Planned::new("lookup", *clients)).collect();
                runs.push(Planned::new("lookup-many", 8));
                runs.extend(
                    [64, 128].map(|clients| Planned { cores: Some(1), ..Planned::new("lookup", clients) }),
                );
                runs
            }
            Self::Writes => ["insert", "overwrite"]
                .into_iter()
                .flat_map(|workload| [1, 32].map(|clients| Planned::new(workload, clients)))
                .collect(),
            Self::Memory => {
                vec![Planned { cores: Some(1), cache_share: IN_MEMORY, ..Planned::new("lookup", 1) }]
            }
            Self::Ycsb => ["ycsb-c", "ycsb-b", "ycsb-d", "ycsb-e", "ycsb-f", "ycsb-a"]
                .into_iter()
                .map(|workload| Planned::new(workload, MIX_CLIENTS))
                .collect(),
            Self::DbBench => {
                let workloads = [
                    "fillseq",
                    "fillrandom",
                    "overwrite",
                    "readrandom",
                    "seekrandom",
                    "readrandomwriterandom",
                ];
                workloads.into_iter().map(|workload| Planned::new(workload, 16)).collect()
            }
            Self::Tail => tail(MIX_CLIENTS, &[0.3, 0.5, 0.7, 0.85]),
            Self::Mixed => ["burst", "scan-while-writing"]
                .into_iter()
                .map(|workload| Planned::new(workload, 32))
                .collect(),
            Self::Commits => [1, 16, 128].into_iter().map(|clients| durable("overwrite", clients)).collect(),
            Self::Tpcc => {
                let mut runs: Vec<_> = TPCC_CLIENTS.map(|clients| Planned::new("tpcc", clients)).into();
                runs.push(durable("tpcc", MIX_CLIENTS));
                runs
            }
            Self::Quick => {
                let mut runs = vec![Planned::new("lookup", 1), Planned::new("lookup", 32)];
                runs.extend([Planned::new("overwrite", 32), durable("overwrite", 16)]);
                runs.extend(tail(32, &[0.7]));
                runs.push(Planned::new("tpcc", 32));
                runs
            }
        }
    }
}

fn durable(workload: &'static str, clients: usize) -> Planned {
    Planned { durability: Durability::Full, ..Planned::new(workload, clients) }
}

/// A closed loop, and open ones at shares of the rate that each engine has reached in it.
fn tail(clients: usize, loads: &[f64]) -> Vec<Planned> {
    let closed = Planned::new("readrandomwriterandom", clients);
    let open = loads.iter().map(|load| Planned { load: Some(*load), ..closed.clone() });
    std::iter::once(closed.clone()).chain(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Sizes;

    #[test]
    fn suites_run_workloads_that_there_are() {
        for suite in Suite::value_variants() {
            for planned in suite.runs() {
                assert!(Sizes::names().any(|(name, _)| name == planned.workload), "{planned:?}");
            }
        }
    }

    #[test]
    fn open_loops_follow_the_closed_one_that_they_take_their_rate_from() {
        for suite in Suite::value_variants() {
            let runs = suite.runs();
            for (place, run) in runs.iter().enumerate().filter(|(_, run)| run.load.is_some()) {
                let closed = Planned { load: None, ..run.clone() };
                assert!(runs[..place].contains(&closed), "{run:?}");
            }
        }
    }
}
