//! MQSSD's setup and transfer costs over concurrency: estimates at each k, and the rational functions through
//! them.

use flashgrain_model::{Access, Estimate, FittedModel, Mqssd};
use flashgrain_profile::DeviceProfile;

use super::{Drawn, Figure, Key, access_series};
use crate::facts::{Cost, costs_of};
use crate::svg::{Axis, Growth, Mark, Plot};
use crate::unit::{self, Unit};

const PAGE_BYTES: f64 = 4096.0;

/// Cost of a random access, reads and writes.
pub(crate) fn setup_costs(profile: &DeviceProfile) -> Drawn {
    draw(
        profile,
        "fig-setup",
        "Setup cost of a random access",
        [Cost::ReadSetup, Cost::WriteSetup],
        Mqssd::setup_seconds,
    )
}

/// Cost of moving a page, reads and writes.
pub(crate) fn transfer_costs(profile: &DeviceProfile) -> Drawn {
    draw(
        profile,
        "fig-transfer",
        "Transfer cost of a 4 KiB page",
        [Cost::ReadTransfer, Cost::WriteTransfer],
        |mqssd, access, k| Some(PAGE_BYTES * mqssd.transfer_seconds_per_byte(access, k)?),
    )
}

/// An estimate in seconds, whatever prefix its unit has.
fn factor_to_seconds(unit: &str) -> f64 {
    match unit.split(' ').next() {
        Some("ns") => 1e-9,
        Some("µs") => 1e-6,
        Some("ms") => 1e-3,
        _ => 1.0,
    }
}

fn draw(
    profile: &DeviceProfile,
    id: &'static str,
    title: &str,
    costs: [Cost; 2],
    curve: impl Fn(&Mqssd, Access, f64) -> Option<f64>,
) -> Drawn {
    let mqssd = profile.models.as_ref().and_then(|models| models.mqssd.as_ref());
    let mqssd = mqssd.ok_or("not fitted: MQSSD needs the experiment `order`")?;
    let parameters = mqssd.parameters();
    let mut drawn = Vec::new();
    for (cost, access) in costs.into_iter().zip([Access::Read, Access::Write]) {
        let mut marks = Vec::new();
        for (k, parameter) in costs_of(&parameters, cost) {
            let factor = factor_to_seconds(&parameter.unit);
            if let Estimate::Determined { value, low, high } = parameter.estimate {
                marks.push(Mark {
                    x: k,
                    y: value * factor,
                    range: Some((low * factor, high * factor)),
                    filled: true,
                    tip: format!(
                        "{} {} at k = {}: {}",
                        cost.words(),
                        cost.symbol(),
                        unit::count(k),
                        Unit::Seconds.show_interval(value * factor, low * factor, high * factor)
                    ),
                });
            }
        }
        if !marks.is_empty() {
            drawn.push((cost, access, marks));
        }
    }
    if drawn.is_empty() {
        return Err("undetermined: no cost could be fitted at any k".into());
    }
    let all = || drawn.iter().flat_map(|(_, _, marks)| marks);
    let x = Axis::over("streams k", Unit::Count, Growth::Log2, all().map(|mark| mark.x));
    let y = Axis::over(
        "device time",
        Unit::Seconds,
        Growth::Log,
        all().flat_map(|mark| {
            let (low, high) = mark.range.unwrap_or((mark.y, mark.y));
            // An interval that reaches zero has no place on a logarithmic axis.
            [mark.y, low.max(mark.y / 4.0), high.min(mark.y * 4.0)]
        }),
    );
    let symbols = drawn.iter().map(|(cost, _, _)| cost.symbol()).collect::<Vec<_>>().join(" and ");
    let mut plot = Plot::new(&format!("MQSSD's {symbols}"), x, y);
    let mut legend = Vec::new();
    let mut words = Vec::new();
    for (cost, access, marks) in &drawn {
        let series = access_series(Some(*access));
        plot.curve(&series, "fit", |k| curve(mqssd, *access, k).filter(|cost| *cost > 0.0));
        plot.marks(&series, marks);
        legend.push(Key {
            label: format!("{} {}", cost.words(), cost.symbol()),
            ..Key::series(&series, "line")
        });
        if let Some((first, last)) = marks.first().zip(marks.last()) {
            words.push(format!(
                "{}: {} at k = {}, {} at k = {}",
                cost.words(),
                unit::seconds(first.y),
                unit::count(first.x),
                unit::seconds(last.y),
                unit::count(last.x)
            ));
        }
    }
    legend.push(Key::mark("fitted at each k, 95 % interval", "dot"));
    let caption = format!("{}. Lines are the rational functions of k.", words.join("; "));
    Ok(Figure {
        id: id.into(),
        title: title.into(),
        caption,
        legend,
        panels: vec![plot.finish("MQSSD costs over k")],
    })
}
