//! Processor time that a simulated store's operations take.

use std::time::Duration;

use flashgrain::{CpuCosts, Simulated};
use serde::Serialize;

/// Processor time of a store's work, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorCosts {
    /// A look-up that finds everything in memory, the benchmark's own share included.
    pub look_up_ns: u64,
    /// The same for an insert or update.
    pub write_ns: u64,
    /// Added for each wait: for the page table, a frame, eviction, and going away and coming back.
    pub wait_ns: u64,
    /// A request to a device through the kernel, submission and completion.
    pub request_ns: u64,
    /// A look-up's search of a table of an LSM-tree, as [`CpuCosts::search_ns`].
    pub search_ns: u64,
    /// A KiB that a flush or a merge of an LSM-tree reads, as [`CpuCosts::merged_kib_ns`].
    pub merged_kib_ns: u64,
    /// A node of a memtable that a write is compared with, as [`CpuCosts::compared_ns`].
    pub compared_ns: u64,
}

/// Times of one operation that can be given: with none, virtual time would not pass.
pub(crate) const OPERATION_NS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;

impl std::str::FromStr for ProcessorCosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HELP: &str = "expected times in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST, or with SEARCH,KIB or SEARCH,KIB,NODE after these";
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let Ok([look_up_ns, write_ns, wait_ns, request_ns, of_lsm @ ..]) = numbers.as_deref() else {
            return Err(HELP.into());
        };
        let [search_ns, merged_kib_ns, compared_ns] = match *of_lsm {
            [] => [0; 3],
            [search, merged_kib] => [search, merged_kib, 0],
            [search, merged_kib, compared] => [search, merged_kib, compared],
            _ => return Err(HELP.into()),
        };
        let (look_up_ns, write_ns, wait_ns, request_ns) = (*look_up_ns, *write_ns, *wait_ns, *request_ns);
        let others = [wait_ns, request_ns, search_ns, merged_kib_ns, compared_ns];
        let is_known = |ns: &u64| OPERATION_NS.contains(ns);
        if ![look_up_ns, write_ns].iter().all(is_known) || !others.iter().all(|ns| *ns == 0 || is_known(ns)) {
            return Err(
                "LOOKUP and WRITE take 1 ns at least, and each 1000000000 ns, a second, at most".into()
            );
        }
        Ok(Self { look_up_ns, write_ns, wait_ns, request_ns, search_ns, merged_kib_ns, compared_ns })
    }
}

impl std::fmt::Display for ProcessorCosts {
    /// Writes it as it is typed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { look_up_ns, write_ns, wait_ns, request_ns, search_ns, merged_kib_ns, compared_ns } = self;
        write!(formatter, "{look_up_ns},{write_ns},{wait_ns},{request_ns}")?;
        match (search_ns, merged_kib_ns, compared_ns) {
            (0, 0, 0) => Ok(()),
            (_, _, 0) => write!(formatter, ",{search_ns},{merged_kib_ns}"),
            _ => write!(formatter, ",{search_ns},{merged_kib_ns},{compared_ns}"),
        }
    }
}

impl ProcessorCosts {
    /// Processors that take no time for anything.
    pub const NONE: Self = Self {
        look_up_ns: 0,
        write_ns: 0,
        wait_ns: 0,
        request_ns: 0,
        search_ns: 0,
        merged_kib_ns: 0,
        compared_ns: 0,
    };

    /// The costs in words.
    pub fn describe(&self) -> String {
        let Self { look_up_ns, write_ns, wait_ns, request_ns, search_ns, merged_kib_ns, compared_ns } = self;
        let of_tables = match (search_ns, merged_kib_ns) {
            (0, 0) => String::new(),
            _ => format!(
                ", each table that a look-up searches {search_ns} ns, each KiB merged {merged_kib_ns} ns"
            ),
        };
        let of_memtables = match compared_ns {
            0 => String::new(),
            _ => format!(", each node of a memtable that a write is compared with {compared_ns} ns"),
        };
        format!(
            "a look-up in memory takes {look_up_ns} ns of a processor, a write {write_ns} ns, each wait {wait_ns} ns \
             more, each request {request_ns} ns{of_tables}{of_memtables} (again: --cpu-costs {self})"
        )
    }

    /// The part that the store's workers spend by themselves.
    pub fn of_workers(&self) -> CpuCosts {
        CpuCosts {
            task_ns: self.wait_ns,
            request_ns: self.request_ns,
            search_ns: self.search_ns,
            merged_kib_ns: self.merged_kib_ns,
            compared_ns: self.compared_ns,
        }
    }

    /// Spends a look-up's time in the calling task, after the last of its waits.
    pub fn spend_look_up(&self) {
        Simulated::spend(Duration::from_nanos(self.look_up_ns));
    }

    /// Spends the time of `count` writes.
    pub fn spend_writes(&self, count: u64) {
        Simulated::spend(Duration::from_nanos(self.write_ns * count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_typed_as_they_are_shown() {
        for typed in [
            "600,2000,500,1600",
            "600,2000,500,1600,4000,0",
            "600,2000,500,1600,0,900",
            "600,2000,500,1600,0,0,150",
        ] {
            let costs: ProcessorCosts = typed.parse().unwrap();
            assert_eq!((costs.wait_ns, costs.to_string().as_str()), (500, typed));
        }
        for nonsense in [
            "",
            "1,2,3",
            "1,2,3,4,5",
            "1,2,3,4,5,6,7,8",
            "1,2,3,x",
            "-1,2,3,4",
            "0,1,1,1",
            "1,0,1,1",
            "1,1,1000000001,1",
        ] {
            assert!(nonsense.parse::<ProcessorCosts>().is_err(), "{nonsense}");
        }
    }
}
