//! Memory or drives for the same money, as sentences and a table.

use flashgrain_cost::budget::{Budget, PAGE_BYTES, Prices, Server};

use crate::table::{Cell, Kind, Table};
use crate::terminal::{Printer, Style};
use crate::unit;

/// For a terminal.
pub fn terminal(budget: &Budget, style: impl Into<Style>) -> String {
    let mut out = Printer::new(style.into());
    out.title("Memory or drives for the same money");
    sentences(budget).iter().for_each(|sentence| out.prose(sentence));
    out.table(&table(budget, &[]));
    out.into_text()
}

/// The prices, and their consequences.
pub fn sentences(budget: &Budget) -> Vec<String> {
    let Prices { budget: all, server, memory_gb, drive_tb } = budget.prices;
    vec![
        format!(
            "{all} dollars: {server} for a server with {}, the rest for memory at {memory_gb} dollars a GB or for drives at {drive_tb} dollars a TB (--prices), at most {} of {}.",
            terabytes(Prices::MEMORY_BYTES),
            Prices::DRIVES_MAX,
            terabytes(Prices::DRIVE_BYTES)
        ),
        format!("A byte of memory costs {:.1} times as much as one of flash.", budget.prices.ratio()),
        format!(
            "A page of {} that is read less often than every {} is cheaper on a drive that makes {} reads a second (Gray's rule).",
            unit::bytes(PAGE_BYTES),
            unit::seconds(budget.break_even_s),
            unit::count(budget.drive.reads_per_s.round())
        ),
    ]
}

/// The servers, and others with their names after them.
pub fn table(budget: &Budget, others: &[(&str, Server)]) -> Table {
    let mut table = Table::new(&[
        ("server", Kind::Label),
        ("dollars", Kind::Number),
        ("memory", Kind::Number),
        ("drives", Kind::Number),
        ("bandwidth of drives", Kind::Number),
        ("random reads/s of drives", Kind::Number),
    ]);
    let servers = [("with memory", budget.with_memory), ("with drives", budget.with_drives)];
    for (name, server) in servers.iter().chain(others) {
        let of_drives = |text: String| if server.drives > 0.0 { text } else { "–".into() };
        table.push(
            [
                (*name).to_owned(),
                format!("{:.0}", server.price),
                terabytes(server.memory_bytes),
                of_drives(terabytes(server.drives_bytes)),
                of_drives(format!("{:.1} GB/s", server.rates.bytes_per_s * 1e-9)),
                of_drives(unit::count(server.rates.reads_per_s.round())),
            ]
            .map(Cell::from),
        );
    }
    table
}

/// Bytes in decimal multiples, as memory and drives are sold.
fn terabytes(bytes: f64) -> String {
    format!("{:.3} TB", bytes * 1e-12)
}

#[cfg(test)]
mod tests {
    use flashgrain_cost::budget::DriveRates;

    use super::*;

    #[test]
    fn servers_are_rows_and_only_those_with_drives_have_rates() {
        let budget = Budget::new(Prices::default(), DriveRates { reads_per_s: 1.5e6, bytes_per_s: 7e9 });
        let paper = ("another", Server { drives: 0.0, ..budget.with_drives });
        let table = table(&budget, &[paper]);
        let row = |row: usize| table.rows[row].iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
        assert_eq!(row(0), ["with memory", "15000", "2.512 TB", "–", "–", "–"]);
        assert_eq!(row(1), ["with drives", "13900", "0.512 TB", "32.000 TB", "56.0 GB/s", "12 M"]);
        assert_eq!(row(2), ["another", "13900", "0.512 TB", "–", "–", "–"]);
        let text = terminal(&budget, 80);
        assert!(text.contains("18.8 times") && text.contains("with drives"), "{text}");
    }
}
