//! How the errors on held-out points are distributed: one line per model.

use flashgrain_model::{Access, ComparedPoint, Comparison, ModelName};
use flashgrain_profile::DeviceProfile;

use super::{Drawn, Figure, Key, distinct};
use crate::facts::kind_name;
use crate::svg::{Axis, Growth, Plot, Series, colour};
use crate::unit::Unit;

const KINDS: [Option<Access>; 3] = [Some(Access::Read), Some(Access::Write), None];
/// Errors are drawn from here to there; smaller and larger ones lie on the frame.
const ERRORS: [f64; 2] = [0.002, 10.0];

/// The share of held-out points that each model predicts at least as well as the error on the horizontal
/// axis.
pub(crate) fn errors(profile: &DeviceProfile) -> Drawn {
    let comparison = profile.comparison.as_ref().ok_or("not compared")?;
    let title = "How many held-out points each model predicts how well".to_owned();
    let series = ModelName::ALL.map(|model| Series {
        key: model.to_string(),
        label: model.to_string(),
        colour: colour::of_model(model).into(),
    });
    let panels: Vec<String> =
        KINDS.into_iter().filter_map(|access| panel(&title, comparison, access, &series)).collect();
    if panels.is_empty() {
        return Err("no held-out point has a prediction".into());
    }
    let caption = "The further to the left and the steeper, the better. The dotted line is the noise floor: the median \
                   error of a repeat against the other repeats."
        .to_owned();
    let legend = series.iter().map(|series| Key::series(series, "line")).collect();
    Ok(Figure { id: "fig-errors".into(), title, caption, legend, panels })
}

fn panel(figure: &str, comparison: &Comparison, access: Option<Access>, series: &[Series]) -> Option<String> {
    let held_out: Vec<&ComparedPoint> = comparison
        .points
        .iter()
        .filter(|point| point.held_out && point.workload.access() == access)
        .collect();
    let x = Axis::over("relative error", Unit::Share, Growth::Log, ERRORS);
    let y = Axis::exactly("share of points within it", Unit::Share, 0.0, 1.0);
    let title = format!("{}, {} points", kind_name(access), held_out.len());
    let mut plot = Plot::new(&title, x, y);
    let mut is_empty = true;
    for (model, series) in ModelName::ALL.iter().zip(series) {
        let rising = distinct(held_out.iter().filter_map(|point| point.relative_error(*model)));
        is_empty &= rising.is_empty();
        plot.line(series, "fit", steps(&rising));
    }
    if let Some(floor) = comparison.noise_floor.iter().find(|floor| floor.access == access) {
        plot.rule(floor.median_relative_error, "");
    }
    (!is_empty).then(|| plot.finish(figure))
}

/// The empirical distribution as a staircase from the left to the right end of the axis.
fn steps(rising: &[f64]) -> Vec<(f64, f64)> {
    let count = rising.len() as f64;
    let mut corners = Vec::with_capacity(2 * rising.len() + 2);
    if let Some(first) = rising.first() {
        corners.push((ERRORS[0].min(*first), 0.0));
    }
    for (index, error) in rising.iter().enumerate() {
        corners.push((*error, index as f64 / count));
        corners.push((*error, (index + 1) as f64 / count));
    }
    if let Some(last) = rising.last() {
        corners.push((ERRORS[1].max(*last), 1.0));
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_staircase_rises_from_none_to_all() {
        assert_eq!(
            steps(&[0.1, 0.5]),
            [(0.002, 0.0), (0.1, 0.0), (0.1, 0.5), (0.5, 0.5), (0.5, 1.0), (10.0, 1.0)]
        );
        assert!(steps(&[]).is_empty());
    }
}
