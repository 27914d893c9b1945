//! Models given the costs of one thread, next to those that are fitted to all.

use flashgrain_model::{CostsOf, OneThreadRow};

use super::models::kind_name;
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit;

/// Explains the table, in a sentence.
pub(crate) const ONE_THREAD: &str = "Predicted over measured throughput, the geometric mean over the workloads of each k; none is held out. \
    With the costs of one thread DAM, PDAM and affine are as in Figure 2 of the MQSSD paper, with the P that is fitted.";

/// A row for each model and kind, a column for each k.
pub(crate) fn one_thread_table(rows: &[OneThreadRow]) -> Table {
    let mut concurrencies: Vec<f64> =
        rows.iter().flat_map(|row| row.predicted_over_measured.iter().map(|(k, _)| *k)).collect();
    concurrencies.sort_by(f64::total_cmp);
    concurrencies.dedup();
    let titles: Vec<String> = concurrencies.iter().map(|k| format!("k = {k}")).collect();
    let mut columns = vec![("kind", Kind::Label), ("model", Kind::Label), ("costs of", Kind::Label)];
    columns.extend([("median error", Kind::Number), ("worst error", Kind::Number)]);
    columns.extend(titles.iter().map(|title| (title.as_str(), Kind::Number)));
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = vec![
            Cell::toned(kind_name(Some(row.access)), Tone::Quiet),
            row.model.to_string().into(),
            match row.costs_of {
                CostsOf::OneThread => "one thread",
                CostsOf::AllThreads => "all k",
            }
            .into(),
            unit::share(row.median_relative_error).into(),
            unit::share(row.worst_relative_error).into(),
        ];
        cells.extend(concurrencies.iter().map(|k| {
            let found = row.predicted_over_measured.iter().find(|(own, _)| own == k);
            Cell::from(found.map_or_else(|| "–".to_owned(), |(_, ratio)| format!("{ratio:.2}")))
        }));
        table.push(cells);
    }
    table
}
