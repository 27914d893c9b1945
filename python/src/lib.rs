//! The extension module `flashgrain._flashgrain`: the store, models, profiles, advice and simulated drives as
//! Python sees them.
//!
//! 1. Each file has one Python type, or the conversion of one kind of value.
//! 2. [`opening::Handle`] is the only way to an object of the store: it refuses closed stores and forked
//!    processes, and releases the interpreter lock around everything that may wait.
//! 3. Results that are only read cross as JSON ([`json`]), and the package `flashgrain` gives them types.
//! 4. [`interruptible::run`] is the way to computations that may take seconds: Ctrl-C ends the call.
//! 5. Input from Python never panics here: each refusal is an exception.

mod advice;
mod affine;
mod batch;
mod byte_string;
mod design;
mod drive;
mod ended;
mod errors;
mod file_path;
mod input;
mod interruptible;
mod json;
mod models;
mod numbers;
mod opening;
mod options;
mod profile;
mod range;
mod reads;
mod records;
mod samples;
mod scope;
mod snapshot;
mod store;
mod transaction;
mod tree;

use pyo3::prelude::*;

#[pymodule]
fn _flashgrain(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<store::Store>()?;
    module.add_class::<tree::Tree>()?;
    module.add_class::<range::Range>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<samples::Samples>()?;
    module.add_class::<models::Models>()?;
    module.add_class::<profile::Profile>()?;
    module.add_class::<affine::AffineCosts>()?;
    module.add_class::<design::Design>()?;
    module.add_class::<drive::Drive>()?;
    module.add_function(wrap_pyfunction!(advice::advise, module)?)?;
    module.add_function(wrap_pyfunction!(advice::workload_preset, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drive_presets, module)?)?;
    Ok(())
}
