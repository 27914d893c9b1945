//! Colours for light and dark pages, told apart by colour-blind readers too.

use flashgrain_model::ModelName;

/// A colour as CSS, for both themes.
pub(crate) type Colour = String;

const STOPS: usize = 7;

/// Dark blue over violet, red and orange to green on white; the same order, brighter, on black. Nine series
/// are still told apart, those of the deepest queues, too.
const LIGHT: [[f64; 3]; STOPS] = [
    [28.0, 36.0, 110.0],
    [88.0, 62.0, 200.0],
    [172.0, 44.0, 168.0],
    [214.0, 44.0, 84.0],
    [224.0, 108.0, 24.0],
    [176.0, 146.0, 0.0],
    [40.0, 138.0, 62.0],
];
const DARK: [[f64; 3]; STOPS] = [
    [96.0, 116.0, 250.0],
    [154.0, 140.0, 255.0],
    [224.0, 112.0, 232.0],
    [255.0, 104.0, 134.0],
    [255.0, 156.0, 76.0],
    [250.0, 220.0, 96.0],
    [130.0, 222.0, 132.0],
];

/// The colour at `share` (0 to 1) of the ramp: few streams to many.
pub(crate) fn ramp(share: f64) -> Colour {
    format!("light-dark({},{})", between(&LIGHT, share), between(&DARK, share))
}

fn between(stops: &[[f64; 3]; STOPS], share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (STOPS - 1) as f64;
    let below = (place.floor() as usize).min(STOPS - 2);
    let part = place - below as f64;
    let [from, to] = [stops[below], stops[below + 1]];
    let mix = |channel: usize| (from[channel] + part * (to[channel] - from[channel])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// One colour per series of a ramp.
pub(crate) fn ramp_of(index: usize, count: usize) -> Colour {
    ramp(if count > 1 { index as f64 / (count - 1) as f64 } else { 0.0 })
}

/// Reads: blue of Okabe and Ito's palette.
pub(crate) const READS: &str = "light-dark(#0068a8,#5ab4f0)";
/// Writes: its vermilion.
pub(crate) const WRITES: &str = "light-dark(#c04a00,#ff9a57)";
/// Mixed: its green.
pub(crate) const MIXED: &str = "light-dark(#00805c,#3fd0a4)";

/// The colour of a model where several share a panel.
pub(crate) fn of_model(model: ModelName) -> &'static str {
    match model {
        ModelName::Dam => "light-dark(#6b7680,#98a4b0)",
        ModelName::Pdam => "light-dark(#00805c,#3fd0a4)",
        ModelName::Affine => "light-dark(#9a5b00,#e8b04a)",
        ModelName::Mqssd => "light-dark(#8a2a8a,#ea8cea)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_starts_and_ends_at_its_stops() {
        assert_eq!(ramp(0.0), "light-dark(#1c246e,#6074fa)");
        assert_eq!(ramp(1.0), "light-dark(#288a3e,#82de84)");
        assert_eq!(ramp_of(3, 4), ramp(1.0));
        assert_eq!(ramp_of(0, 1), ramp(0.0));
    }

    #[test]
    fn neighbours_of_nine_series_are_told_apart() {
        let channels = |theme: usize, index: usize| {
            let colours = ramp_of(index, 9);
            let hex = colours.split('#').nth(theme + 1).unwrap();
            [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()))
        };
        for theme in [0, 1] {
            for index in 1..9 {
                let (a, b) = (channels(theme, index - 1), channels(theme, index));
                let distance = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(
                    distance > 40.0,
                    "theme {theme}: series {index} is {distance:.0} from the one before"
                );
            }
        }
    }
}
