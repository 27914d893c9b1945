//! Labels: each member of a store's devices contains the store's identity and its own position among the
//! members.
//!
//! ```text
//! byte  bytes  field
//!    0      8  magic "flshgrnm"
//!    8      4  CRC-32C of bytes 12 to 512
//!   12      4  version of the format
//!   16     16  the store's id
//!   32      1  1: data, 2: log
//!   33      3  zeros
//!   36      4  members
//!   40      4  which of them this is, from 0 on
//!   44      8  stripe unit; 0 if there is one member
//! ```
//!
//! A label is at byte 8192 of each member, written once when the store is created.

use std::path::PathBuf;

use super::area::COPY_BYTES;
#[cfg(test)]
use super::area::END_BYTES;
use super::superblock::Shape;
use crate::Error;
use crate::io_context::{Block, Devices, Role, flush};
use crate::sector::{Fields, Found, Reader, SECTOR_BYTES};
use crate::store_id::StoreId;

const MAGIC: [u8; 8] = *b"flshgrnm";

/// Offset of the label in a member.
const OFFSET_BYTES: u64 = 8 << 10;

/// Stripe units from here on have superblocks and labels in places of their own.
const STRIPE_UNIT_BYTES_MIN: u64 = 16 << 10;

/// The position of a member in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub store: StoreId,
    pub is_log: bool,
    pub shape: Shape,
    pub member: u32,
}

impl Label {
    pub(crate) fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut fields = Fields::new(MAGIC);
        fields.put(self.store.0);
        fields.word(if self.is_log { 2 } else { 1 });
        fields.word(self.shape.members);
        fields.word(self.member);
        fields.long(self.shape.stripe_unit_bytes);
        fields.seal()
    }

    /// Bytes of a member that [`Label::of_member`] needs.
    pub const HEAD_BYTES: u64 = 12 << 10;

    /// The label in the first [`Label::HEAD_BYTES`] of a file or drive, if it has one. Labels give the order
    /// of a striped store's paths before it is opened.
    pub fn of_member(first_bytes: &[u8]) -> Option<Self> {
        match Self::decode(first_bytes.get(OFFSET_BYTES as usize..)?) {
            Found::Whole(label) => Some(label),
            Found::Foreign | Found::Version(_) | Found::Damaged => None,
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Found<Self> {
        let mut fields = match Reader::open(bytes, MAGIC) {
            Found::Whole(fields) => fields,
            Found::Foreign => return Found::Foreign,
            Found::Version(version) => return Found::Version(version),
            Found::Damaged => return Found::Damaged,
        };
        let store = StoreId(fields.take());
        let is_log = match fields.word() {
            1 => false,
            2 => true,
            _ => return Found::Damaged,
        };
        let (members, member) = (fields.word(), fields.word());
        let shape = Shape { members, stripe_unit_bytes: fields.long() };
        Found::Whole(Self { store, is_log, shape, member })
    }

    /// In words, for a message.
    fn place(&self) -> String {
        let role = if self.is_log { "log" } else { "data" };
        format!("member {} of {} of the {role}", u64::from(self.member) + 1, self.shape.members)
    }
}

/// The members of the device for `role`, and their striping.
pub(crate) fn shape(devices: &Devices, role: Role) -> Shape {
    let geometry = devices.device(role).geometry();
    Shape { members: geometry.members, stripe_unit_bytes: geometry.stripe_unit_bytes.unwrap_or(0) }
}

/// Bytes at the start of a device of this shape that belong to superblocks and labels.
#[cfg(test)]
pub(crate) fn head_bytes(shape: Shape) -> u64 {
    END_BYTES
        .max(shape.stripe_unit_bytes * u64::from(shape.members.saturating_sub(1)) + OFFSET_BYTES + COPY_BYTES)
}

fn labels(devices: &Devices, store: StoreId) -> Vec<(Role, Label)> {
    let mut labels = Vec::new();
    for (role, is_log) in [(Role::Data, false), (Role::Log, true)] {
        if role == Role::Data || devices.has_own_log() {
            let shape = shape(devices, role);
            labels.extend((0..shape.members).map(|member| (role, Label { store, is_log, shape, member })));
        }
    }
    labels
}

impl Label {
    /// On the device that the members make up.
    fn offset_bytes(&self) -> u64 {
        self.shape.stripe_unit_bytes * u64::from(self.member) + OFFSET_BYTES
    }
}

/// Path of a member, as the user gave it.
fn path(devices: &Devices, role: Role, member: u32) -> PathBuf {
    let target = &devices.device(role).identity().target;
    target.split(',').nth(member as usize).unwrap_or(target).into()
}

/// Labels all members.
pub(crate) fn save(devices: &Devices, store: StoreId) -> Result<(), Error> {
    let mut block = Block::new(COPY_BYTES as usize)?;
    for (role, label) in labels(devices, store) {
        let unit = label.shape.stripe_unit_bytes;
        if label.shape.members > 1 && unit < STRIPE_UNIT_BYTES_MIN {
            let why = format!(
                "a stripe unit of {unit} bytes is too small for a store: use at least {STRIPE_UNIT_BYTES_MIN}"
            );
            return Err(Error::Options(why));
        }
        block.bytes()[..SECTOR_BYTES].copy_from_slice(&label.encode());
        block.write(devices, role, label.offset_bytes())?;
    }
    if devices.has_own_log() {
        flush(devices, Role::Log).map_err(|failure| failure.error("flush the log's labels"))?;
    }
    flush(devices, Role::Data).map_err(|failure| failure.error("flush the labels"))
}

/// Whether all members are there, each in its place. A single data member needs no label: it has the
/// superblock.
///
/// # Errors
/// [`Error::Member`] naming the one that is not.
pub(crate) fn check(devices: &Devices, store: StoreId) -> Result<(), Error> {
    let mut block = Block::new(COPY_BYTES as usize)?;
    for (role, expected) in labels(devices, store) {
        if role == Role::Data && expected.shape.members == 1 {
            continue;
        }
        let wrong = |why: String| Err(Error::Member { path: path(devices, role, expected.member), why });
        block.read(devices, role, expected.offset_bytes())?;
        match Label::decode(block.bytes()) {
            Found::Whole(label) if label == expected => {}
            Found::Whole(label) if label.store != store => {
                return wrong("it belongs to another store".into());
            }
            Found::Whole(label) if label.shape == expected.shape => {
                return wrong(format!(
                    "it is {}, not {}: give the members in their order",
                    label.place(),
                    expected.place()
                ));
            }
            Found::Whole(label) => {
                return wrong(format!(
                    "it is {} with a stripe unit of {} bytes; the store was opened as {} with one of {}",
                    label.place(),
                    label.shape.stripe_unit_bytes,
                    expected.place(),
                    expected.shape.stripe_unit_bytes
                ));
            }
            Found::Version(got) => {
                return Err(Error::FormatVersion { got, supported: crate::sector::FORMAT_VERSION });
            }
            Found::Foreign | Found::Damaged => return wrong("it has no label of this store".into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flashgrain_device::Device;
    use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::*;

    const STORE: StoreId = StoreId([7; 16]);

    fn drives(count: u32, target: &str) -> Arc<SimDevice> {
        let mut config = SimConfig::named("905p").unwrap();
        (config.drives, config.stripe_unit_bytes) = (count, 64 << 10);
        Arc::new(SimDevice::new(&config, target, 1).unwrap())
    }

    /// The member that an open is refused for.
    fn refused(devices: &Devices) -> (PathBuf, String) {
        match check(devices, STORE) {
            Err(Error::Member { path, why }) => (path, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn labels_that_are_not_durable_do_not_count() {
        for role in [Role::Data, Role::Log] {
            let (data, log) = (drives(2, "/data"), drives(2, "/log"));
            let devices = Devices::new(data.clone(), Some(log.clone()));
            let failing = if role == Role::Data { &data } else { &log };
            failing.inject(Fault::new(FaultKind::FlushError { data: FlushLoss::Dropped }));
            assert!(matches!(save(&devices, STORE), Err(Error::Io { .. })), "{role:?}");
        }
    }

    #[test]
    fn a_member_of_another_store_is_named() {
        let device = drives(3, "/a,/b,/c");
        let devices = Devices::new(device.clone(), None);
        save(&devices, STORE).unwrap();
        check(&devices, STORE).unwrap();
        let mut block = Block::new(4096).unwrap();
        let swapped = Label { store: STORE, is_log: false, shape: shape(&devices, Role::Data), member: 2 };
        let foreign = Label { store: StoreId([8; 16]), member: 1, ..swapped };
        for (label, why) in
            [(Some(foreign), "another store"), (Some(swapped), "is member 3 of 3"), (None, "no label")]
        {
            let sector = label.map_or([0; SECTOR_BYTES], |label| label.encode());
            block.bytes()[..SECTOR_BYTES].copy_from_slice(&sector);
            block.write(&devices, Role::Data, (64 << 10) + OFFSET_BYTES).unwrap();
            let (path, got) = refused(&devices);
            assert_eq!(path, PathBuf::from("/b"));
            assert!(got.contains(why), "{got}");
        }
    }

    #[test]
    fn a_label_of_the_last_number_there_is_can_be_named() {
        let shape = Shape { members: 1, stripe_unit_bytes: 0 };
        let label = Label { store: STORE, is_log: false, shape, member: u32::MAX };
        assert_eq!(label.place(), "member 4294967296 of 1 of the data");
    }

    #[test]
    fn the_log_of_another_store_is_refused() {
        let (data, log): (Arc<SimDevice>, Arc<SimDevice>) = (drives(1, "/data"), drives(1, "/log"));
        let devices = Devices::new(data, Some(log));
        let (path, _) = refused(&devices);
        assert_eq!(path, PathBuf::from("/log"));
        save(&devices, STORE).unwrap();
        check(&devices, STORE).unwrap();
        assert!(matches!(check(&devices, StoreId([1; 16])), Err(Error::Member { .. })));
    }

    #[test]
    fn the_head_has_room_for_all_labels() {
        for (members, unit) in [(1, 0), (2, 16 << 10), (8, 64 << 10), (5, 1 << 20)] {
            let shape = Shape { members, stripe_unit_bytes: unit };
            let last = unit * u64::from(members - 1) + OFFSET_BYTES;
            assert!(head_bytes(shape) >= (last + COPY_BYTES).max(END_BYTES));
        }
    }

    #[test]
    fn a_stripe_unit_in_which_labels_would_meet_superblocks_is_refused() {
        let mut config = SimConfig::named("905p").unwrap();
        (config.drives, config.stripe_unit_bytes) = (2, 4 << 10);
        let device: Arc<dyn Device> = Arc::new(SimDevice::new(&config, "sim", 1).unwrap());
        assert!(matches!(save(&Devices::new(device, None), STORE), Err(Error::Options(_))));
    }
}
