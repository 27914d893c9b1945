//! From numbers to places along an axis, and the tick marks in between.

use super::text_width;
use crate::unit::{Unit, three_digits};

/// Ends further out are moved here: beyond, quotients of two ends overflow, and decades cannot be counted.
const MAGNITUDE_MAX: f64 = 1e60;

/// How an axis grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// From zero on, in round steps.
    Linear,
    /// Ticks at powers of ten and their 1-2-5 parts.
    Log,
    /// Ticks at powers of two: sizes and depths.
    Log2,
}

/// An axis: its quantity and its range.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name of the quantity, without the unit.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
    growth: Growth,
    low: f64,
    high: f64,
}

/// A tick mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position on the axis.
    pub value: f64,
    /// Text of its label.
    pub label: String,
}

impl Axis {
    /// An axis over all `values`, with some room at its ends. A linear one starts at zero.
    pub fn over(title: &str, unit: Unit, growth: Growth, values: impl IntoIterator<Item = f64>) -> Self {
        let shown = |value: &f64| value.is_finite() && (growth == Growth::Linear || *value > 0.0);
        let within = |value: f64| match growth {
            Growth::Linear => value.clamp(-MAGNITUDE_MAX, MAGNITUDE_MAX),
            Growth::Log | Growth::Log2 => value.clamp(MAGNITUDE_MAX.recip(), MAGNITUDE_MAX),
        };
        let (mut low, mut high) = values
            .into_iter()
            .filter(shown)
            .map(within)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        if growth == Growth::Linear {
            low = low.min(0.0);
            high = if high > low { high + 0.06 * (high - low) } else { low + 1.0 };
        } else {
            let room = ((high / low).ln() * 0.05).max(0.06).exp();
            (low, high) = (low / room, high * room);
        }
        Self { title: title.into(), unit, growth, low, high }
    }

    /// The same axis over exactly this range.
    pub fn exactly(title: &str, unit: Unit, low: f64, high: f64) -> Self {
        Self { title: title.into(), unit, growth: Growth::Linear, low, high }
    }

    /// Position of a value on the axis: 0 at the low end, 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        if self.growth == Growth::Linear {
            (value - self.low) / (self.high - self.low)
        } else {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        }
    }

    /// Values at even distances along the axis, both ends included: where to evaluate a curve.
    pub fn samples(&self, count: usize) -> Vec<f64> {
        let last = count.saturating_sub(1).max(1) as f64;
        (0..count)
            .map(|index| {
                let share = index as f64 / last;
                if self.growth == Growth::Linear {
                    self.low + share * (self.high - self.low)
                } else {
                    self.low * (self.high / self.low).powf(share)
                }
            })
            .collect()
    }

    /// At most `most` tick marks.
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        match self.growth {
            Growth::Linear => self.linear_ticks(most),
            Growth::Log2 => self.binary_ticks(most),
            Growth::Log => self.decimal_ticks(most),
        }
    }

    /// As many tick marks as have room for their labels next to each other, at most `most`; `x_at` gives the
    /// middle of a label, `gap` the least room between two, both in pixels.
    pub fn ticks_with_room(&self, most: usize, gap: f64, x_at: impl Fn(f64) -> f64) -> Vec<Tick> {
        let has_room = |pair: &[Tick]| match pair {
            [a, b] => {
                let distance = x_at(b.value) - x_at(a.value);
                distance > (text_width(&a.label) + text_width(&b.label)) / 2.0 + gap
            }
            _ => true,
        };
        let fits = |ticks: &Vec<Tick>| ticks.windows(2).all(has_room);
        let mut ticks = (2..=most).rev().map(|most| self.ticks(most));
        // If not even two labels fit, a single one is better than labels over each other.
        ticks.find(fits).unwrap_or_else(|| self.ticks(2).into_iter().take(1).collect())
    }

    fn linear_ticks(&self, most: usize) -> Vec<Tick> {
        let (factor, suffix) = self.unit.scale_for(self.high);
        let (low, high) = (self.low / factor, self.high / factor);
        let rough = (high - low) / most as f64;
        let power = 10_f64.powf(rough.log10().floor());
        if self.unit == Unit::Bytes {
            return self.binary_steps(most);
        }
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .map(|part| part * power)
            .into_iter()
            .find(|step| ((high + 1e-9) / step).floor() - ((low - 1e-9) / step).ceil() + 1.0 <= most as f64)
            .unwrap_or(10.0 * power);
        let first = ((low - 1e-9) / step).ceil() as i64;
        let last = ((high + 1e-9) / step).floor() as i64;
        // If the range is tiny compared with its ends, steps are lost to rounding, and the bound alone ends
        // the loop.
        (first..=last)
            .take(most)
            .map(|index| {
                let number = index as f64 * step;
                Tick { value: number * factor, label: format!("{}{suffix}", short(number)) }
            })
            .collect()
    }

    /// Places in memory: multiples of a power of two.
    fn binary_steps(&self, most: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / (most as f64 - 1.0);
        let step = 2_f64.powi((rough.log2() - 1e-9).ceil() as i32).max(1.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).take(most).map(|index| self.tick(index as f64 * step)).collect()
    }

    fn binary_ticks(&self, most: usize) -> Vec<Tick> {
        let first = (self.low.log2() - 1e-9).ceil() as i32;
        let last = (self.high.log2() + 1e-9).floor() as i32;
        let every = (1..).find(|every| (last - first) / every < most as i32).unwrap_or(1);
        (first..=last)
            .filter(|exponent| exponent.rem_euclid(every) == first.rem_euclid(every))
            .map(|exponent| self.tick(2_f64.powi(exponent)))
            .collect()
    }

    fn decimal_ticks(&self, most: usize) -> Vec<Tick> {
        let choices: [&[f64]; 4] = [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let all = choices.map(|parts| {
            let units = self.decades();
            let values = units.iter().flat_map(|unit| parts.iter().map(move |part| part * unit));
            values.filter(|value| (self.low..=self.high).contains(value)).collect::<Vec<f64>>()
        });
        let [finest, .., coarsest] = &all;
        if finest.len() < 2 {
            return self.linear_ticks(most.min(5));
        }
        let fitting = all.iter().find(|values| values.len() <= most).unwrap_or(coarsest);
        let every = fitting.len().div_ceil(most).max(1);
        fitting.iter().step_by(every).map(|value| self.tick(*value)).collect()
    }

    /// 1, 10 and 100 of every multiple of the unit: tick marks read 100 MiB/s and 1 GiB/s, never 97.7 MiB/s.
    fn decades(&self) -> Vec<f64> {
        match self.unit {
            Unit::Bytes | Unit::Rate => (0..5)
                .flat_map(|power| [1.0, 10.0, 100.0].map(|decade| decade * 1024_f64.powi(power)))
                .collect(),
            _ => {
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                (first..=last).map(|exponent| 10_f64.powi(exponent)).collect()
            }
        }
    }

    fn tick(&self, value: f64) -> Tick {
        let (factor, suffix) = self.unit.scale_for(value);
        Tick { value, label: format!("{}{suffix}", short(value / factor)) }
    }
}

/// Without zeros at the end: ticks are round numbers.
fn short(number: f64) -> String {
    let text = three_digits(number);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, most: usize) -> Vec<String> {
        axis.ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn sizes_get_powers_of_two() {
        let axis = Axis::over("size", Unit::Bytes, Growth::Log2, [4096.0, 16_777_216.0]);
        assert_eq!(labels(&axis, 7), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB"]);
    }

    #[test]
    fn rates_get_round_multiples_of_their_unit() {
        let axis = Axis::over("rate", Unit::Rate, Growth::Log, [3e6, 3e9]);
        assert_eq!(labels(&axis, 5), ["10 MiB/s", "100 MiB/s", "1 GiB/s"]);
        let narrow = Axis::over("rate", Unit::Rate, Growth::Log, [3e8, 9e8]);
        assert_eq!(labels(&narrow, 5), ["300 MiB/s", "500 MiB/s", "700 MiB/s"]);
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_takes_round_steps() {
        let axis = Axis::over("rate", Unit::Rate, Growth::Linear, [1.0e9, 2.9e9]);
        assert_eq!(
            labels(&axis, 6),
            ["0 GiB/s", "0.5 GiB/s", "1 GiB/s", "1.5 GiB/s", "2 GiB/s", "2.5 GiB/s"]
        );
        let offset = Axis::exactly("offset", Unit::Bytes, 0.0, 65536.0);
        assert_eq!(labels(&offset, 5), ["0 B", "16 KiB", "32 KiB", "48 KiB", "64 KiB"]);
        let share = Axis::exactly("reads", Unit::Share, 0.0, 1.0);
        assert_eq!(labels(&share, 5), ["0 %", "25 %", "50 %", "75 %", "100 %"]);
    }

    #[test]
    fn the_ends_are_0_and_1_and_nothing_lies_outside() {
        for growth in [Growth::Linear, Growth::Log, Growth::Log2] {
            let axis = Axis::over("x", Unit::Count, growth, [1.0, 7.0, 128.0]);
            for value in [1.0, 7.0, 128.0] {
                assert!((0.0..=1.0).contains(&axis.place(value)), "{growth:?} {value}");
            }
            for tick in axis.ticks(6) {
                assert!((-1e-9..=1.0 + 1e-9).contains(&axis.place(tick.value)), "{growth:?} {tick:?}");
            }
            assert!(axis.ticks(6).len() <= 6);
        }
    }

    #[test]
    fn ends_that_no_drive_has_give_few_ticks_and_soon() {
        let ends = [0.0, 5e-324, 1e-300, 1.0, 1.0 + 1e-15, 1e18, 1e308, -1e308];
        for growth in [Growth::Linear, Growth::Log, Growth::Log2] {
            for unit in [Unit::Count, Unit::Bytes, Unit::Rate, Unit::Seconds, Unit::Share] {
                for (low, high) in ends.iter().flat_map(|low| ends.map(|high| (*low, high))) {
                    let axis = Axis::over("x", unit, growth, [low, high]);
                    assert!(axis.ticks(6).len() <= 6, "{growth:?} {unit:?} {low:e} {high:e}");
                    assert_eq!(axis.samples(64).len(), 64);
                }
            }
        }
    }

    #[test]
    fn nothing_to_show_still_makes_an_axis() {
        let axis = Axis::over("x", Unit::Rate, Growth::Log, [f64::NAN, -1.0]);
        assert!(!axis.ticks(5).is_empty());
        let flat = Axis::over("x", Unit::Count, Growth::Log, [5.0]);
        assert!(flat.place(5.0) > 0.0 && flat.place(5.0) < 1.0);
    }
}
