//! The campaigns find every bug that is planted, within a budget of cases: what they cannot find, they do not
//! exclude.

use flashgrain::testing::Bug;
use flashgrain_simtest::campaign::{Campaign, Counting, Decay, Errors, Hunt, Lives};

#[test]
fn every_planted_bug_is_found() {
    let trials = Hunt::default().run_all(Bug::ALL, 2, &|trial| println!("{trial}"));
    let survived: Vec<&str> =
        trials.iter().filter(|trial| trial.caught.is_none()).map(|trial| trial.bug.name()).collect();
    assert!(survived.is_empty(), "not found: {survived:?}");
    assert_eq!(trials.len(), Bug::ALL.len());
}

/// Campaigns that find bugs must not find any where there are none.
#[test]
fn nothing_is_found_where_nothing_is_planted() {
    let campaigns: [&dyn Campaign; 4] =
        [&Lives::default(), &Counting, &Errors { habits: None }, &Decay { damages: 100 }];
    for campaign in campaigns {
        for seed in 0..3 {
            let played = campaign.play(seed, &|| true);
            let counts = played.unwrap_or_else(|failure| panic!("{}: {failure}", campaign.name()));
            assert!(counts.cases() > 0, "{}", campaign.name());
        }
    }
}
