//! Random drives: valid, unlike each other, and each with properties that show from outside.
//!
//! A profile of a drive can only show properties that make a difference to the time of a request. A drawn
//! layout is therefore kept only if it makes such a difference, by the closed forms of [`read_times`]: small
//! writes read back more slowly, and reads of a chunk depend on where they start.

mod draw;
mod media;
mod nand;
mod read_times;

use crate::SimConfig;
use crate::config::{About, HostConfig, MediumConfig, StartState};
use draw::Draw;

/// A drive drawn from `seed`: flash in four of five cases, otherwise 3D XPoint or a hard disk. The same seed
/// gives the same drive.
pub fn random_drive(seed: u64) -> SimConfig {
    let mut draw = Draw::new(seed);
    let sector_bytes = if draw.chance(0.15) { 4096 } else { 512 };
    let (host, medium, capacity_bytes) = match draw.unit() {
        share if share < 0.8 => nand::drive(&mut draw, sector_bytes),
        share if share < 0.92 => media::xpoint(&mut draw, sector_bytes),
        _ => media::disk(&mut draw),
    };
    SimConfig {
        name: format!("random drive {seed}"),
        about: About { summary: kind(&medium).into(), ..About::default() },
        capacity_bytes,
        sector_bytes,
        drives: 1,
        stripe_unit_bytes: 64 << 10,
        host,
        medium,
        state: StartState::Filled,
        faults: Vec::new(),
    }
}

fn kind(medium: &MediumConfig) -> &'static str {
    match medium {
        MediumConfig::Nand(_) => "flash, drawn at random",
        MediumConfig::Xpoint(_) => "3D XPoint, drawn at random",
        MediumConfig::Disk(_) => "a hard disk, drawn at random",
    }
}

/// SATA in one of four cases, otherwise NVMe.
fn host(draw: &mut Draw) -> HostConfig {
    if draw.chance(0.25) {
        HostConfig {
            queue_depth: 32,
            command_ns: draw.between(5e3, 15e3) as u64,
            write_command_ns: None,
            partial_command_ns: 0,
            fetch_ns: draw.between(5e3, 12e3) as u64,
            completion_ns: draw.between(3e3, 8e3) as u64,
            link_bytes_per_s: draw.between(2.5e8, 5.6e8) as u64,
            link_full_duplex: false,
            link_in_parts: true,
            command_bytes_per_s: None,
            cap: None,
        }
    } else {
        let command_ns = draw.between(600.0, 4e3);
        HostConfig {
            queue_depth: draw.one_of(&[256, 1024, 4096]),
            command_ns: command_ns as u64,
            write_command_ns: draw.chance(0.3).then_some((2.0 * command_ns) as u64),
            partial_command_ns: draw.one_of(&[0, 300, 1000]),
            fetch_ns: draw.between(1e3, 8e3) as u64,
            completion_ns: draw.between(1e3, 5e3) as u64,
            link_bytes_per_s: draw.between(9e8, 8e9) as u64,
            link_full_duplex: true,
            link_in_parts: true,
            command_bytes_per_s: None,
            cap: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_random_drive_is_valid_and_no_two_are_alike() {
        let drives: Vec<SimConfig> = (0..500).map(random_drive).collect();
        for drive in &drives {
            drive.check().unwrap_or_else(|error| panic!("{}: {error}", drive.name));
        }
        let flash = drives.iter().filter(|drive| matches!(drive.medium, MediumConfig::Nand(_))).count();
        assert!((350..450).contains(&flash), "{flash} of 500 are flash");
        for pair in drives.windows(2) {
            assert_ne!(pair[0].host, pair[1].host);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_drive() {
        assert_eq!(random_drive(7), random_drive(7));
    }
}
