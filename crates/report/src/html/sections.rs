//! The sections of the page, in order.

use flashgrain_profile::DeviceProfile;

use super::{Block, Section};
use crate::facts;

pub(super) fn all(profile: &DeviceProfile) -> Vec<Section> {
    vec![
        decisions(profile),
        learned(profile),
        models(profile),
        costs(profile),
        verification(profile),
        provenance(profile),
    ]
}

fn decisions(profile: &DeviceProfile) -> Section {
    let block = if profile.decisions.is_empty() {
        Block::Absent("None: nothing was learned that settings could follow from.".into())
    } else {
        Block::Table {
            caption: "Settings that follow, each with its number",
            table: facts::decision_table(&profile.decisions),
        }
    };
    Section { id: "decisions", title: "Decisions", blocks: vec![block] }
}

fn learned(profile: &DeviceProfile) -> Section {
    let table = facts::learned_table(&profile.learned);
    Section {
        id: "learned",
        title: "Learned parameters",
        blocks: vec![Block::Table { caption: "Hidden parameters and working points", table }],
    }
}

fn models(profile: &DeviceProfile) -> Section {
    let blocks = match &profile.comparison {
        Some(comparison) => vec![
            Block::Text(comparison.ranking_reason.clone()),
            Block::Table { caption: "Errors on held-out points", table: facts::comparison_table(comparison) },
        ],
        None => vec![Block::Absent("not run: too little was measured to hold points out".into())],
    };
    Section { id: "models", title: "Four models", blocks }
}

fn costs(profile: &DeviceProfile) -> Section {
    let blocks = match profile.models.as_ref() {
        Some(models) => {
            let mut blocks = Vec::new();
            if let Some(table) = facts::cost_table(models) {
                blocks.push(Block::Table { caption: "MQSSD costs by concurrency", table });
            }
            blocks.push(Block::Table {
                caption: "Other constants",
                table: facts::other_parameters_table(models),
            });
            blocks
        }
        None => vec![Block::Absent("not fitted: `order` was not run".into())],
    };
    Section { id: "costs", title: "Costs", blocks }
}

fn verification(profile: &DeviceProfile) -> Section {
    let blocks = match facts::verification_sentence(&profile.verification) {
        Some(sentence) => vec![
            Block::Text(sentence),
            Block::Table {
                caption: "Fresh workloads",
                table: facts::verification_table(&profile.verification),
            },
        ],
        None => vec![Block::Absent("not run".into())],
    };
    Section { id: "verification", title: "Verification", blocks }
}

fn provenance(profile: &DeviceProfile) -> Section {
    let mut blocks = vec![
        Block::Table { caption: "Drive and way to it", table: facts::drive_table(&profile.provenance) },
        Block::Text(facts::budget_sentence(&profile.budget)),
    ];
    if !profile.budget.experiments.is_empty() {
        blocks.push(Block::Table { caption: "Experiments", table: facts::experiment_table(&profile.budget) });
    }
    blocks.extend(profile.budget.left_out.iter().map(|what| Block::Text(format!("Left out: {what}"))));
    Section { id: "provenance", title: "Provenance and budget", blocks }
}
