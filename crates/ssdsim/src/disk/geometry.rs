//! Position of bytes on the platters, and times of the arm and the platters.

use crate::config::DiskConfig;
use crate::engine::transfer_ns;

/// Zones, rotation and seek curve.
///
/// Bytes fill zones from the outermost inwards, cylinder by cylinder. Switches of head and track are part of
/// the media rate, as they are in data sheets: a sequential access goes on as if its zone were one long
/// track.
#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    capacity_bytes: u64,
    pub revolution_ns: u64,
    seek: SeekCurve,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_byte: u64,
    bytes: u64,
    first_cylinder: u32,
    cylinders: u32,
    bytes_per_s: u64,
    track_bytes: f64,
}

/// Position at which an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadPosition {
    pub cylinder: u32,
    /// Time within a revolution when the head is above it.
    pub angle_ns: u64,
}

impl Geometry {
    pub fn new(config: &DiskConfig, capacity_bytes: u64, sector_bytes: u32) -> Self {
        let revolution_ns = (60e9 / config.rotations_per_minute).round().max(1.0) as u64;
        let zones = zones(config, capacity_bytes, u64::from(sector_bytes), revolution_ns);
        Self { zones, capacity_bytes, revolution_ns, seek: SeekCurve::new(config) }
    }

    #[inline]
    fn zone_of(&self, offset_bytes: u64) -> usize {
        self.zones.partition_point(|zone| zone.first_byte <= offset_bytes).saturating_sub(1)
    }

    pub fn place(&self, offset_bytes: u64) -> HeadPosition {
        let zone = &self.zones[self.zone_of(offset_bytes)];
        let within = offset_bytes - zone.first_byte;
        let inwards = u128::from(within) * u128::from(zone.cylinders) / u128::from(zone.bytes);
        let turn = (within as f64 / zone.track_bytes).fract();
        HeadPosition {
            cylinder: zone.first_cylinder + inwards as u32,
            angle_ns: (turn * self.revolution_ns as f64) as u64,
        }
    }

    /// Time of the head from one byte to another after it, without stopping.
    pub fn transfer_ns(&self, from_byte: u64, to_byte: u64) -> u64 {
        let to_byte = to_byte.min(self.capacity_bytes);
        let mut from_byte = from_byte;
        let mut nanos = 0;
        for zone in &self.zones[self.zone_of(from_byte)..] {
            if from_byte >= to_byte {
                break;
            }
            let until = to_byte.min(zone.first_byte + zone.bytes);
            nanos += transfer_ns(until - from_byte, zone.bytes_per_s);
            from_byte = until;
        }
        nanos
    }

    /// Time of the arm from one cylinder to another.
    #[inline]
    pub fn seek_ns(&self, from: u32, to: u32) -> u64 {
        self.seek.nanos(from.abs_diff(to))
    }

    /// Time from `now_ns` until the platters have turned to `angle_ns`.
    #[inline]
    pub fn rotation_ns(&self, now_ns: u64, angle_ns: u64) -> u64 {
        (angle_ns + self.revolution_ns - now_ns % self.revolution_ns) % self.revolution_ns
    }
}

/// Zones of equal numbers of cylinders whose rates fall linearly from the outermost to the innermost. A
/// cylinder holds as much of the capacity as its zone's rate says: bytes per track are rate x revolution.
fn zones(config: &DiskConfig, capacity_bytes: u64, sector_bytes: u64, revolution_ns: u64) -> Vec<Zone> {
    let count = u64::from(config.zones);
    let span = config.outer_bytes_per_s - config.inner_bytes_per_s;
    let rate = |index: u64| config.outer_bytes_per_s - span * index / (count - 1).max(1);
    let cylinder = |index: u64| u64::from(config.cylinders) * index / count;
    let weight = |index: u64| u128::from((cylinder(index + 1) - cylinder(index)) * rate(index));
    let all: u128 = (0..count).map(weight).sum();
    let sectors = u128::from(capacity_bytes / sector_bytes);
    let (mut before, mut first_byte) = (0, 0);
    (0..count)
        .map(|index| {
            before += weight(index);
            let end = (sectors * before / all) as u64 * sector_bytes;
            let end = if index + 1 == count { capacity_bytes } else { end };
            let zone = Zone {
                first_byte,
                bytes: end - first_byte,
                first_cylinder: cylinder(index) as u32,
                cylinders: (cylinder(index + 1) - cylinder(index)) as u32,
                bytes_per_s: rate(index),
                track_bytes: rate(index) as f64 * revolution_ns as f64 * 1e-9,
            };
            first_byte = end;
            zone
        })
        .filter(|zone| zone.bytes > 0)
        .collect()
}

/// Seek times through the three points of the configuration: `a + b sqrt(distance)` up to a third of the
/// cylinders, where the arm accelerates half of the way and brakes the other half; beyond, it coasts, and
/// time grows linearly.
#[derive(Debug)]
struct SeekCurve {
    sqrt_base_ns: f64,
    sqrt_slope_ns: f64,
    knee: f64,
    knee_ns: f64,
    linear_slope_ns: f64,
}

impl SeekCurve {
    fn new(config: &DiskConfig) -> Self {
        let [track, average, full] =
            [config.track_seek_ms, config.average_seek_ms, config.full_seek_ms].map(|ms| ms * 1e6);
        let cylinders = f64::from(config.cylinders);
        let knee = (cylinders / 3.0).max(1.0);
        let sqrt_slope_ns = if knee > 1.0 { (average - track) / (knee.sqrt() - 1.0) } else { 0.0 };
        let beyond = cylinders - 1.0 - knee;
        Self {
            sqrt_base_ns: track - sqrt_slope_ns,
            sqrt_slope_ns,
            knee,
            knee_ns: if knee > 1.0 { average } else { track },
            linear_slope_ns: if beyond > 0.0 { (full - average) / beyond } else { 0.0 },
        }
    }

    fn nanos(&self, distance: u32) -> u64 {
        let distance = f64::from(distance);
        if distance == 0.0 {
            0
        } else if distance <= self.knee {
            (self.sqrt_base_ns + self.sqrt_slope_ns * distance.sqrt()).round() as u64
        } else {
            (self.knee_ns + self.linear_slope_ns * (distance - self.knee)).round() as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config() -> DiskConfig {
        DiskConfig {
            rotations_per_minute: 7200.0,
            cylinders: 90_000,
            track_seek_ms: 0.8,
            average_seek_ms: 8.5,
            full_seek_ms: 18.0,
            outer_bytes_per_s: 200_000_000,
            inner_bytes_per_s: 100_000_000,
            zones: 11,
            reorder_depth: 1,
            read_ahead_bytes: 0,
            write_cache_bytes: 0,
        }
    }

    const CAPACITY_BYTES: u64 = 1_000_204_886_016;

    fn geometry() -> Geometry {
        Geometry::new(&config(), CAPACITY_BYTES, 512)
    }

    #[test]
    fn the_seek_curve_goes_through_its_three_points_and_never_falls() {
        let geometry = geometry();
        assert_eq!(geometry.seek_ns(5, 5), 0);
        assert_eq!(geometry.seek_ns(5, 6), 800_000);
        assert_eq!(geometry.seek_ns(30_000, 0), 8_500_000);
        assert_eq!(geometry.seek_ns(0, 89_999), 18_000_000);
        let times: Vec<u64> = (0..90_000).step_by(7).map(|distance| geometry.seek_ns(0, distance)).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn the_smallest_disks_have_a_seek_curve_too() {
        for cylinders in [2, 3, 4, 5] {
            let geometry = Geometry::new(&DiskConfig { cylinders, zones: 1, ..config() }, 1 << 20, 512);
            let times: Vec<u64> = (0..cylinders).map(|distance| geometry.seek_ns(0, distance)).collect();
            assert!(times.is_sorted() && times[1] >= 800_000, "{cylinders}: {times:?}");
            assert!(*times.last().unwrap() <= 18_000_000, "{cylinders}: {times:?}");
        }
    }

    #[test]
    fn zones_fill_the_disk_and_outer_ones_hold_more() {
        let geometry = geometry();
        assert_eq!(geometry.zones.len(), 11);
        for pair in geometry.zones.windows(2) {
            assert_eq!(pair[0].first_byte + pair[0].bytes, pair[1].first_byte);
            assert_eq!(pair[0].first_cylinder + pair[0].cylinders, pair[1].first_cylinder);
            // All zones have (nearly) equal numbers of cylinders, so bytes are as rates.
            let (bytes, rates) = (
                pair[0].bytes as f64 / pair[1].bytes as f64,
                pair[0].bytes_per_s as f64 / pair[1].bytes_per_s as f64,
            );
            assert!((bytes / rates - 1.0).abs() < 1e-3, "{bytes} {rates}");
        }
        let last = geometry.zones.last().unwrap();
        assert_eq!(last.first_byte + last.bytes, CAPACITY_BYTES);
        assert_eq!(last.bytes_per_s, 100_000_000);
        assert_eq!(geometry.place(0), HeadPosition { cylinder: 0, angle_ns: 0 });
        assert_eq!(geometry.place(CAPACITY_BYTES - 1).cylinder, 89_999);
    }

    #[test]
    fn reading_all_of_it_takes_the_mean_rate() {
        let geometry = geometry();
        let seconds = geometry.transfer_ns(0, CAPACITY_BYTES) as f64 * 1e-9;
        assert!((CAPACITY_BYTES as f64 / seconds / 150e6 - 1.0).abs() < 1e-3, "{seconds}");
        assert_eq!(geometry.transfer_ns(0, 200_000), 1_000_000);
        assert_eq!(geometry.transfer_ns(CAPACITY_BYTES - 100_000, u64::MAX), 1_000_000);
    }

    proptest! {
        #[test]
        fn the_head_arrives_where_rotation_says(offset in 0..CAPACITY_BYTES / 512, now in 0_u64..1 << 40) {
            let geometry = geometry();
            let place = geometry.place(offset * 512);
            let wait = geometry.rotation_ns(now, place.angle_ns);
            prop_assert!(wait < geometry.revolution_ns);
            prop_assert_eq!((now + wait) % geometry.revolution_ns, place.angle_ns);
        }

        #[test]
        fn transfer_and_rotation_agree(offset in 0..CAPACITY_BYTES / 512 - 4096, sectors in 1_u64..4096) {
            // After a transfer the head is above the next byte, within rounding; zones begin anew.
            let geometry = geometry();
            let (from, to) = (offset * 512, (offset + sectors) * 512);
            prop_assume!(geometry.zone_of(from) == geometry.zone_of(to));
            let begin = geometry.place(from).angle_ns;
            let wait = geometry.rotation_ns(begin + geometry.transfer_ns(from, to), geometry.place(to).angle_ns);
            prop_assert!(wait <= 10 || wait >= geometry.revolution_ns - 10, "{}", wait);
        }
    }
}
