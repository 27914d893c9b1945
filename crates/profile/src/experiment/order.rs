//! `order`: the MQSSD paper's file I/O benchmark (§3.3.1). k streams read or write, a share r of the pages
//! being reached by a random access: equally sized operations of 1/r pages each at uniformly random offsets.

use flashgrain_model::{Access, Workload};

use super::{Setting, Trials};
use crate::config::ExperimentName;
use crate::trial::{Trial, grid_level};

/// k: streams.
const STREAMS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// r in per mille of the pages.
const RANDOM_PER_MILLE: [u64; 7] = [1, 3, 10, 30, 100, 300, 1000];

/// Bytes of one operation when `per_mille` of the pages are reached by a random access, in whole pages.
fn run_bytes(per_mille: u64, page_bytes: u64) -> u64 {
    (1000 / per_mille).max(1) * page_bytes
}

pub(super) fn trials(setting: &Setting<'_>) -> Trials {
    let mut found = Trials::default();
    for (k_index, k) in STREAMS.into_iter().enumerate() {
        for (r_index, per_mille) in RANDOM_PER_MILLE.into_iter().enumerate() {
            for access in [Access::Read, Access::Write] {
                let bytes = run_bytes(per_mille, setting.site.page_bytes);
                let rank = grid_level(k_index, STREAMS.len()) + grid_level(r_index, RANDOM_PER_MILLE.len());
                let workload = Workload::random(access, bytes as f64, f64::from(k));
                found.trials.push(Trial::load(ExperimentName::Order, rank, workload));
            }
        }
    }
    found.that_fit(setting.site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing;

    #[test]
    fn the_grid_is_the_papers() {
        let found = testing::trials(ExperimentName::Order);
        assert_eq!(found.trials.len(), 8 * 7 * 2);
        assert!(found.left_out.is_empty());
        let runs: Vec<u64> = RANDOM_PER_MILLE.iter().map(|r| run_bytes(*r, 4096)).collect();
        // 0.1 % is about 4 MiB, 1 % is 400 KiB, 100 % is one page.
        assert_eq!(runs, [4_096_000, 333 * 4096, 400 << 10, 33 * 4096, 40 << 10, 12 << 10, 4096]);
        for trial in &found.trials {
            let workload = trial.workload().unwrap();
            assert_eq!(workload.random_share, 1.0);
            let share = workload.random_pages_share(4096.0);
            assert!((0.001..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn the_coarsest_grid_has_the_corners() {
        let found = testing::trials(ExperimentName::Order);
        assert_eq!(found.trials.iter().filter(|trial| trial.rank == 0).count(), 2 * 2 * 2);
    }
}
