//! The sections of the page, in order.

use flashgrain_model::Access;
use flashgrain_profile::DeviceProfile;

use super::{Block, Captioned, Section, what_if};
use crate::facts::{self, Detail};
use crate::figure::{self, Drawn};
use crate::table::Table;

pub(super) fn all(profile: &DeviceProfile) -> Vec<Section> {
    vec![
        decisions(profile),
        store(profile),
        what_if::section(profile),
        learned(profile),
        models(profile),
        costs(profile),
        Section::new(
            "working-points",
            "Parallelism, request size, mix",
            row(
                [
                    ("PDAM knee", figure::parallel(profile)),
                    ("Affine line", figure::affine(profile)),
                    ("Read/write mix", figure::mix(profile)),
                ],
                None,
            ),
        ),
        depth(profile),
        Section::new(
            "hidden",
            "Inside the drive",
            row(
                [
                    ("Request-size profile", figure::request_size(profile)),
                    ("Location profile", figure::location(profile)),
                ],
                None,
            ),
        ),
        Section::new(
            "path",
            "Backends, streams, durable and sustained writes",
            row(
                [
                    ("Backends", figure::interface(profile)),
                    ("Sequential streams", figure::sequential(profile)),
                    ("Durable writes", figure::flush(profile)),
                    ("Sustained writes", figure::sustain(profile)),
                ],
                None,
            ),
        ),
        verification(profile),
        provenance(profile),
    ]
}

/// Figures side by side and a table next to them; figures that cannot be drawn say why below.
fn row<const N: usize>(drawn: [(&str, Drawn); N], table: Option<Captioned>) -> Vec<Block> {
    let mut figures = Vec::new();
    let mut absent = Vec::new();
    for (name, drawn) in drawn {
        match drawn {
            Ok(figure) => figures.push(figure),
            Err(why) => absent.push(Block::Absent(format!("{name}: {why}."))),
        }
    }
    let mut blocks = Vec::new();
    if !figures.is_empty() {
        blocks.push(Block::Row { figures, table });
    } else if let Some(table) = table {
        blocks.push(Block::Table(table));
    }
    blocks.extend(absent);
    blocks
}

fn captioned(caption: &str, table: Table) -> Captioned {
    Captioned { caption: caption.into(), table }
}

fn table(caption: &str, table: Table) -> Block {
    Block::Table(captioned(caption, table))
}

fn decisions(profile: &DeviceProfile) -> Section {
    let block = if profile.decisions.is_empty() {
        Block::Absent("None: nothing was learned that settings could follow from.".into())
    } else {
        table(
            "Settings that follow, each with its evidence",
            facts::decision_table(&profile.decisions, profile.distrust.is_none()),
        )
    };
    Section::new("decisions", "Decisions", vec![block])
}

fn store(profile: &DeviceProfile) -> Section {
    let is_trusted = profile.distrust.is_none();
    let blocks = match &profile.store {
        None => vec![Block::Absent(facts::no_store(profile))],
        Some(store) => {
            let layout = captioned(
                "Its layout, each setting with its evidence",
                facts::layout_table(store, is_trusted),
            );
            let mut blocks = vec![Block::Text(facts::store_sentence(store))];
            blocks.extend(row([("Measured and predicted", figure::store(profile))], Some(layout)));
            blocks.push(table(
                "Operations on the store, and the drive's limits for their requests",
                facts::operation_table(store),
            ));
            blocks.extend(facts::shares_left_out(store).into_iter().map(Block::Text));
            blocks.push(Block::Text(facts::STORE_LIMITS.into()));
            blocks
        }
    };
    Section::new("store", "A store on this drive", blocks)
}

fn learned(profile: &DeviceProfile) -> Section {
    let block = match profile.distrust {
        Some(_) => Block::Absent(facts::NOTHING_LEARNED.into()),
        None => table(
            "Hidden parameters and working points; confidence is the share of bootstrap resamples that agree",
            facts::learned_table(&profile.learned, Detail::Full),
        ),
    };
    Section::new("learned", "Learned parameters", vec![block])
}

fn models(profile: &DeviceProfile) -> Section {
    let mut blocks = Vec::new();
    match &profile.comparison {
        Some(comparison) => {
            let errors = captioned(
                "Errors on held-out points, which no fit saw. Noise floor: how far a repeat misses the others",
                facts::comparison_table(comparison),
            );
            blocks.push(Block::Text(facts::ranking_sentence(comparison, profile.distrust.is_none())));
            blocks.push(Block::Text(facts::MODELS.into()));
            blocks.extend(facts::comparison_notes(comparison).into_iter().map(Block::Text));
            blocks.extend(row([("Errors", figure::errors(profile))], None));
            blocks.push(Block::Table(errors));
        }
        None => {
            blocks.push(Block::Absent("Not compared: too little was measured to hold points out.".into()))
        }
    }
    blocks.extend(row([("Reads over random pages", figure::order(profile, Access::Read))], None));
    blocks.extend(row([("Writes over random pages", figure::order(profile, Access::Write))], None));
    Section::new("models", "Four models, measured and predicted", blocks)
}

fn costs(profile: &DeviceProfile) -> Section {
    let models = profile.models.as_ref();
    let costs = models
        .and_then(facts::cost_table)
        .map(|table| captioned("MQSSD's costs at each k, with 95 % intervals", table));
    let drawn =
        [("Setup costs", figure::setup_costs(profile)), ("Transfer costs", figure::transfer_costs(profile))];
    let mut blocks = row(drawn, costs);
    if let Some(fits) = models.and_then(facts::regression_table) {
        blocks.push(table("R² of the regression at each k", fits));
    }
    if let Some(curves) = models.and_then(facts::curve_table) {
        blocks.push(table("Curves through these costs", curves));
        blocks.push(Block::Text(facts::CURVES.into()));
    }
    let constants = models.map(facts::other_parameters_table).filter(|table| !table.rows.is_empty());
    blocks.extend(constants.map(|constants| table("Constants that do not depend on k", constants)));
    Section::new("costs", "Fitted costs", blocks)
}

fn depth(profile: &DeviceProfile) -> Section {
    let has_writes =
        profile.measurements.depth.iter().any(|point| point.workload.access() == Some(Access::Write));
    let mut blocks = row(
        [
            ("Depth × page size", figure::depth_map(profile, Access::Read)),
            ("Latency percentiles", figure::percentiles(profile)),
        ],
        None,
    );
    if has_writes {
        blocks.extend(row([("Depth × page size, writes", figure::depth_map(profile, Access::Write))], None));
    }
    Section::new("depth", "Depth × page size, latency", blocks)
}

fn verification(profile: &DeviceProfile) -> Section {
    let fresh = (!profile.verification.is_empty()).then(|| {
        captioned(
            "Workloads that no fit has seen, predicted and then measured; the largest error first",
            facts::verification_table(&facts::worst_verifications(&profile.verification, usize::MAX)),
        )
    });
    let blocks = row([("Verification", figure::verification(profile))], fresh);
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
    if !budget.left_out.is_empty() {
        blocks.push(Block::Text("Left out:".into()));
        blocks.push(Block::List(budget.left_out.clone()));
    }
    Section::new("provenance", "Provenance, budget and noise", blocks)
}
