//! The affine model's prediction for a tree as it is built, with the drive's own costs.

use flashgrain::{Bytes, Decision, Setting};
use flashgrain_cost::dictionary::{
    Demand, Design, Operation, OutOfPlaceBEpsilonTree, OutOfPlaceBTree, Processor, Situation, price,
};
use flashgrain_model::Access;
use serde::Serialize;

use super::drive_costs::DriveCosts;
use super::state::State;
use super::{Options, SEGMENT_BYTES, Tree, WORKERS};
use crate::study::setup::unit_bytes;

/// The model's prediction for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Predicted {
    /// Its time, in microseconds; `None` if the drive's costs have no price for it.
    pub us: Option<f64>,
    /// Requests to read.
    pub reads: f64,
    /// Bytes that they read.
    pub read_bytes: f64,
    /// Bytes that are written for it.
    pub written_bytes: f64,
}

/// A tree as it is built on a drive, and the predictions for its operations.
pub(super) struct Prediction<'a> {
    pub options: &'a Options,
    pub costs: DriveCosts,
}

impl Prediction<'_> {
    /// Random look-ups in a B+-tree.
    pub fn b_plus_look_up(&self, node_bytes: u64, state: State) -> Predicted {
        self.look_up(&self.b_plus(node_bytes, state), state)
    }

    /// Scans of this number of records in a B+-tree. A loaded tree has its leaves in order, a grown one has
    /// them anywhere.
    pub fn b_plus_scan(&self, node_bytes: u64, state: State, records: u32) -> Predicted {
        let tree = OutOfPlaceBTree {
            leaf_step_random_share: match state {
                State::Loaded => 0.0,
                State::Grown => 1.0,
            },
            ..self.b_plus(node_bytes, state)
        };
        let situation = self.situation(state);
        let bytes = f64::from(records) * situation.records.record_bytes();
        self.predicted(&tree.demand(Operation::Range { bytes }, &situation), &situation)
    }

    /// Random look-ups in a tree that the store has decided on so.
    pub fn of_look_up(&self, tree: Tree, node_bytes: u64, layout: &[Decision]) -> Predicted {
        self.look_up(&*self.built(tree, node_bytes, layout), State::Grown)
    }

    /// Random inserts into it.
    pub fn of_insert(&self, tree: Tree, node_bytes: u64, layout: &[Decision]) -> Predicted {
        let situation = Situation {
            changes_per_checkpoint: Some(self.options.inserts as f64),
            processor: self.processor(self.options.costs.write_ns),
            ..self.situation(State::Grown)
        };
        let demand = self.built(tree, node_bytes, layout).demand(Operation::Insert, &situation);
        self.predicted(&demand, &situation)
    }

    fn look_up(&self, tree: &dyn Design, state: State) -> Predicted {
        let situation = self.situation(state);
        self.predicted(&tree.demand(Operation::PointHit, &situation), &situation)
    }

    fn predicted(&self, demand: &Demand, situation: &Situation) -> Predicted {
        Predicted {
            us: price(demand, &self.costs.model(), situation).map(|cost| cost.latency_seconds * 1e6),
            reads: demand.requests(Access::Read),
            read_bytes: demand.bytes(Access::Read),
            written_bytes: demand.bytes(Access::Write),
        }
    }

    fn built(&self, tree: Tree, node_bytes: u64, layout: &[Decision]) -> Box<dyn Design> {
        match tree {
            Tree::BPlus | Tree::BerkeleyDb => Box::new(self.b_plus(node_bytes, State::Grown)),
            Tree::BEpsilon => Box::new(self.b_epsilon(node_bytes, layout)),
        }
    }

    fn b_plus(&self, node_bytes: u64, state: State) -> OutOfPlaceBTree {
        OutOfPlaceBTree {
            fill: self.fill(state),
            utilisation: self.utilisation(),
            ..OutOfPlaceBTree::new(node_bytes as f64, write_unit_bytes())
        }
    }

    fn b_epsilon(&self, node_bytes: u64, layout: &[Decision]) -> OutOfPlaceBEpsilonTree {
        let fanout = f64::from(self.options.fanout);
        let found = layout.iter().find_map(|decision| Setting::basement(&decision.setting));
        let basement_bytes = found.map_or(node_bytes as f64 / fanout, |Bytes(bytes)| bytes as f64);
        OutOfPlaceBEpsilonTree {
            fill: self.fill(State::Grown),
            utilisation: self.utilisation(),
            ..OutOfPlaceBEpsilonTree::new(node_bytes as f64, fanout, basement_bytes, write_unit_bytes())
        }
    }

    fn records(&self, state: State) -> crate::records::Records {
        match state {
            State::Loaded => self.options.records(),
            State::Grown => self.options.grown(),
        }
    }

    /// Full leaves split into halves as soon as they grow: on average leaves are half as full as the tree has
    /// records for each that it had, until they split again.
    fn fill(&self, state: State) -> f64 {
        let growth = self.records(state).count as f64 / self.options.records as f64;
        match state {
            State::Loaded => 1.0,
            State::Grown if growth < 2.0 => growth / 2.0,
            State::Grown => std::f64::consts::LN_2,
        }
    }

    /// Share of the drive that live pages take.
    fn utilisation(&self) -> f64 {
        self.options.grown().bytes() as f64 / self.options.drive_bytes(State::Grown) as f64
    }

    fn situation(&self, state: State) -> Situation {
        Situation {
            processor: self.processor(self.options.costs.look_up_ns),
            ..Situation::new(self.records(state).into(), self.options.cache_bytes() as f64, 1.0)
        }
    }

    fn processor(&self, nanos: u64) -> Processor {
        Processor { cores: f64::from(WORKERS), seconds_per_operation: nanos as f64 * 1e-9 }
    }
}

fn write_unit_bytes() -> f64 {
    f64::from(unit_bytes(SEGMENT_BYTES))
}
