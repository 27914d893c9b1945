//! The layout of a new store: from the profile where it has a number, else from defaults that say so, always
//! within the limits of the devices.

use flashgrain_device::{Geometry, bytes_text};
use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::unit::{self, DEFAULT_UNIT_BYTES, UNIT_BYTES};
use flashgrain_settings::{Bytes, Count, drive};

use super::{Layout, LogExtent, Placement, SyncMethod};
use crate::Error;
use crate::layout::sizes::Sizes;

/// Settings given by the user. They take precedence over the profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub unit_bytes: Option<u32>,
    pub segment_bytes: Option<u64>,
    pub pack_bytes: Option<u32>,
    pub log_bytes: Option<u64>,
    pub log_block_bytes: Option<u32>,
    pub node_bytes: Option<u32>,
    pub sync_method: Option<SyncMethod>,
    pub placement: Option<Placement>,
    /// Everything.
    pub small: Option<Layout>,
    /// The store's id; random unless given.
    pub id: Option<crate::store_id::StoreId>,
}

/// Input of [`decide`]: the profile, the devices' geometry and limits.
pub(crate) struct Ground<'a> {
    /// Decisions of the drive's profile, if it has one.
    pub profile: Option<&'a [drive::Decision]>,
    pub data: &'a Geometry,
    /// The log's device, if it is another one.
    pub log: Option<&'a Geometry>,
    /// The capacity of the data device; `None` if it grows.
    pub capacity_bytes: Option<u64>,
    /// Capacity of the log's own device; `None` if it grows, or if the log has none.
    pub log_capacity_bytes: Option<u64>,
    /// Upper bound for the bytes of log that recovery may have to read.
    pub recovery_log_bytes: u64,
    /// Segments that a store has at first if it grows.
    pub growth_segments: u64,
    /// Bytes of the file system that it grows in, if they are known.
    pub room_bytes: Option<u64>,
}

/// Smallest and largest node.
pub(crate) const NODE_BYTES: (u32, u32) = (4 << 10, 64 << 10);

const DEFAULT_SEGMENT_BYTES: u64 = 4 << 20;

/// The first segments of a store that grows, unless its units are larger: some must be free at any time, so
/// that they make up most of a store with few records.
const FIRST_SEGMENT_BYTES: u64 = 256 << 10;

/// Bytes and blocks that the log of a store that grows has at first, at least.
const FIRST_LOG_BYTES: u64 = 256 << 10;
const FIRST_LOG_BLOCKS: u64 = 16;

/// The longest log: offsets after it do not overflow.
const LOG_BYTES_MAX: u64 = 1 << 60;

const DEFAULT_LOG_BLOCK_BYTES: u32 = 4 << 10;
const LOG_BLOCK_BYTES: (u32, u32) = (4 << 10, 64 << 10);
const DEFAULT_IN_FLIGHT: u32 = 64;
const DEFAULT_READ_AHEAD_BYTES: u32 = 512 << 10;
const READ_AHEAD_BYTES: (u32, u32) = (64 << 10, 16 << 20);

const HALF_BANDWIDTH_BYTES: (u64, u64) = (512, 64 << 20);

/// The superblock's slots lie in the front of the data device, before the log and the segments.
const FRONT_BYTES: u64 = 256 << 10;

/// A device of fixed size has at least this number of segments, if units need not become too small for that:
/// the cleaner has a choice then, and the segments that are kept for it and for checkpoints are a small part.
const SEGMENTS_TARGET: u64 = 256;

/// With fewer, the open segments and those that are kept for checkpoints and the cleaner would be most of the
/// device.
const SEGMENTS_MIN: u64 = 24;

/// Units of a segment: at least, and where the device is large enough.
const UNITS_MIN: u64 = 2;
const UNITS_TARGET: u64 = 4;

/// The ring has this multiple of the log that a recovery may have to read: commits go on while a checkpoint
/// is under way.
const RING_FACTOR: u64 = 2;

/// On a device of fixed size the log takes at most this part.
const LOG_DIVISOR: u64 = 8;

/// In a file system, where the log begins short and grows, it takes at most this part of the whole.
const ROOM_LOG_DIVISOR: u64 = 48;

/// A log that would grow to less than this multiple of its first length has all of it at once: each move
/// leaves a hole as long as the log was.
const LOG_GROWTH_MIN: u64 = 4;

/// Devices with at most these bytes use two thirds of that part, unless a log length is given: they have no
/// long checkpoints to be bridged.
const SMALL_BYTES_MAX: u64 = 256 << 20;

/// Collects the decisions while the layout is made.
struct Draft<'a> {
    profile: Option<&'a [drive::Decision]>,
    decisions: Vec<Decision>,
}

/// Decides the layout of a new store.
///
/// # Errors
/// [`Error::Options`] if an override is invalid, or the device is unsuitable.
pub(crate) fn decide(ground: &Ground<'_>, wanted: &Overrides) -> Result<(Layout, Vec<Decision>), Error> {
    if let Some(layout) = &wanted.small {
        return Ok((layout.clone(), Vec::new()));
    }
    let mut draft = Draft { profile: ground.profile, decisions: Vec::new() };
    let sector_bytes = sector(ground.data)?;
    let log_geometry = ground.log.unwrap_or(ground.data);
    let room_bytes = ground.capacity_bytes.or(ground.room_bytes);
    let unit_bytes = draft.unit(wanted.unit_bytes, room_bytes)?;
    let segment_bytes = draft.segment(wanted.segment_bytes, unit_bytes, room_bytes)?;
    let pack_bytes = draft.pack(wanted.pack_bytes, sector_bytes, unit_bytes)?;
    let log_block_bytes = draft.log_block(wanted.log_block_bytes, sector(log_geometry)?)?;
    let log_room = log_room(ground, log_block_bytes);
    let placement = draft.placement(wanted.placement);
    // Pages that stay in their places are for measurements, which must not depend on the history of growth.
    let grows = ground.capacity_bytes.is_none() && placement == Placement::OutOfPlace;
    let log_bytes_max = draft.log(wanted.log_bytes, ground.recovery_log_bytes, log_block_bytes, log_room)?;
    let first_log_bytes = FIRST_LOG_BYTES.max(FIRST_LOG_BLOCKS * u64::from(log_block_bytes));
    let log_bytes = match grows && ground.log.is_none() && wanted.log_bytes.is_none() {
        true if log_bytes_max > LOG_GROWTH_MIN * first_log_bytes => first_log_bytes,
        _ => log_bytes_max,
    };
    let first_segment_bytes = match grows {
        true => FIRST_SEGMENT_BYTES.max(unit_bytes.into()).min(segment_bytes),
        false => segment_bytes,
    };
    let sync_method = draft.sync_method(wanted.sync_method);
    let (read_ahead_bytes, in_flight) = (draft.read_ahead(), draft.in_flight());
    let node_bytes = draft.node(wanted.node_bytes)?;
    let front = front(ground.data, unit_bytes);
    let (start_bytes, segments_start) = match ground.log {
        Some(log) => (self::front(log, log_block_bytes), front),
        None => (front, front + log_bytes),
    };
    let log = LogExtent { start_bytes, bytes: log_bytes };
    let layout = Layout {
        sector_bytes,
        unit_bytes,
        segment_bytes,
        first_segment_bytes,
        segments_start_bytes: segments_start.next_multiple_of(u64::from(unit_bytes)),
        pack_bytes,
        log,
        log_at_creation: log,
        log_bytes_max,
        log_block_bytes,
        placement,
        sync_method,
        read_ahead_bytes,
        in_flight,
        half_bandwidth_bytes: draft.half_bandwidth(),
        node_bytes,
    };
    draft.space(&layout, ground);
    let least = layout.segments_start_bytes + SEGMENTS_MIN * segment_bytes;
    match ground.capacity_bytes {
        Some(capacity) if capacity < least => Err(Error::Options(format!(
            "a device of {capacity} bytes is too small for a store: it needs at least {least} bytes with this layout"
        ))),
        _ => Ok((layout, draft.decisions)),
    }
}

/// Room that the log may take: on a device of its own, or of the one that the segments are on as well.
fn log_room(ground: &Ground<'_>, log_block_bytes: u32) -> LogRoom {
    let bytes_max = match ground.log {
        None => ground.capacity_bytes.map(|bytes| bytes / LOG_DIVISOR),
        Some(log) => ground.log_capacity_bytes.map(|bytes| bytes.saturating_sub(front(log, log_block_bytes))),
    };
    let is_small =
        ground.capacity_bytes.is_some_and(|bytes| bytes <= SMALL_BYTES_MAX) && ground.log.is_none();
    let of_file_system =
        ground.room_bytes.filter(|_| ground.log.is_none()).map(|bytes| bytes / ROOM_LOG_DIVISOR);
    let usual_bytes = match bytes_max {
        Some(bytes) if is_small => Some(bytes / 3 * 2),
        Some(bytes) => Some(bytes),
        None => of_file_system,
    };
    LogRoom { bytes_max, usual_bytes }
}

/// Bytes at the start of a device that belong to superblocks and labels. The first stripe unit of each member
/// has its label.
fn front(geometry: &Geometry, align_bytes: u32) -> u64 {
    let labels = geometry.stripe_unit_bytes.unwrap_or(0) * u64::from(geometry.members);
    FRONT_BYTES.max(labels).next_multiple_of(u64::from(align_bytes))
}

/// The unit of offsets: the device's alignment, at least 512.
fn sector(geometry: &Geometry) -> Result<u32, Error> {
    match geometry.offset_align_bytes {
        align @ 0..=512 if align == 0 || 512 % align == 0 => Ok(512),
        align if align <= 4096 && 4096 % align == 0 => Ok(4096),
        align => Err(Error::Options(format!(
            "this device takes requests aligned to {align} bytes only; a store needs one of 512 or 4096"
        ))),
    }
}

/// The largest unit that leaves a device enough segments, or the smallest unit.
fn largest_unit(capacity_bytes: u64) -> u32 {
    let most = (capacity_bytes / (SEGMENTS_TARGET * UNITS_TARGET)).clamp(1, u64::from(UNIT_BYTES.1));
    (1 << most.ilog2()).max(UNIT_BYTES.0)
}

fn power_of_two(name: &str, bytes: u64, (least, most): (u64, u64)) -> Result<(), Error> {
    if bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Options(format!("a {name} of {bytes} bytes: use a power of two from {least} to {most}")))
}

fn wide((least, most): (u32, u32)) -> (u64, u64) {
    (u64::from(least), u64::from(most))
}

const SET: &str = "set by hand";

/// The longest log on a device of fixed size; `None` if that sets no bound.
#[derive(Clone, Copy)]
struct LogRoom {
    /// If its length was asked for.
    bytes_max: Option<u64>,
    /// Otherwise.
    usual_bytes: Option<u64>,
}

impl Draft<'_> {
    fn note(&mut self, setting: Setting, because: impl Into<String>) {
        self.decisions.push(Decision { setting, because: because.into() });
    }

    /// The profile's decision on a setting, if it has one.
    fn decided<T>(&self, setting: fn(&drive::Setting) -> Option<T>) -> Option<(T, &drive::Decision)> {
        drive::decided(self.profile?, setting)
    }

    /// The profile's value of a setting and its reason, unless the profile only has a default; then `Err`
    /// with the reason for using ours.
    fn learned<T>(&self, setting: fn(&drive::Setting) -> Option<T>) -> Result<(T, String), String> {
        match self.decided(setting) {
            Some((value, decision)) if !decision.from_default => Ok((value, decision.because.clone())),
            Some((_, decision)) => Err(format!("default: {}", decision.because)),
            None if self.profile.is_some() => Err("default: the profile does not say".into()),
            None => Err("default: there is no profile".into()),
        }
    }

    /// The profile's size for a setting, rounded up to a power of two within `(least, most)`, or `default`;
    /// and the reason.
    fn learned_power(
        &self,
        setting: fn(&drive::Setting) -> Option<Bytes>,
        (least, most): (u32, u32),
        default: u32,
    ) -> (u32, String) {
        match self.learned(setting) {
            Ok((Bytes(bytes), because)) => {
                let fitting = unit::fitting(bytes, (least, most));
                let because = if u64::from(fitting) == bytes {
                    because
                } else {
                    format!(
                        "{because}; from {} to fit {} to {}",
                        bytes_text(bytes),
                        bytes_text(u64::from(least)),
                        bytes_text(u64::from(most))
                    )
                };
                (fitting, because)
            }
            Err(because) => (default, because),
        }
    }

    fn unit(&mut self, wanted: Option<u32>, capacity: Option<u64>) -> Result<u32, Error> {
        let (bytes, because) = match wanted {
            Some(bytes) => {
                power_of_two("write unit", u64::from(bytes), wide(UNIT_BYTES))?;
                (bytes, SET.to_owned())
            }
            None => {
                let (bytes, because) =
                    self.learned_power(drive::Setting::write_unit, UNIT_BYTES, DEFAULT_UNIT_BYTES);
                match capacity.map(largest_unit).filter(|most| *most < bytes) {
                    Some(most) => {
                        (most, format!("{SEGMENTS_TARGET} segments of {UNITS_TARGET} fit on the device"))
                    }
                    None => (bytes, because),
                }
            }
        };
        self.note(Setting::WriteUnit(Bytes(bytes.into())), because);
        Ok(bytes)
    }

    fn segment(&mut self, wanted: Option<u64>, unit_bytes: u32, capacity: Option<u64>) -> Result<u64, Error> {
        let unit = u64::from(unit_bytes);
        if let Some(bytes) = wanted {
            if bytes < UNITS_MIN * unit || !bytes.is_multiple_of(unit) || bytes > 1 << 30 {
                return Err(Error::Options(format!(
                    "a segment of {bytes} bytes: use a multiple of the write unit, {unit} bytes, from {UNITS_MIN} of them to 1 GiB"
                )));
            }
            self.note(Setting::Segment(Bytes(bytes)), SET);
            return Ok(bytes);
        }
        let (bytes, mut because) = match self.learned(drive::Setting::segment) {
            Ok((shape, because)) => (shape.bytes, because),
            Err(because) => (DEFAULT_SEGMENT_BYTES, because),
        };
        let most = capacity.map_or(1 << 30, |capacity| capacity / SEGMENTS_TARGET);
        let bytes = if bytes > most {
            because = format!("{SEGMENTS_TARGET} segments fit on the device: the cleaner needs a choice");
            most
        } else {
            bytes
        };
        let bytes = (bytes / unit * unit).max(UNITS_MIN * unit);
        self.note(Setting::Segment(Bytes(bytes)), because);
        Ok(bytes)
    }

    fn pack(&mut self, wanted: Option<u32>, sector_bytes: u32, unit_bytes: u32) -> Result<u32, Error> {
        let (bytes, because) = match wanted {
            Some(bytes) => {
                power_of_two(
                    "flash page",
                    u64::from(bytes),
                    (u64::from(sector_bytes), u64::from(unit_bytes)),
                )?;
                (bytes, SET.to_owned())
            }
            // Each image is in one unit anyway, so this adds no rule. A rule for a flash page of an assumed
            // size would waste room.
            None => self.learned_power(drive::Setting::log_block, unit::border_bytes(unit_bytes), unit_bytes),
        };
        self.note(Setting::ImageBorder(Bytes(bytes.into())), because);
        Ok(bytes)
    }

    fn log_block(&mut self, wanted: Option<u32>, sector_bytes: u32) -> Result<u32, Error> {
        let (bytes, because) = match wanted {
            Some(bytes) => {
                power_of_two(
                    "log block",
                    u64::from(bytes),
                    (u64::from(sector_bytes), u64::from(LOG_BLOCK_BYTES.1)),
                )?;
                (bytes, SET.to_owned())
            }
            None => self.learned_power(drive::Setting::log_block, LOG_BLOCK_BYTES, DEFAULT_LOG_BLOCK_BYTES),
        };
        self.note(Setting::LogBlock(Bytes(bytes.into())), because);
        Ok(bytes)
    }

    fn log(
        &mut self,
        wanted: Option<u64>,
        recovery: u64,
        block: u32,
        LogRoom { bytes_max: most, usual_bytes: usual }: LogRoom,
    ) -> Result<u64, Error> {
        let block = u64::from(block);
        let least = 64 * block;
        let (bytes, because) = match wanted {
            Some(bytes) if !(least..=most.unwrap_or(LOG_BYTES_MAX)).contains(&bytes) => {
                let most = most.unwrap_or(LOG_BYTES_MAX);
                return Err(Error::Options(format!(
                    "a log of {bytes} bytes: use at least {least} bytes and at most {most}"
                )));
            }
            Some(bytes) => (bytes, SET.to_owned()),
            None => {
                let text = bytes_text(recovery);
                (
                    recovery.saturating_mul(RING_FACTOR),
                    format!(
                        "{RING_FACTOR} times the {text} that a recovery may have to read: commits go on during a checkpoint"
                    ),
                )
            }
        };
        let (bytes, because) = match usual.filter(|_| wanted.is_none()) {
            Some(usual) if bytes > usual => (usual, "as much as the device has room for".to_owned()),
            _ => (bytes, because),
        };
        let bytes = (bytes / block * block).max(least);
        self.note(Setting::Log(Bytes(bytes)), because);
        Ok(bytes)
    }

    /// Records the decision about the space that the store takes.
    fn space(&mut self, layout: &Layout, ground: &Ground<'_>) {
        if let Some(bytes) = ground.capacity_bytes {
            let because = "all of the device, or the most that it may take: set aside at once";
            self.note(Setting::Space(Bytes(bytes)), because);
            return;
        }
        let bytes = Sizes::of(layout).device_bytes(ground.growth_segments as usize);
        let text = [layout.log.bytes, layout.first_segment_bytes, layout.log_bytes_max, layout.segment_bytes];
        let [log, segment, log_max, segment_max] = text.map(bytes_text);
        let because = if layout.log_grows() {
            format!(
                "{} segments of {segment}, most of them free for later writes, and a log of {log}: all of it grows with the \
                 records, segments to {segment_max} and the log to {log_max} at most",
                ground.growth_segments
            )
        } else {
            format!(
                "{} segments of {segment}, besides the log: it grows with the records",
                ground.growth_segments
            )
        };
        self.note(Setting::FirstSpace(Bytes(bytes)), because);
    }

    fn sync_method(&mut self, wanted: Option<SyncMethod>) -> SyncMethod {
        let decided = self.decided(drive::Setting::sync_method);
        let (method, because) = match (wanted, decided) {
            (Some(method), _) => (method, SET.to_owned()),
            // A profile's default is a method that its drive has been seen to accept.
            (None, Some((method, decision))) => (method, decision.because.clone()),
            (None, None) => (SyncMethod::Fdatasync, "default: works everywhere".to_owned()),
        };
        self.note(Setting::SyncMethod(method), because);
        method
    }

    fn read_ahead(&mut self) -> u32 {
        let (least, most) = wide(READ_AHEAD_BYTES);
        let default = Bytes(DEFAULT_READ_AHEAD_BYTES.into());
        let (Bytes(bytes), because) =
            self.learned(drive::Setting::read_ahead).unwrap_or_else(|because| (default, because));
        let bytes = bytes.clamp(least, most);
        self.note(Setting::ReadAhead(Bytes(bytes)), because);
        bytes as u32
    }

    fn in_flight(&mut self) -> u32 {
        let default = Count(DEFAULT_IN_FLIGHT.into());
        let (Count(requests), because) =
            self.learned(drive::Setting::requests_in_flight).unwrap_or_else(|because| (default, because));
        let requests = requests.clamp(1, 32_000);
        self.note(Setting::RequestsInFlight(Count(requests)), because);
        requests as u32
    }

    /// 0 if no profile says it: then nothing follows from it.
    fn half_bandwidth(&mut self) -> u32 {
        let Ok((Bytes(bytes), because)) = self.learned(drive::Setting::busy_half_bandwidth) else { return 0 };
        let bytes = bytes.clamp(HALF_BANDWIDTH_BYTES.0, HALF_BANDWIDTH_BYTES.1);
        self.note(Setting::BusyHalfBandwidth(Bytes(bytes)), because);
        bytes as u32
    }

    fn node(&mut self, wanted: Option<u32>) -> Result<u32, Error> {
        let (bytes, because) = match wanted {
            Some(bytes) => {
                check_node_bytes(bytes)?;
                (bytes, SET.to_owned())
            }
            None => self.learned_power(drive::Setting::leaf_size, NODE_BYTES, NODE_BYTES.0),
        };
        self.note(Setting::Node(Bytes(bytes.into())), because);
        Ok(bytes)
    }

    fn placement(&mut self, wanted: Option<Placement>) -> Placement {
        let placement = wanted.unwrap_or(Placement::OutOfPlace);
        let because = match placement {
            Placement::OutOfPlace => "every page write becomes part of a large aligned one",
            Placement::InPlace => SET,
        };
        self.note(Setting::Placement(placement), because);
        placement
    }
}

/// Refuses node sizes that no tree has.
///
/// # Errors
/// [`Error::Options`].
pub(crate) fn check_node_bytes(bytes: u32) -> Result<(), Error> {
    power_of_two("node size", u64::from(bytes), wide(NODE_BYTES))
}

#[cfg(test)]
mod tests;
