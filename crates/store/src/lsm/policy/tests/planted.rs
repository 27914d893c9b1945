//! Policies with planted bugs: the [histories](super::histories) must find them.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::super::{Busy, Debt, Job, LsmLayout, Policy, PolicyOptions};
use super::histories::{any_history, run};
use crate::lsm::levels::{Levels, Run, Target};

/// Number of histories that must show a bug.
const HISTORIES: usize = 500;

#[derive(Clone, Copy, Debug)]
enum Bug {
    /// Jobs are picked as if none were running.
    ForgetsBusy,
    /// Jobs keep away from each other's tables, but not from each other's levels and keys.
    ForgetsLevels,
    /// The oldest run of level 0 stays when newer ones go.
    SkipsOldest,
    /// Tables are moved although they overlap others.
    AlwaysMoves,
    /// Runs are put after those of the next level.
    BehindOthers,
    /// Merged tables are put back into their level, for ever.
    NeverEnds,
}

struct Planted {
    policy: Box<dyn Policy>,
    bug: Bug,
}

impl Policy for Planted {
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        match self.bug {
            Bug::ForgetsBusy => return self.policy.pick(levels, &Busy::default()),
            Bug::ForgetsLevels => {
                let free = |run: &Run| run.iter().filter(|table| !busy.has(table)).cloned().collect();
                let free_runs = |level| levels.level(level).iter().map(free).collect();
                let free = Levels::new((0..levels.depth()).map(free_runs).collect());
                return self.policy.pick(&free, &Busy::default());
            }
            _ => {}
        }
        let mut job = self.policy.pick(levels, busy)?;
        match self.bug {
            Bug::SkipsOldest if job.from == 0 && job.leaving.len() > 1 => drop(job.leaving.pop()),
            Bug::AlwaysMoves if job.from > 0 => {
                job.moves = true;
                job.below.clear();
            }
            Bug::BehindOthers if matches!(job.to, Target::NewRun(_)) => {
                job.to = Target::OldestRun(job.to.level());
            }
            Bug::NeverEnds if job.from == 0 => job.to = Target::NewRun(0),
            _ => {}
        }
        Some(job)
    }

    fn largest_job_bytes(&self, levels: &Levels) -> u64 {
        self.policy.largest_job_bytes(levels)
    }

    fn level_of_load(&self, levels: &Levels, bytes: u64) -> usize {
        self.policy.level_of_load(levels, bytes)
    }

    fn debt(&self, levels: &Levels) -> Debt {
        self.policy.debt(levels)
    }
}

/// The problems that histories of a layout find.
fn problems(layout: LsmLayout, bug: Bug, checks_jobs: bool) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let history = any_history();
    let one = |_| {
        let (options, steps, seed) = history.new_tree(&mut runner).unwrap().current();
        let planted = |options: PolicyOptions| -> Box<dyn Policy> {
            Box::new(Planted { policy: PolicyOptions { layout, ..options }.policy(), bug })
        };
        let options = PolicyOptions { layout, ..options };
        run((options, steps, seed), planted, checks_jobs).err()
    };
    (0..HISTORIES).filter_map(one).collect()
}

#[test]
fn planted_bugs_are_found() {
    for (layout, bug, what) in [
        (LsmLayout::Leveled, Bug::ForgetsBusy, "the same input"),
        (LsmLayout::Tiered, Bug::ForgetsBusy, "the same input"),
        (LsmLayout::LazyLeveled, Bug::ForgetsBusy, "the same input"),
        (LsmLayout::SingleLevel, Bug::ForgetsBusy, "the same input"),
        (LsmLayout::Leveled, Bug::ForgetsLevels, "the same keys"),
        (LsmLayout::Tiered, Bug::ForgetsLevels, "the same keys"),
        (LsmLayout::LazyLeveled, Bug::ForgetsLevels, "the same keys"),
        (LsmLayout::Leveled, Bug::SkipsOldest, "lies before a newer one"),
        (LsmLayout::SingleLevel, Bug::SkipsOldest, "lies before a newer one"),
        (LsmLayout::Leveled, Bug::AlwaysMoves, "overlap in a run"),
        (LsmLayout::Tiered, Bug::BehindOthers, "overlap in a run"),
        (LsmLayout::Tiered, Bug::NeverEnds, "come to rest"),
    ] {
        let problems = problems(layout, bug, true);
        let found = problems.iter().filter(|problem| problem.contains(what)).count();
        println!("{layout:?} {bug:?}: {found} of {HISTORIES} histories find \"{what}\"");
        assert!(found > 0, "{layout:?} {bug:?}: {:?}", problems.first());
    }
}

/// The damage that these bugs do to a tree is found even if the jobs are not checked.
#[test]
fn the_order_of_runs_shows_planted_bugs() {
    for (layout, bug, what) in [
        (LsmLayout::Tiered, Bug::ForgetsLevels, "lies before a newer one"),
        (LsmLayout::LazyLeveled, Bug::ForgetsLevels, "lies before a newer one"),
        (LsmLayout::Leveled, Bug::ForgetsLevels, "overlap in a run"),
        (LsmLayout::Leveled, Bug::ForgetsBusy, "a table went twice"),
        (LsmLayout::Tiered, Bug::ForgetsBusy, "a table went twice"),
    ] {
        let problems = problems(layout, bug, false);
        let found = problems.iter().filter(|problem| problem.contains(what)).count();
        println!("{layout:?} {bug:?}: {found} of {HISTORIES} histories find \"{what}\"");
        assert!(found > 0, "{layout:?} {bug:?}: {:?}", problems.first());
    }
}
