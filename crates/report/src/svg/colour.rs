//! Colours for light and dark pages, told apart by colour-blind readers too.

use flashgrain_model::ModelName;

/// A colour as CSS, for both themes.
pub(crate) type Colour = String;

/// Dark blue over magenta to gold on white; the same order, brighter, on black.
const LIGHT: [[f64; 3]; 5] = [
    [38.0, 52.0, 150.0],
    [122.0, 40.0, 165.0],
    [193.0, 55.0, 118.0],
    [222.0, 104.0, 50.0],
    [196.0, 142.0, 10.0],
];
const DARK: [[f64; 3]; 5] = [
    [112.0, 134.0, 250.0],
    [186.0, 108.0, 240.0],
    [250.0, 112.0, 160.0],
    [255.0, 160.0, 92.0],
    [246.0, 222.0, 100.0],
];

/// The colour at `share` (0 to 1) of the ramp: few streams to many.
pub(crate) fn ramp(share: f64) -> Colour {
    format!("light-dark({},{})", between(&LIGHT, share), between(&DARK, share))
}

fn between(stops: &[[f64; 3]; 5], share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * 4.0;
    let below = (place.floor() as usize).min(3);
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
        assert_eq!(ramp(0.0), "light-dark(#263496,#7086fa)");
        assert_eq!(ramp(1.0), "light-dark(#c48e0a,#f6de64)");
        assert_eq!(ramp_of(3, 4), ramp(1.0));
        assert_eq!(ramp_of(0, 1), ramp(0.0));
    }
}
