//! How a volume is made, and found again on the device that it was made on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flashgrain_device::Device;

use super::buffer::WriteBuffer;
use super::directory::Directory;
use super::edges::Edges;
use super::files::{Extents, FileId, Files};
use super::label::{Label, Members};
use super::lane::Transfer;
use super::shared::Shared;
use super::volume_id::VolumeId;
use super::{BLOCK_BYTES, EXTENT_BYTES, Error, Inner, SLOT_BYTES, Volume, VolumeOptions};

/// Where extent 0 begins on volumes without labels.
const EXTENTS_BEGIN_WITHOUT_LABELS: u64 = 2 * SLOT_BYTES;

impl Volume {
    /// Makes an empty volume; whatever is on the device is lost.
    ///
    /// # Errors
    /// [`Error::Small`] if the device has not room for a single extent, [`Error::StripeUnit`], or
    /// [`Error::Device`].
    pub fn create(device: Arc<dyn Device>, options: VolumeOptions) -> Result<Arc<Self>, Error> {
        let members = Members::of(&*device);
        if !members.have_blocks(align(&*device)) {
            return Err(Error::StripeUnit(device.identity().target.clone()));
        }
        let extents = extents(&*device, members.extents_begin())?;
        let id = VolumeId::draw();
        let directory = Directory { volume: Some(id), ..Directory::default() };
        let volume = Self::new(device, options, Files::new(directory, extents));
        volume.label(&members, id)?;
        // Both slots, so that nothing of an older volume is ever found.
        for _ in 0..2 {
            let mut inner = volume.inner();
            inner.files.touch();
            volume.save(&mut inner)?;
            volume.flush(&mut inner, FileId::NONE)?;
        }
        Ok(volume)
    }

    /// Opens the volume on a device.
    ///
    /// # Errors
    /// [`Error::Member`] if the device is made of other files or drives than the volume, or in another order;
    /// [`Error::NoVolume`] if neither slot holds a whole directory; [`Error::Device`].
    pub fn open(device: Arc<dyn Device>, options: VolumeOptions) -> Result<Arc<Self>, Error> {
        let members = Members::of(&*device);
        // Every volume has room for this one.
        let least = extents(&*device, EXTENTS_BEGIN_WITHOUT_LABELS)?;
        let volume = Self::new(Arc::clone(&device), options, Files::new(Directory::default(), least));
        let id = members.check(&volume.labels(&members)?)?;
        let extents = match id {
            Some(_) => extents(&*device, members.extents_begin())?,
            None => least,
        };
        let mut slots = Vec::new();
        for slot in 0..2 {
            let mut bytes = vec![0; SLOT_BYTES as usize];
            volume.read_device(slot * SLOT_BYTES, &mut bytes)?;
            slots.push(Directory::decode(&bytes, id, extents.count));
        }
        let newest = slots.into_iter().flatten().max_by_key(|directory| directory.generation);
        let directory = newest.ok_or_else(|| Error::NoVolume(volume.target()))?;
        volume.inner().files = Files::new(directory, extents);
        Ok(volume)
    }

    /// Writes the labels of a new volume.
    fn label(&self, members: &Members, id: VolumeId) -> Result<(), Error> {
        let blocks: Vec<Vec<u8>> =
            members.labels(id).iter().map(|label| self.whole(label.encode())).collect();
        for (device_offset, bytes) in members.offsets().into_iter().zip(&blocks) {
            self.with_lane(|lane| lane.write(&[Transfer { device_offset, bytes }]))?;
        }
        self.flush(&mut self.inner(), FileId::NONE)
    }

    /// The label of each member.
    fn labels(&self, members: &Members) -> Result<Vec<Option<Label>>, Error> {
        let mut labels = Vec::new();
        for offset in members.offsets() {
            let mut block = vec![0; self.align as usize];
            // Volumes of version 2 may be so small that they end here.
            if members.have_blocks(self.align) && offset + self.align <= self.device.capacity_bytes() {
                self.read_device(offset, &mut block)?;
            }
            labels.push(Label::decode(&block));
        }
        Ok(labels)
    }

    fn new(device: Arc<dyn Device>, options: VolumeOptions, files: Files) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let inner = Inner {
            files,
            buffer: WriteBuffer::default(),
            edges: Edges::default(),
            sent: None,
            failed: None,
        };
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            align: align(&*device),
            device,
            options,
            inner: Mutex::new(inner),
            shared: Shared::default(),
        })
    }
}

/// Alignment of requests, in bytes.
fn align(device: &dyn Device) -> u64 {
    u64::from(device.geometry().offset_align_bytes).max(BLOCK_BYTES)
}

/// Extents that a device has room for from an offset on.
fn extents(device: &dyn Device, begin: u64) -> Result<Extents, Error> {
    let target = || device.identity().target.clone();
    if !device.geometry().writable {
        return Err(Error::ReadOnly(target()));
    }
    let count = device.capacity_bytes().saturating_sub(begin) / EXTENT_BYTES;
    match u32::try_from(count).unwrap_or(u32::MAX) {
        0 => Err(Error::Small { target: target(), bytes_min: begin + EXTENT_BYTES }),
        count => Ok(Extents { begin, count }),
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_device::MemoryDevice;

    use super::*;

    fn device(bytes: u64) -> Arc<dyn Device> {
        Arc::new(MemoryDevice::new(bytes, bytes).unwrap())
    }

    fn write(volume: &Volume, name: &str, bytes: &[u8]) {
        let file = volume.file(name, true).unwrap().unwrap();
        volume.write(file, 0, bytes).unwrap();
        volume.sync(file).unwrap();
    }

    fn read(volume: &Volume, name: &str) -> Vec<u8> {
        let file = volume.file(name, false).unwrap().unwrap();
        let mut bytes = vec![0; volume.length(file).unwrap() as usize];
        assert!(volume.read(file, 0, &mut bytes).unwrap());
        bytes
    }

    #[test]
    fn a_volume_without_labels_is_read_and_written_as_before() {
        let device = device(4 << 20);
        let extents = extents(&*device, EXTENTS_BEGIN_WITHOUT_LABELS).unwrap();
        assert_eq!(extents.count, 3);
        let options = VolumeOptions::default();
        let older = Volume::new(Arc::clone(&device), options, Files::new(Directory::default(), extents));
        write(&older, "a", &[1; 5000]);
        drop(older);
        for round in 2..5 {
            let volume = Volume::open(Arc::clone(&device), options).unwrap();
            assert_eq!(read(&volume, "a"), [round - 1; 5000]);
            write(&volume, "a", &[round; 5000]);
        }
        // Made anew, nothing of it is found.
        drop(Volume::create(Arc::clone(&device), options).unwrap());
        assert!(Volume::open(device, options).unwrap().names().is_empty());
    }

    #[test]
    fn a_device_with_room_for_no_extent_is_refused() {
        let error = Volume::create(device(3 << 20), VolumeOptions::default()).map(drop);
        assert!(error.is_ok());
        let error = Volume::create(device((3 << 20) - 4096), VolumeOptions::default()).unwrap_err();
        assert_eq!(error.kind(), "small");
        assert!(error.to_string().contains("3 MiB"), "{error}");
    }
}
