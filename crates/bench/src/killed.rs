//! A process that does not outlive its owner.

use std::process::Child;

/// A process that is killed however this one goes on.
pub(crate) struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}
