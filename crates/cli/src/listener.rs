//! The notes and the progress of benchmarks, on standard error.

use flashgrain_bench::listener::Listener;

use crate::output::Context;
use crate::progress::Percent;

impl Listener for Context {
    fn note(&self, text: &str) {
        Context::note(self, text);
    }

    fn detail(&self, text: &str) {
        Context::detail(self, text);
    }

    fn leaves(&self, text: String) {
        self.interrupt.leaves(text);
    }

    fn progress(&self, what: &'static str) -> Box<dyn FnMut(f64) + '_> {
        let mut percent = Percent::new(self.verbosity, what);
        Box::new(move |share| percent.show(share))
    }
}
