//! Control over a simulated device that no real device offers.

use super::device::SimDevice;
use super::image::Image;
use super::world::World;
use crate::error::Error;
use crate::fault::{Fault, PowerCut};

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u32);

impl SimDevice {
    /// Arms a fault. One that strikes by itself and is due does so at once.
    pub fn inject(&self, fault: Fault) -> FaultId {
        FaultId(self.with(|world| world.inject(fault)))
    }

    /// Number of times that a fault has happened.
    pub fn fired(&self, fault: FaultId) -> u64 {
        self.with(|world| world.faults.fired(fault.0))
    }

    /// No injected fault happens any more.
    pub fn disarm_faults(&self) {
        self.with(|world| world.faults.disarm());
    }

    /// Events so far. The same configuration, seed and requests have the same events.
    pub fn events(&self) -> u64 {
        self.with(|world| world.events.happened())
    }

    /// Cuts the power now. Requests in flight fail with `EIO`, later ones with `ENODEV`, until
    /// [`SimDevice::power_on`].
    pub fn power_cut(&self, cut: &PowerCut) {
        self.with(|world| world.power_cut(cut));
    }

    /// Switches the drive on again, with the bytes that survived. Channels stay open.
    pub fn power_on(&self) {
        self.with(World::power_on);
    }

    /// Whether the device answers: false after a power cut, or when it is gone.
    pub fn answers(&self) -> bool {
        self.with(|world| world.answers)
    }

    /// All bytes as they are now, with those that a power cut may undo.
    pub fn image(&self) -> Image {
        self.with(|world| world.image())
    }

    /// Makes the bytes of the device those of `image`, all of them on the medium. Requests in flight fail;
    /// the drive is switched off and on.
    ///
    /// # Errors
    /// [`Error::Config`] if the image is one of a device of another size.
    pub fn restore(&self, image: &Image) -> Result<(), Error> {
        self.with(|world| {
            let own = world.image();
            if !own.is_alike(image) {
                return Err(Error::Config {
                    field: "image".into(),
                    value: format!("one of {}", image.shape()),
                    allowed: format!("one of {}", own.shape()),
                });
            }
            world.restore(image);
            Ok(())
        })
    }
}
