//! The sections of the page, in order.

use flashgrain_model::Access;
use flashgrain_profile::DeviceProfile;

use super::{Block, Section};
use crate::facts;
use crate::figure::{self, Drawn};
use crate::table::Table;

pub(super) fn all(profile: &DeviceProfile) -> Vec<Section> {
    vec![
        decisions(profile),
        learned(profile),
        models(profile),
        costs(profile),
        Section::new(
            "working-points",
            "Parallelism and request size",
            figures([
                ("PDAM knee", figure::parallel(profile)),
                ("Affine line", figure::affine(profile)),
                ("Latency percentiles", figure::percentiles(profile)),
            ]),
        ),
        depth(profile),
        Section::new("mix", "Reads and writes together", figures([("Read/write mix", figure::mix(profile))])),
        Section::new(
            "hidden",
            "Inside the drive",
            figures([
                ("Request-size profile", figure::request_size(profile)),
                ("Location profile", figure::location(profile)),
            ]),
        ),
        Section::new(
            "path",
            "Backends and durable writes",
            figures([("Backends", figure::interface(profile)), ("Durable writes", figure::flush(profile))]),
        ),
        Section::new(
            "sustain",
            "Sustained writes",
            figures([("Sustained writes", figure::sustain(profile))]),
        ),
        verification(profile),
        provenance(profile),
    ]
}

/// Figures side by side; those that cannot be drawn say why below them.
fn figures<const N: usize>(drawn: [(&str, Drawn); N]) -> Vec<Block> {
    let mut shown = Vec::new();
    let mut absent = Vec::new();
    for (name, drawn) in drawn {
        match drawn {
            Ok(figure) => shown.push(figure),
            Err(why) => absent.push(Block::Absent(format!("{name}: {why}."))),
        }
    }
    let mut blocks = Vec::new();
    if !shown.is_empty() {
        blocks.push(Block::Figures(shown));
    }
    blocks.extend(absent);
    blocks
}

fn table(caption: &str, table: Table) -> Block {
    Block::Table { caption: caption.into(), table }
}

fn decisions(profile: &DeviceProfile) -> Section {
    let block = if profile.decisions.is_empty() {
        Block::Absent("None: nothing was learned that settings could follow from.".into())
    } else {
        table(
            "Settings that follow, each with the number behind it",
            facts::decision_table(&profile.decisions),
        )
    };
    Section::new("decisions", "Decisions", vec![block])
}

fn learned(profile: &DeviceProfile) -> Section {
    let block = table(
        "Hidden parameters and working points; confidence is the share of bootstrap resamples that agree",
        facts::learned_table(&profile.learned),
    );
    Section::new("learned", "Learned parameters", vec![block])
}

fn models(profile: &DeviceProfile) -> Section {
    let mut blocks = Vec::new();
    match &profile.comparison {
        Some(comparison) => {
            blocks.push(Block::Text(comparison.ranking_reason.clone()));
            blocks.push(table(
                "Errors on held-out points: the fits saw none of them. The noise floor is how far a repeat misses the others.",
                facts::comparison_table(comparison),
            ));
        }
        None => {
            blocks.push(Block::Absent("Not compared: too little was measured to hold points out.".into()))
        }
    }
    blocks.extend(figures([
        ("Reads over random pages", figure::order(profile, Access::Read)),
        ("Writes over random pages", figure::order(profile, Access::Write)),
    ]));
    Section::new("models", "Four models, measured and predicted", blocks)
}

fn costs(profile: &DeviceProfile) -> Section {
    let mut blocks = figures([
        ("Setup costs", figure::setup_costs(profile)),
        ("Transfer costs", figure::transfer_costs(profile)),
    ]);
    if let Some(models) = &profile.models {
        if let Some(costs) = facts::cost_table(models) {
            blocks.push(table("MQSSD's costs at each k, with 95 % intervals", costs));
        }
        let constants = facts::other_parameters_table(models);
        if !constants.rows.is_empty() {
            blocks.push(table("Constants that do not depend on k", constants));
        }
    }
    Section::new("costs", "Fitted costs", blocks)
}

fn depth(profile: &DeviceProfile) -> Section {
    let has_writes =
        profile.measurements.depth.iter().any(|point| point.workload.access() == Some(Access::Write));
    let mut blocks = figures([("Depth × page size", figure::depth_map(profile, Access::Read))]);
    if has_writes {
        blocks.extend(figures([("Depth × page size, writes", figure::depth_map(profile, Access::Write))]));
    }
    Section::new("depth", "Depth × page size", blocks)
}

fn verification(profile: &DeviceProfile) -> Section {
    let mut blocks = figures([("Verification", figure::verification(profile))]);
    if !profile.verification.is_empty() {
        blocks.push(table(
            "Workloads that no fit has seen, predicted and then measured",
            facts::verification_table(&profile.verification),
        ));
    }
    Section::new("verification", "Verification", blocks)
}

fn provenance(profile: &DeviceProfile) -> Section {
    let budget = &profile.budget;
    let mut blocks = vec![
        table("The drive and the way to it", facts::drive_table(&profile.provenance)),
        Block::Text(facts::budget_sentence(budget)),
    ];
    if !budget.experiments.is_empty() {
        blocks.push(table(
            "Experiments. Noise: median over the workloads of the relative half width of the 95 % interval of their mean",
            facts::experiment_table(budget),
        ));
    }
    blocks.extend(budget.left_out.iter().map(|what| Block::Text(format!("Left out: {what}."))));
    Section::new("provenance", "Provenance, budget and noise", blocks)
}
