//! Messages on the progress of a benchmark.

/// Receives messages on the progress.
pub trait Listener {
    /// Receives the current activity.
    fn note(&self, text: &str);

    /// Receives details that only few users want.
    fn detail(&self, text: &str) {
        let _unheard = text;
    }

    /// Receives the text on the remains if the benchmark is ended from now on.
    fn leaves(&self, text: String) {
        let _unheard = text;
    }

    /// Is about to hear the share of some work that is done, again and again.
    fn progress(&self, what: &'static str) -> Box<dyn FnMut(f64) + '_> {
        let _unheard = what;
        Box::new(|_| ())
    }
}
