//! Dictionaries' data structures, and what their operations cost on a drive.

use flashgrain_cost::IoModel;
use flashgrain_cost::dictionary::{
    BEpsilonTree, BTree, Design as Structure, Operation, OutOfPlaceBTree, PdamBTree, Records, Situation,
    price,
};
use flashgrain_cost::lsm::{Layout, LsmTree};
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::json;

use crate::affine::AffineCosts;
use crate::models::Models;
use crate::numbers::Float;
use crate::{errors, json as json_objects};

/// A data structure with its parameters: a B-tree, a Bε-tree or an LSM-tree.
///
/// Made by Design.btree and the other class methods; `cost` prices an operation on a drive.
#[pyclass(frozen, module = "flashgrain")]
pub struct Design {
    structure: Box<dyn Structure + Send + Sync>,
}

/// A parameter of a structure is a number of at least `least`.
fn checked(py: Python<'_>, name: &str, value: Float, least: f64) -> PyResult<f64> {
    let value = value.0;
    match value.is_finite() && value >= least {
        true => Ok(value),
        false => Err(errors::argument(py, format!("{name} is {value}: use a number from {least} on"))),
    }
}

/// The smallest node: a record and a pointer need some bytes.
const NODE_BYTES_MIN: f64 = 64.0;

impl Design {
    fn of(structure: impl Structure + Send + Sync + 'static) -> Self {
        Self { structure: Box::new(structure) }
    }
}

fn operation(py: Python<'_>, name: &str, range_bytes: Option<Float>) -> PyResult<Operation> {
    Ok(match name {
        "point_hit" => Operation::PointHit,
        "point_miss" => Operation::PointMiss,
        "insert" => Operation::Insert,
        "update" => Operation::Update,
        "delete" => Operation::Delete,
        "range" => {
            let bytes = range_bytes.ok_or_else(|| errors::argument(py, "a range needs range_bytes"))?;
            Operation::Range { bytes: checked(py, "range_bytes", bytes, 1.0)? }
        }
        _ => {
            let known = "point_hit, point_miss, insert, update, delete or range";
            return Err(errors::argument(py, format!("operation is {name:?}: use {known}")));
        }
    })
}

/// Records as (count, key bytes, value bytes).
fn situation(
    py: Python<'_>,
    records: (Float, Float, Float),
    cache_bytes: Float,
    clients: Option<Float>,
) -> PyResult<Situation> {
    let (count, key_bytes, value_bytes) = records;
    let records = Records {
        count: checked(py, "the number of records", count, 1.0)?,
        key_bytes: checked(py, "key bytes", key_bytes, 1.0)?,
        value_bytes: checked(py, "value bytes", value_bytes, 0.0)?,
    };
    let cache_bytes = checked(py, "cache_bytes", cache_bytes, 0.0)?;
    Ok(Situation::new(records, cache_bytes, checked(py, "clients", clients.unwrap_or(Float(1.0)), 1.0)?))
}

#[pymethods]
impl Design {
    /// A B-tree that has grown by random inserts.
    #[classmethod]
    fn btree(class: &Bound<'_, PyType>, node_bytes: Float) -> PyResult<Self> {
        Ok(Self::of(BTree::new(checked(class.py(), "node_bytes", node_bytes, NODE_BYTES_MIN)?)))
    }

    /// A B-tree whose nodes move to a new place with each write, gathered into write units.
    #[classmethod]
    #[pyo3(signature = (node_bytes, *, write_unit_bytes))]
    fn out_of_place_btree(
        class: &Bound<'_, PyType>,
        node_bytes: Float,
        write_unit_bytes: Float,
    ) -> PyResult<Self> {
        let py = class.py();
        let node_bytes = checked(py, "node_bytes", node_bytes, NODE_BYTES_MIN)?;
        Ok(Self::of(OutOfPlaceBTree::new(
            node_bytes,
            checked(py, "write_unit_bytes", write_unit_bytes, node_bytes)?,
        )))
    }

    /// The B-tree of the PDAM: nodes of `parallelism` blocks.
    #[classmethod]
    #[pyo3(signature = (block_bytes, *, parallelism))]
    fn pdam_btree(class: &Bound<'_, PyType>, block_bytes: Float, parallelism: Float) -> PyResult<Self> {
        let py = class.py();
        let block_bytes = checked(py, "block_bytes", block_bytes, NODE_BYTES_MIN)?;
        Ok(Self::of(PdamBTree::new(block_bytes, checked(py, "parallelism", parallelism, 1.0)?)))
    }

    /// A Bε-tree: with nodes in parts (Theorem 9 of the dictionaries paper), or whole ones (Lemma 8).
    #[classmethod]
    #[pyo3(signature = (node_bytes, *, fanout, whole_nodes = false))]
    fn b_epsilon_tree(
        class: &Bound<'_, PyType>,
        node_bytes: Float,
        fanout: Float,
        whole_nodes: bool,
    ) -> PyResult<Self> {
        let py = class.py();
        let node_bytes = checked(py, "node_bytes", node_bytes, NODE_BYTES_MIN)?;
        let fanout = checked(py, "fanout", fanout, 2.0)?;
        Ok(Self::of(match whole_nodes {
            true => BEpsilonTree::naive(node_bytes, fanout),
            false => BEpsilonTree::optimised(node_bytes, fanout),
        }))
    }

    /// An LSM-tree; everything that is not given is as in RocksDB.
    #[classmethod]
    #[pyo3(signature = (
        layout = "leveled", *, fanout = None, file_bytes = None, level_one_files = None, block_bytes = None,
        filter_bits_per_key = None, compaction_threads = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each parameter of the structure")]
    fn lsm_tree(
        class: &Bound<'_, PyType>,
        layout: &str,
        fanout: Option<Float>,
        file_bytes: Option<Float>,
        level_one_files: Option<Float>,
        block_bytes: Option<Float>,
        filter_bits_per_key: Option<Float>,
        compaction_threads: Option<Float>,
    ) -> PyResult<Self> {
        let py = class.py();
        let layout = match layout {
            "leveled" => Layout::Leveled,
            "tiered" => Layout::Tiered,
            "lazy-leveled" => Layout::LazyLeveled,
            "single-level" => Layout::SingleLevel,
            _ => {
                let known = "leveled, tiered, lazy-leveled or single-level";
                return Err(errors::argument(py, format!("layout is {layout:?}: use {known}")));
            }
        };
        let mut tree = LsmTree::new(layout);
        let given = [
            ("fanout", fanout, &mut tree.fanout, 2.0),
            ("file_bytes", file_bytes, &mut tree.file_bytes, 4096.0),
            ("level_one_files", level_one_files, &mut tree.level_one_files, 1.0),
            ("block_bytes", block_bytes, &mut tree.block_bytes, NODE_BYTES_MIN),
            ("filter_bits_per_key", filter_bits_per_key, &mut tree.filter_bits_per_key, 0.0),
            ("compaction_threads", compaction_threads, &mut tree.compaction_threads, 1.0),
        ];
        for (name, value, field, least) in given {
            if let Some(value) = value {
                *field = checked(py, name, value, least)?;
            }
        }
        Ok(Self::of(tree))
    }

    /// Name with the parameters that matter.
    #[getter]
    fn name(&self) -> String {
        self.structure.name()
    }

    /// The requests of an operation, and its amplifications.
    #[pyo3(signature = (operation, *, records, cache_bytes, clients = None, range_bytes = None))]
    fn demand<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        records: (Float, Float, Float),
        cache_bytes: Float,
        clients: Option<Float>,
        range_bytes: Option<Float>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let situation = situation(py, records, cache_bytes, clients)?;
        let demand = self.structure.demand(self::operation(py, operation, range_bytes)?, &situation);
        json_objects::object(
            py,
            &json!({
                "transfers": demand.transfers,
                "read_amplification": demand.read_amplification(),
                "write_amplification": demand.write_amplification(),
                "space_amplification": self.structure.space_amplification(&situation),
            }),
        )
    }

    /// The cost of an operation on a drive: one of fitted `models` by its name, or affine costs. None if the
    /// drive has no costs for a kind of request.
    #[pyo3(signature = (operation, *, drive, model, records, cache_bytes, clients = None, range_bytes = None))]
    #[expect(clippy::too_many_arguments, reason = "the operation, its surroundings and the drive")]
    fn price<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        drive: &Bound<'py, PyAny>,
        model: &str,
        records: (Float, Float, Float),
        cache_bytes: Float,
        clients: Option<Float>,
        range_bytes: Option<Float>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let situation = situation(py, records, cache_bytes, clients)?;
        let demand = self.structure.demand(self::operation(py, operation, range_bytes)?, &situation);
        let priced = if let Ok(affine) = drive.cast::<AffineCosts>() {
            price(&demand, &affine.get().costs as &dyn IoModel, &situation)
        } else {
            let models = drive.cast::<Models>()?.get();
            price(&demand, models.get(py, model)?, &situation)
        };
        priced.map(|cost| json_objects::object(py, &cost)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<flashgrain.Design {}>", self.structure.name())
    }
}
