//! Advice for a workload on a profiled drive.

use flashgrain_advisor::engine::{EngineName, EngineVersion};
use flashgrain_advisor::workload::{self, PRESETS};
use flashgrain_advisor::{Advice, Error, Workload};
use pyo3::prelude::*;

use crate::profile::Profile;
use crate::{errors, interruptible, json};

const ENGINES: [(&str, EngineName); 5] = [
    ("rocksdb", EngineName::Rocksdb),
    ("sqlite", EngineName::Sqlite),
    ("mariadb", EngineName::Mariadb),
    ("wiredtiger", EngineName::Wiredtiger),
    ("flashgrain", EngineName::Flashgrain),
];

/// An engine, with a version behind a colon if the settings of another one than the usual are wanted.
fn engine(py: Python<'_>, text: &str) -> PyResult<EngineVersion> {
    let (name, version) = text.split_once(':').map_or((text, None), |(name, version)| (name, Some(version)));
    let known = ENGINES.iter().find(|(known, _)| *known == name).map(|(_, engine)| *engine);
    let Some(engine) = known else {
        let known: Vec<&str> = ENGINES.iter().map(|(name, _)| *name).collect();
        return Err(errors::argument(py, format!("no settings for {name:?}: use {}", known.join(", "))));
    };
    match version {
        None => Ok(engine.into()),
        Some(version) => EngineVersion::of(engine, version).map_err(|error| errors::argument(py, error)),
    }
}

/// A workload from the name of a preset, or from the text of its file.
fn workload(text: &str) -> Result<Workload, Error> {
    if PRESETS.iter().any(|(name, _)| *name == text) || !text.contains(['\n', '=']) {
        return workload::preset(text);
    }
    workload::parse(text)
}

/// Ranked designs and settings of engines for a workload on the drive of a profile.
#[pyfunction]
pub fn advise<'py>(
    py: Python<'py>,
    profile: &Bound<'py, PyAny>,
    workload: &str,
    engines: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let profile = Profile::given(profile)?;
    let workload = self::workload(workload).map_err(|error| errors::argument(py, error))?;
    let engines: Vec<EngineVersion> = engines.iter().map(|text| engine(py, text)).collect::<PyResult<_>>()?;
    let advice = interruptible::run(py, move |_| Advice::for_versions(&workload, &profile, &engines))?;
    json::object(py, &advice)
}

/// A preset workload as the text of its file, to be changed.
#[pyfunction]
pub fn workload_preset(py: Python<'_>, name: &str) -> PyResult<String> {
    let preset = workload::preset(name).map_err(|error| errors::argument(py, error))?;
    Ok(workload::print(&preset))
}
