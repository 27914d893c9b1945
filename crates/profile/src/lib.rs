//! Learning a drive: the experiments, the hidden parameters, the device profile.

mod error;
pub mod load;
pub mod schema;

pub use error::Error;
pub use schema::DeviceProfile;
