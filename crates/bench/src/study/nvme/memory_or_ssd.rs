//! Memory or drives for the same money: section 1.

use flashgrain_model::{Access, Workload};
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::raw::Drives;
use super::{PAGE_BYTES, Study, paper};
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// Bytes of requests that take all of a drive's bandwidth.
const LARGE_BYTES: f64 = 65_536.0;

/// Prices, in dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// For everything.
    pub budget: f64,
    /// Of a server with [`Prices::MEMORY_BYTES`] of memory.
    pub server: f64,
    /// Of more memory, for each GB.
    pub memory_gb: f64,
    /// Of drives, for each TB.
    pub drive_tb: f64,
}

impl Prices {
    /// Memory of the server: the paper's.
    pub const MEMORY_BYTES: f64 = 512e9;

    /// Bytes of a drive that is bought, and most drives that a server takes: the paper's.
    const DRIVE_BYTES: f64 = 4e12;
    const DRIVES_MAX: f64 = 8.0;
}

impl Default for Prices {
    /// The paper's: 15,000 dollars, half of it for a server; 2 TB of memory for the other half; flash for 200
    /// dollars a TB.
    fn default() -> Self {
        Self { budget: 15_000.0, server: 7_500.0, memory_gb: 3.75, drive_tb: 200.0 }
    }
}

impl std::str::FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[budget, server, memory_gb, drive_tb])
                if [budget, server, memory_gb, drive_tb].iter().all(|price| *price > 0.0 && price.is_finite())
                    && server <= budget =>
            {
                Ok(Self { budget, server, memory_gb, drive_tb })
            }
            _ => Err("expected prices above zero, a server for no more than the budget: BUDGET,SERVER,MEMORY_GB,DRIVE_TB".into()),
        }
    }
}

/// A server for the money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Server {
    price: f64,
    memory_bytes: f64,
    drives: f64,
    drives_bytes: f64,
}

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    prices: Prices,
    with_memory: Server,
    with_drives: Server,
    /// Of one drive, measured.
    drive_bytes_per_s: f64,
    drive_reads_per_s: f64,
    /// A page that is read more often than once in this time is cheaper in memory.
    break_even_s: f64,
}

impl Prices {
    /// The budget for memory.
    fn with_memory(&self) -> Server {
        let more_bytes = (self.budget - self.server) / self.memory_gb * 1e9;
        Server {
            price: self.budget,
            memory_bytes: Self::MEMORY_BYTES + more_bytes,
            drives: 0.0,
            drives_bytes: 0.0,
        }
    }

    /// The budget for as many drives as it buys and the server takes.
    fn with_drives(&self) -> Server {
        let affordable = ((self.budget - self.server) / self.drive()).floor();
        let drives = affordable.min(Self::DRIVES_MAX);
        Server {
            price: self.server + drives * self.drive(),
            memory_bytes: Self::MEMORY_BYTES,
            drives,
            drives_bytes: drives * Self::DRIVE_BYTES,
        }
    }

    /// Of one drive.
    fn drive(&self) -> f64 {
        self.drive_tb * Self::DRIVE_BYTES * 1e-12
    }

    /// A drive's price for each read a second that it makes, over the price of a page's memory: Gray's rule
    /// of the five minutes.
    fn break_even_s(&self, reads_per_s: f64) -> f64 {
        self.drive() / reads_per_s / (self.memory_gb * 1e-9 * PAGE_BYTES)
    }

    /// Of memory over drives, for each byte.
    fn ratio(&self) -> f64 {
        self.memory_gb * 1e3 / self.drive_tb
    }
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    let options = study.options;
    study.note("reads of one drive");
    let drive = Drives::of(options, 1, StartState::Filled, study.interrupt)?;
    let read = |bytes: f64| {
        let reads = Workload::random(Access::Read, bytes, f64::from(options.in_flight_each()));
        drive.measure(options, reads, options.requests / 4, study.interrupt)
    };
    let (drive_reads_per_s, drive_bytes_per_s) =
        (read(PAGE_BYTES)?.requests_per_s, read(LARGE_BYTES)?.bytes_per_s);
    let prices = options.prices;
    Ok(Found {
        prices,
        with_memory: prices.with_memory(),
        with_drives: prices.with_drives(),
        drive_bytes_per_s,
        drive_reads_per_s,
        break_even_s: prices.break_even_s(drive_reads_per_s),
    })
}

/// Bytes in decimal multiples, as memory and drives are sold.
fn terabytes(bytes: f64) -> String {
    format!("{:.3} TB", bytes * 1e-12)
}

/// Bytes per second in decimal multiples.
fn gigabytes_per_s(bytes_per_s: f64) -> String {
    format!("{:.0} GB/s", bytes_per_s * 1e-9)
}

impl Found {
    /// The paper's numbers beside ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let bandwidth = found.map(|found| found.with_drives.drives * found.drive_bytes_per_s);
        let name = "bandwidth of the drives for 15,000 dollars";
        vec![Comparison::new("§1", name, Measure::Rate, paper::DRIVES_BYTES_PER_S, bandwidth)]
    }

    pub fn part(&self) -> Part {
        let Prices { budget, server, memory_gb, drive_tb } = self.prices;
        Part {
            id: "memory-or-ssd",
            title: "Memory or drives for the same money (section 1)".into(),
            text: vec![
                format!(
                    "{budget} dollars: {server} for a server with {}, the rest for memory at {memory_gb} dollars a GB or for drives at {drive_tb} dollars a TB (--prices), at most {} of {}.",
                    terabytes(Prices::MEMORY_BYTES),
                    Prices::DRIVES_MAX,
                    terabytes(Prices::DRIVE_BYTES)
                ),
                format!(
                    "A byte of memory costs {:.1} times as much as one of flash (in the paper about {}).",
                    self.prices.ratio(),
                    paper::PRICE_RATIO
                ),
                format!(
                    "A page of 4 KiB that is read less often than every {} is cheaper on a drive that makes {} reads a second (Gray's rule; not in the paper).",
                    unit::seconds(self.break_even_s),
                    unit::count(self.drive_reads_per_s.round())
                ),
            ],
            tables: vec![("In brackets the paper's".into(), self.table())],
            figures: Vec::new(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("server", Kind::Label),
            ("dollars", Kind::Number),
            ("memory", Kind::Number),
            ("drives", Kind::Number),
            ("bandwidth of memory", Kind::Number),
            ("of drives", Kind::Number),
            ("random reads/s of drives", Kind::Number),
        ]);
        let in_brackets = |ours: String, papers: String| format!("{ours} ({papers})");
        let memory = |server: &Server, papers| in_brackets(terabytes(server.memory_bytes), terabytes(papers));
        let [most, least] = paper::MEMORY_BYTES;
        let price = |server: &Server| format!("{:.0}", server.price);
        let of_paper = format!("({})", gigabytes_per_s(paper::MEMORY_BYTES_PER_S));
        let none = || "–".to_owned();
        let with_memory = &self.with_memory;
        table.push(
            [
                "with memory".into(),
                price(with_memory),
                memory(with_memory, most),
                none(),
                of_paper.clone(),
                none(),
                none(),
            ]
            .map(Cell::from),
        );
        let with_drives = &self.with_drives;
        table.push(
            [
                "with drives".into(),
                price(with_drives),
                memory(with_drives, least),
                in_brackets(terabytes(with_drives.drives_bytes), terabytes(paper::DRIVES_BYTES)),
                of_paper,
                in_brackets(
                    gigabytes_per_s(with_drives.drives * self.drive_bytes_per_s),
                    gigabytes_per_s(paper::DRIVES_BYTES_PER_S),
                ),
                in_brackets(
                    unit::count((with_drives.drives * self.drive_reads_per_s).round()),
                    unit::count(paper::ARRAY_READS_PER_S),
                ),
            ]
            .map(Cell::from),
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_prices_buy_the_papers_servers() {
        let prices = Prices::default();
        let (memory, drives) = (prices.with_memory(), prices.with_drives());
        assert!((memory.memory_bytes / paper::MEMORY_BYTES[0] - 1.0).abs() < 0.01, "{memory:?}");
        assert!((drives.drives_bytes, drives.drives) == (paper::DRIVES_BYTES, 8.0), "{drives:?}");
        assert!(drives.price <= prices.budget);
        // A thousand dollars for drives buy one.
        let few = Prices { budget: 8_500.0, ..prices };
        assert_eq!(few.with_drives().drives, 1.0);
    }

    #[test]
    fn prices_are_typed() {
        assert_eq!("15000,7500,3.75,200".parse(), Ok(Prices::default()));
        for nonsense in ["", "1,2,3", "1,2,3,4", "10,5,0,1", "10,5,-1,1", "10,5,x,1"] {
            assert!(nonsense.parse::<Prices>().is_err(), "{nonsense}");
        }
    }
}
