//! A drive's description, as it stands in a TOML file. Units are in the names.

mod check;
mod disk;
mod file;
mod host;
mod nand;
mod resize;
mod state;
mod xpoint;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

pub use disk::DiskConfig;
pub use host::{CapConfig, HostConfig};
pub use nand::{
    CollectConfig, CollectPolicy, Interleave, LayoutConfig, MappingCache, MappingConfig, NandConfig,
    PlacementRule, WriteCacheConfig,
};
pub use state::StartState;
pub use xpoint::XpointConfig;

/// A simulated drive, or a stripe set of equal ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimConfig {
    /// The drive's model name.
    pub name: String,
    /// Sources of the numbers.
    #[serde(default)]
    pub about: About,
    /// Usable bytes of one drive.
    pub capacity_bytes: u64,
    /// Smallest unit of offsets and lengths.
    #[serde(default = "sector_bytes")]
    pub sector_bytes: u32,
    /// Drives in a stripe set; 1 for a single one.
    #[serde(default = "one")]
    pub drives: u32,
    /// Stripe unit of the set.
    #[serde(default = "stripe_unit_bytes")]
    pub stripe_unit_bytes: u64,
    /// The way from the host to the medium.
    pub host: HostConfig,
    /// The medium that stores the bytes.
    pub medium: MediumConfig,
    /// State of the drive when the simulation starts.
    #[serde(default)]
    pub state: StartState,
    /// Faults that the drive suffers.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

impl SimConfig {
    /// Whether reads find data on the medium wherever they go, before anything is written.
    pub fn holds_data(&self) -> bool {
        let senses_anyway = match &self.medium {
            MediumConfig::Nand(nand) => nand.layout.placement == PlacementRule::ByAddress,
            MediumConfig::Xpoint(_) | MediumConfig::Disk(_) => false,
        };
        senses_anyway || self.state != StartState::Fresh
    }
}

/// Published and assumed facts that a preset rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// One line.
    #[serde(default)]
    pub summary: String,
    /// Published numbers that the drive reproduces, each with its source.
    #[serde(default)]
    pub calibrated: Vec<String>,
    /// Values that were assumed, because nothing is published.
    #[serde(default)]
    pub assumed: Vec<String>,
}

/// The medium that stores the bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediumConfig {
    /// NAND flash with a translation layer.
    Nand(Box<NandConfig>),
    /// 3D XPoint: addressed by bytes, written in place.
    #[serde(rename = "3d-xpoint")]
    Xpoint(XpointConfig),
    /// A rotating disk.
    Disk(DiskConfig),
}

fn sector_bytes() -> u32 {
    512
}

fn one() -> u32 {
    1
}

fn stripe_unit_bytes() -> u64 {
    64 << 10
}
