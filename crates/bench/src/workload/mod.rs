//! Workloads of clients: mixes of operations on one table, named as in the papers and tools that they come
//! from.

mod benchmark;
mod client;
mod mix;

use std::time::Duration;

pub use benchmark::OnRecords;

pub use mix::{Mix, Operation};

use crate::drive::Burst;
use crate::keys::Distribution;

/// The table that is measured.
pub const TABLES: &[&str] = &["records"];

/// Some of the clients, and their operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Role {
    /// The role's parts of the clients; the parts of all roles are added up.
    pub parts: u32,
    /// Their operations.
    pub mix: Mix,
    /// They work in bursts only, as in the study of RocksDB on 3D XPoint (section 4).
    pub burst: Option<Burst>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name on the command line and in results.
    pub name: String,
    /// The clients' roles.
    pub roles: Vec<Role>,
    /// Distribution of the records that are accessed.
    pub distribution: Distribution,
    /// There are no records at the beginning.
    pub is_empty: bool,
}

/// Nexts of a seek, as in `db_bench --seek_nexts` of the usual advice.
const SEEK_RECORDS: u32 = 10;

/// Longest scan of YCSB's workload E.
const YCSB_SCAN_RECORDS: u32 = 100;

/// Records of a long scan during writes.
const LONG_SCAN_RECORDS: u32 = 100_000;

/// Records of a short scan.
const SHORT_SCAN_RECORDS: u32 = 100;

/// Names of all workloads, with their descriptions.
pub const NAMES: [(&str, &str); 21] = [
    ("lookup", "random point look-ups"),
    ("lookup-missing", "random look-ups of keys that are not there, among those that are"),
    ("lookup-many", "look-ups by batches of 32, with the engine's own call for that where it has one"),
    ("fillseq", "inserts in key order into an empty table"),
    ("fillrandom", "inserts in random order into an empty table"),
    ("insert", "inserts at random places among the records that are there"),
    ("overwrite", "random updates, without looking"),
    ("readrandom", "as lookup, by db_bench's name"),
    ("seekrandom", "seeks to random places, with ten records each"),
    ("scan-short", "scans of 100 records"),
    ("scan-long", "scans of 100,000 records"),
    ("readrandomwriterandom", "nine look-ups for each update"),
    ("ycsb-a", "half look-ups, half updates, Zipf"),
    ("ycsb-b", "95 % look-ups, 5 % updates, Zipf"),
    ("ycsb-c", "look-ups, Zipf"),
    ("ycsb-d", "95 % look-ups of the latest, 5 % inserts"),
    ("ycsb-e", "95 % scans of 1 to 100 records, 5 % inserts, Zipf"),
    ("ycsb-f", "half look-ups, half read-modify-writes, Zipf"),
    ("scan-while-writing", "a quarter of the clients scans 100,000 records at a time, the others update"),
    ("burst", "look-ups, and every 10 s for 2 s as many clients that update"),
    ("write-bursts", "half look-ups, half updates, and in each minute for 25 s as many clients that update"),
];

impl Workload {
    /// All clients draw from this mix.
    pub fn of(mix: Mix, distribution: Distribution) -> Self {
        let roles = vec![Role::always(1, mix)];
        Self { name: "mix".to_owned(), roles, distribution, is_empty: false }
    }

    /// The one of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let zipf = Distribution::Zipf { theta: 0.99 };
        let latest = Distribution::Latest { theta: 0.99 };
        let uniform = Distribution::Uniform;
        let read = Mix { read: 1.0, ..Mix::default() };
        let update = Mix { update: 1.0, ..Mix::default() };
        let insert = Mix { insert: 1.0, ..Mix::default() };
        let scans = |records: (u32, u32)| Mix { scan: 1.0, scan_records: records, ..Mix::default() };
        let ycsb = |mix| (vec![Role::always(1, mix)], zipf);
        let plain = |mix| (vec![Role::always(1, mix)], uniform);
        let (roles, distribution) = match name {
            "lookup" | "readrandom" => plain(read),
            "lookup-missing" => plain(Mix { miss: 1.0, ..Mix::default() }),
            "lookup-many" => plain(Mix { batch: 32, ..read }),
            "fillseq" => plain(Mix { in_order: true, ..insert }),
            "fillrandom" | "insert" => plain(insert),
            "overwrite" => plain(update),
            "seekrandom" => plain(scans((SEEK_RECORDS, SEEK_RECORDS))),
            "scan-short" => plain(scans((SHORT_SCAN_RECORDS, SHORT_SCAN_RECORDS))),
            "scan-long" => plain(scans((LONG_SCAN_RECORDS, LONG_SCAN_RECORDS))),
            "readrandomwriterandom" => plain(Mix { read: 0.9, update: 0.1, ..Mix::default() }),
            "ycsb-a" => ycsb(Mix { read: 0.5, update: 0.5, ..Mix::default() }),
            "ycsb-b" => ycsb(Mix { read: 0.95, update: 0.05, ..Mix::default() }),
            "ycsb-c" => ycsb(read),
            "ycsb-d" => (vec![Role::always(1, Mix { read: 0.95, insert: 0.05, ..Mix::default() })], latest),
            "ycsb-e" => ycsb(Mix { insert: 0.05, scan: 0.95, ..scans((1, YCSB_SCAN_RECORDS)) }),
            "ycsb-f" => ycsb(Mix { read: 0.5, modify: 0.5, ..Mix::default() }),
            "burst" => {
                let burst = Burst { period: Duration::from_secs(10), length: Duration::from_secs(2) };
                let writers = Role { burst: Some(burst), ..Role::always(1, update) };
                (vec![Role::always(1, read), writers], uniform)
            }
            "write-bursts" => {
                let burst = Burst { period: Duration::from_secs(60), length: Duration::from_secs(25) };
                let writers = Role { burst: Some(burst), ..Role::always(1, update) };
                let both = Mix { read: 0.5, update: 0.5, ..Mix::default() };
                (vec![Role::always(1, both), writers], uniform)
            }
            "scan-while-writing" => {
                let scanners = Role::always(1, scans((LONG_SCAN_RECORDS, LONG_SCAN_RECORDS)));
                (vec![scanners, Role::always(3, update)], uniform)
            }
            _ => return None,
        };
        let is_empty = name.starts_with("fill");
        Some(Self { name: name.to_owned(), roles, distribution, is_empty })
    }

    /// Whether it only reads.
    pub fn leaves_as_found(&self) -> bool {
        let writes = |mix: &Mix| mix.update + mix.insert + mix.modify > 0.0;
        !self.roles.iter().any(|role| writes(&role.mix))
    }

    /// The role of the `client`-th of `clients`.
    pub fn role(&self, client: usize, clients: usize) -> &Role {
        let parts: u64 = self.roles.iter().map(|role| u64::from(role.parts)).sum();
        let place = client as u64 * parts / clients.max(1) as u64;
        let mut end = 0;
        let found = self.roles.iter().find(|role| {
            end += u64::from(role.parts);
            place < end
        });
        found.unwrap_or(&self.roles[0])
    }
}

impl Role {
    fn always(parts: u32, mix: Mix) -> Self {
        Self { parts, mix, burst: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_workload_whose_shares_add_up() {
        for (name, _) in NAMES {
            let workload = Workload::named(name).unwrap();
            for Role { mix, .. } in &workload.roles {
                let sum = mix.read + mix.miss + mix.update + mix.insert + mix.scan + mix.modify;
                assert!((sum - 1.0).abs() < 1e-9, "{name}: {sum}");
            }
        }
        assert_eq!(Workload::named("no such one"), None);
    }

    #[test]
    fn clients_are_divided_among_the_roles() {
        let workload = Workload::named("scan-while-writing").unwrap();
        let scanners = (0..64).filter(|client| workload.role(*client, 64).mix.scan > 0.0).count();
        assert_eq!(scanners, 16);
    }
}
