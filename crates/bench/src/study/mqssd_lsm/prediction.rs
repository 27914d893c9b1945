//! The model's prediction for each layout: equations 9 to 12 with the costs of the drive (Figure 5).

use flashgrain_cost::dictionary::{Demand, Design, Operation, Processor, Records, Situation, price};
use flashgrain_cost::lsm::{LsmTree, Metadata, load_seconds};
use flashgrain_model::{Access, Mqssd};
use serde::Serialize;

use super::{BLOCK_BYTES, Found, Layout, Options, SCAN_RECORDS, WORKERS, paper};

/// Blocks that a scan of the store reads of a run one by one, and its largest request.
const BLOCKS_ALONE: f64 = 16.0;
const READ_AHEAD_BYTES: f64 = 65_536.0;

/// Memtables that a store which is being filled keeps.
const MEMTABLES: f64 = 2.0;

/// Times of a layout by the model, by clients or jobs, in seconds; without those that the drive has no costs
/// for.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Predicted {
    /// Of a query, of all clients together: the inverse of their rate.
    pub query_s: Vec<(u32, f64)>,
    /// Of a scan.
    pub scan_s: Vec<(u32, f64)>,
    /// From the first insert of one client until no merge is due.
    pub fill_s: Vec<(u32, f64)>,
    /// Of a query of the paper's store, had it this drive: [`paper::QUERY_BESIDES_READS_S`] on the paper's
    /// processor, and a block of each run, with fence pointers in memory and no other blocks.
    pub papers_query_s: Vec<(u32, f64)>,
}

/// A drive, and the trees on it.
pub(super) struct Prediction<'a> {
    pub options: &'a Options,
    pub drive: &'a Mqssd,
}

impl Prediction<'_> {
    /// At the concurrencies that were measured.
    pub fn of(&self, found: &Found) -> Predicted {
        let layout = found.layout;
        let clients = |of: &dyn Fn(u32) -> Option<f64>| {
            let concurrency = self.options.concurrency.iter();
            concurrency.filter_map(|clients| Some((*clients, of(*clients)?))).collect()
        };
        let records = self.options.records().into();
        let range = Operation::Range { bytes: f64::from(SCAN_RECORDS) * Records::record_bytes(&records) };
        let jobs = found.compactions.iter().map(|fill| fill.jobs);
        Predicted {
            query_s: clients(&|clients| self.read_s(layout, clients, Operation::PointHit)),
            scan_s: clients(&|clients| self.read_s(layout, clients, range)),
            fill_s: jobs.filter_map(|jobs| Some((jobs, self.fill_s(layout, jobs)?))).collect(),
            papers_query_s: clients(&|clients| self.papers_query_s(layout, clients)),
        }
    }

    fn read_s(&self, layout: Layout, clients: u32, operation: Operation) -> Option<f64> {
        let situation = self.situation(self.options.records(), clients);
        let tree = self.kept(layout.settled_tree(self.options.table_bytes, &situation));
        let demand = tree.demand(operation, &situation);
        let costs = self.options.costs;
        // A look-up's time in memory, and that of each request and of the wait for it.
        let of_requests = (costs.wait_ns + costs.request_ns) as f64 * demand.requests(Access::Read);
        let processor = processor(WORKERS, costs.look_up_ns as f64 + of_requests);
        self.seconds(&demand, Situation { processor, ..situation })
    }

    fn fill_s(&self, layout: Layout, jobs: u32) -> Option<f64> {
        let tree = self.kept(layout.filled_tree(self.options.table_bytes, jobs));
        let situation = Situation {
            processor: processor(WORKERS, self.options.costs.write_ns as f64),
            ..self.situation(self.options.fill_records(), 1)
        };
        load_seconds(&LsmTree { memtables: MEMTABLES, ..tree }, self.drive, &situation)
    }

    fn papers_query_s(&self, layout: Layout, clients: u32) -> Option<f64> {
        let records = Records { count: paper::RECORDS, ..self.options.records().into() };
        let situation = Situation {
            processor: processor(paper::PROCESSORS, paper::QUERY_BESIDES_READS_S * 1e9),
            ..Situation::new(records, 0.0, clients.into())
        };
        let tree = LsmTree {
            block_bytes: paper::BLOCK_READ_BYTES,
            metadata: Metadata::Pinned,
            ..layout.settled_tree(paper::TABLE_BYTES, &situation)
        };
        self.seconds(&tree.demand(Operation::PointHit, &situation), situation)
    }

    fn seconds(&self, demand: &Demand, situation: Situation) -> Option<f64> {
        price(demand, self.drive, &situation).map(|cost| cost.operations_per_second.recip())
    }

    /// As the store keeps it.
    fn kept(&self, tree: LsmTree) -> LsmTree {
        LsmTree {
            block_bytes: BLOCK_BYTES.into(),
            filter_bits_per_key: self.options.filter_bits,
            metadata: self.options.metadata,
            blocks_alone: BLOCKS_ALONE,
            read_ahead_bytes: READ_AHEAD_BYTES,
            ..tree
        }
    }

    fn situation(&self, records: crate::records::Records, clients: u32) -> Situation {
        Situation::new(records.into(), self.options.cache_bytes(records) as f64, clients.into())
    }
}

fn processor(cores: u32, nanos: f64) -> Processor {
    Processor { cores: cores.into(), seconds_per_operation: nanos * 1e-9 }
}
