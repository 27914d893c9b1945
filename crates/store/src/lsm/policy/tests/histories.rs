//! Random histories of flushes and jobs that run side by side.

use proptest::prelude::*;

use super::super::{LsmLayout, Policy, PolicyOptions};
use super::model::{Checked, Model, RECORD_BYTES};
use super::shapes::check_shape;

/// Histories of a run; `PROPTEST_CASES` may ask for more.
const CASES_MIN: u32 = 1000;

/// Records of a table in these histories.
const TABLE_RECORDS: usize = 8;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Keys, and whether they are deleted.
    Flush(Vec<(u32, bool)>),
    /// This many keys from here on, as a load in key order or a deletion of a range.
    FlushRange(u32, u32, bool),
    Pick,
    /// The same in a shortage, with room for this number of tables.
    PickInShortage(u64),
    /// One of the running jobs ends.
    Finish(usize),
    Fail(usize),
    /// The tree is opened with another policy, once no job is running.
    Reopen(PolicyOptions),
}

fn any_options() -> impl Strategy<Value = PolicyOptions> {
    let layout = proptest::sample::select(&LsmLayout::ALL);
    let table_bytes = RECORD_BYTES * TABLE_RECORDS as u64;
    (layout, 2_u32..5, 1_u32..5).prop_map(move |(layout, fanout, level_zero_runs)| {
        PolicyOptions::of(layout, fanout, level_zero_runs, table_bytes)
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let key = 0_u32..200;
    let keys = proptest::collection::vec((key.clone(), proptest::bool::weighted(0.3)), 1..40);
    prop_oneof![
        20 => keys.prop_map(Step::Flush),
        10 => (key, 1_u32..40, proptest::bool::weighted(0.3))
            .prop_map(|(from, count, deletes)| Step::FlushRange(from, count, deletes)),
        40 => Just(Step::Pick),
        10 => (0_u64..20).prop_map(Step::PickInShortage),
        30 => any::<usize>().prop_map(Step::Finish),
        2 => any::<usize>().prop_map(Step::Fail),
        1 => any_options().prop_map(Step::Reopen),
    ]
}

/// The options that a history begins with, and its steps.
pub(super) fn any_history() -> impl Strategy<Value = (PolicyOptions, Vec<Step>, u64)> {
    (any_options(), proptest::collection::vec(any_step(), 1..200), any::<u64>())
}

/// Runs a history under policies that `policy` makes, and checks all after each step. `checks_jobs`: also the
/// jobs before they run.
pub(super) fn run(
    (mut options, steps, seed): (PolicyOptions, Vec<Step>, u64),
    policy: impl Fn(PolicyOptions) -> Box<dyn Policy>,
    checks_jobs: bool,
) -> Checked {
    // Policies live as long as the model.
    let policies: Vec<Box<dyn Policy>> = std::iter::once(options)
        .chain(steps.iter().filter_map(|step| match step {
            Step::Reopen(options) => Some(*options),
            _ => None,
        }))
        .map(policy)
        .collect();
    let mut policies = policies.iter();
    let mut next = || policies.next().map(|policy| &**policy).unwrap();
    let mut model = Model::new(next(), TABLE_RECORDS);
    model.checks_jobs = checks_jobs;
    for step in steps {
        match step {
            Step::Flush(keys) => model.flush(keys)?,
            Step::FlushRange(from, count, deletes) => {
                model.flush((from..from + count).map(|key| (key, deletes)))?;
            }
            Step::Pick => drop(model.pick()?),
            Step::PickInShortage(tables) => {
                model.pick_in_shortage(&options, tables * options.table_bytes)?;
            }
            Step::Finish(index) => model.finish(index)?,
            Step::Fail(index) => model.fail(index),
            Step::Reopen(others) => {
                while model.running() > 0 {
                    model.finish(0)?;
                }
                (model.policy, options) = (next(), others);
            }
        }
    }
    let mut state = seed;
    let choose = || {
        state = crate::hash::mix(state);
        state as usize
    };
    model.rest(choose)?;
    if model.busy.len() > 0 {
        return Err("jobs that ended are still known as running".into());
    }
    check_shape(&options, &model.levels)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES_MIN.max(ProptestConfig::default().cases)))]

    #[test]
    fn the_newest_version_is_found_first(history in any_history()) {
        if let Err(problem) = run(history, PolicyOptions::policy, true) {
            prop_assert!(false, "{problem}");
        }
    }
}
