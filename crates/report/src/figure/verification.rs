//! Fresh workloads: measured over predicted.

use flashgrain_model::Access;
use flashgrain_profile::{DeviceProfile, describe_workload};

use super::{Drawn, Figure, Key, access_series};
use crate::facts::verification_sentence;
use crate::svg::{Axis, Growth, Mark, Plot, Series};
use crate::unit::{self, Unit};

/// Measurements over predictions, with the line on which they would agree.
pub(crate) fn verification(profile: &DeviceProfile) -> Drawn {
    let all = &profile.verification;
    let caption = verification_sentence(all).ok_or("not run: no fresh workloads were measured")?;
    let rates = || {
        all.iter().flat_map(|v| {
            [v.predicted_bytes_per_second, v.measured_min_bytes_per_second, v.measured_max_bytes_per_second]
        })
    };
    let x = Axis::over("predicted", Unit::Rate, Growth::Log, rates());
    let y = Axis::over("measured", Unit::Rate, Growth::Log, rates());
    let mut plot = Plot::new("Predicted by MQSSD, then measured", x, y);
    let exact =
        Series { key: "exact".into(), label: "predicted = measured".into(), colour: "var(--ink)".into() };
    let near = Series { key: "near".into(), label: "± 10 %".into(), colour: "var(--quiet)".into() };
    plot.curve(&exact, "fit", Some);
    plot.curve(&near, "guide", |rate| Some(rate * 1.1));
    plot.curve(&near, "guide", |rate| Some(rate / 1.1));
    let mut legend = Vec::new();
    for access in [Some(Access::Read), Some(Access::Write), None] {
        let series = access_series(access);
        let marks: Vec<Mark> = all
            .iter()
            .filter(|v| v.workload.access() == access)
            .map(|v| Mark {
                x: v.predicted_bytes_per_second,
                y: v.measured_bytes_per_second,
                range: Some((v.measured_min_bytes_per_second, v.measured_max_bytes_per_second)),
                filled: true,
                tip: format!(
                    "{}: predicted {}, measured {}, error {}",
                    describe_workload(&v.workload),
                    unit::rate(v.predicted_bytes_per_second),
                    unit::rate(v.measured_bytes_per_second),
                    unit::share(v.relative_error)
                ),
            })
            .collect();
        if !marks.is_empty() {
            plot.marks(&series, &marks);
            legend.push(Key::series(&series, "dot"));
        }
    }
    legend.push(Key::series(&exact, "line"));
    legend.push(Key::series(&near, "dash"));
    let title = "Predicted and measured".to_owned();
    Ok(Figure {
        id: "fig-verification".into(),
        title,
        caption,
        legend,
        panels: vec![plot.finish("Verification")],
    })
}
