//! Hearing what goes on in a benchmark.

/// Receives messages on the progress.
pub trait Listener {
    /// Hears what is done now.
    fn note(&self, text: &str);

    /// Hears what only few want to know.
    fn detail(&self, text: &str) {
        let _unheard = text;
    }

    /// Hears what is left behind if the benchmark is ended from now on.
    fn leaves(&self, text: String) {
        let _unheard = text;
    }

    /// Is about to hear the share of some work that is done, again and again.
    fn progress(&self, what: &'static str) -> Box<dyn FnMut(f64) + '_> {
        let _unheard = what;
        Box::new(|_| ())
    }
}
