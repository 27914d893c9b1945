mod crash;
mod faults;
mod full;
mod nonsense;
mod opening;
mod owned;
mod speed;
#[cfg(feature = "testing")]
mod trouble;
mod world;
