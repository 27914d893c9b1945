//! Tables, and the remarks on them.

use flashgrain::BeTreeLevelStats;
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;

use super::asked::{ASKED, Asked, of_tree};
use super::drive_costs::UNIT_BYTES;
use super::fitted::Fitted;
use super::{
    B_EPSILON_NODE_BYTES, B_PLUS_NODE_BYTES, BERKELEY_DB_PAGE_BYTES, NodeSizeResult, OnDrive, Operations,
    Point, Tree, figures, numbers,
};
use crate::engine::EngineName;
use crate::study::sheet::{Part, Sheet};
use crate::study::subject::Measured;

/// Sizes of nodes over which the Bε-tree should cost the same.
const LARGE_BYTES: (u64, u64) = (256 << 10, 4 << 20);

pub(super) fn of(result: &NodeSizeResult) -> Sheet {
    let drives =
        result.drives.iter().enumerate().map(|(number, drive)| on_drive(number, drive, result.fanout));
    Sheet {
        title: "The size of nodes of B+-trees and Bε-trees, as in section 7 of the dictionaries paper".into(),
        conditions: conditions(result),
        parts: drives.collect(),
        comparisons: numbers::comparisons(Some(result)),
    }
}

fn size(bytes: u64) -> String {
    unit::bytes(bytes as f64)
}

fn conditions(result: &NodeSizeResult) -> Vec<String> {
    let records = result.records;
    let mut conditions = vec![
        format!(
            "{} records of {} + {} bytes, {} in all, and {} of memory, {:.1} % of that (16 GiB and 25 % in the paper); one client; seed {}.",
            unit::count(records.count as f64),
            records.key_bytes,
            records.value_bytes,
            size(records.bytes()),
            size(result.cache_bytes),
            100.0 * result.cache_bytes as f64 / records.bytes() as f64,
            result.seed
        ),
        format!(
            "Bε-trees have F = {}, parts of B/F, and basement nodes of B/{}; parts have at least four basement nodes, and these from 4 to 64 KiB.",
            result.fanout,
            result.fanout * result.basement_divisor
        ),
        format!(
            "This store's B+-trees have nodes from {} to {}, its Bε-trees here from {} to {}.",
            size(B_PLUS_NODE_BYTES.0),
            size(B_PLUS_NODE_BYTES.1),
            size(B_EPSILON_NODE_BYTES.0),
            size(B_EPSILON_NODE_BYTES.1)
        ),
        "The log is in memory, and not waited for. Inserts include the checkpoint that writes their changes."
            .into(),
        format!("On simulated drives times are virtual: {}.", result.costs.describe()),
    ];
    conditions.extend(berkeley_db(&result.drives));
    conditions
}

/// The remark on Berkeley DB, which works on directories only.
fn berkeley_db(drives: &[OnDrive]) -> Option<String> {
    let mut on_directories = drives.iter().filter(|drive| drive.is_directory).peekable();
    on_directories.peek()?;
    let has = |drive: &OnDrive| of_tree(drive, Tree::BerkeleyDb).next().is_some();
    Some(match (on_directories.any(has), EngineName::BerkeleyDb.version()) {
        (_, None) => "Berkeley DB is left out, as this program was built without it: `scripts/install-peers.sh`, then `cargo build --release -p flashgrain_cli --features berkeleydb`.".into(),
        (false, _) => format!(
            "Berkeley DB is left out: its pages have at most {}.",
            size(BERKELEY_DB_PAGE_BYTES.1)
        ),
        (true, Some(version)) => format!(
            "Berkeley DB {version} has the same memory, no log and no transactions, pages up to {}, and its files around the kernel's page cache; in brackets the model's predictions for this store's B+-trees. Its requests are those of the whole device, which others may use.",
            size(BERKELEY_DB_PAGE_BYTES.1)
        ),
    })
}

fn on_drive(number: usize, drive: &OnDrive, fanout: u32) -> Part {
    let mut text = vec![own_costs(drive)];
    text.extend(lines(drive));
    text.extend(sensitivity(drive));
    Part {
        id: ["drive", "second-drive", "third-drive", "fourth-drive"].get(number).copied().unwrap_or("drives"),
        title: drive.target.clone(),
        text,
        tables: vec![
            ("Time of an operation; predicted in brackets".into(), times(drive)),
            ("Nodes with the cheapest operations".into(), optima(drive)),
            (
                "Requests to read and bytes written for each operation; predicted in brackets".into(),
                accesses(drive),
            ),
            ("Scans of 1,000 records; predicted in brackets".into(), scans(drive)),
            (
                "Bytes of a part of the Bε-tree; a look-up reads one on each level".into(),
                parts(drive, fanout),
            ),
        ],
        figures: figures::both(drive),
    }
}

fn own_costs(drive: &OnDrive) -> String {
    let costs = drive.costs;
    format!(
        "Random reads where a tree is take s = {} and t = {} per 4 KiB: α = {:.5} for 4 KiB, half-bandwidth size {}.",
        unit::seconds(costs.setup_seconds),
        unit::seconds(costs.transfer_seconds_per_byte * UNIT_BYTES),
        costs.alpha(),
        unit::bytes((UNIT_BYTES / costs.alpha()).round())
    )
}

fn lines(drive: &OnDrive) -> Vec<String> {
    let line = |label: &str, fitted: Option<Fitted>| match fitted {
        Some(fitted) => format!(
            "The affine line through the look-ups of {label} has α = {:.5}, {:+.1} % from the drive's own; RMS {}, R² {}.",
            fitted.alpha,
            100.0 * fitted.alpha_difference,
            unit::micros(fitted.rms_us),
            fitted.r_squared.map_or("–".into(), |r_squared| format!("{r_squared:.4}"))
        ),
        None => format!("The look-ups of {label} do not tell setup and transfer apart."),
    };
    if !drive.points.iter().any(|point| point.tree == Tree::BPlus) {
        return Vec::new();
    }
    let grown = "grown B+-trees, whose pages lie elsewhere with each size of nodes,";
    let mut lines = vec![line("loaded B+-trees", drive.fitted), line(grown, drive.fitted_grown)];
    if drive.fitted_berkeley_db.is_some() {
        lines.push(line("loaded trees of Berkeley DB", drive.fitted_berkeley_db));
    }
    lines
}

/// How many times as much the dearest costs as the cheapest.
fn variation(times: impl Iterator<Item = f64>) -> Option<f64> {
    let (least, most, count) = times.fold((f64::INFINITY, 0.0_f64, 0), |(least, most, count), us| {
        (least.min(us), most.max(us), count + 1)
    });
    (count > 1).then_some(most / least)
}

fn sensitivity(drive: &OnDrive) -> Option<String> {
    let (least, most) = LARGE_BYTES;
    let is_large = |bytes: u64| (least..=most).contains(&bytes);
    let of = |operations: fn(&Point) -> &Operations| {
        let points = drive.points.iter().filter(|point| point.tree == Tree::BEpsilon);
        let large = points.filter(|point| is_large(point.node_bytes));
        variation(large.map(|point| operations(point).measured.mean_us()))
    };
    let sizes =
        drive.points.iter().filter(|point| point.tree == Tree::BEpsilon).map(|point| point.node_bytes);
    let large: Vec<u64> = sizes.filter(|bytes| is_large(*bytes)).collect();
    let (least, most) = (large.iter().copied().min()?, large.iter().copied().max()?);
    if least == most {
        return None;
    }
    let is_large = |bytes: u64| (least..=most).contains(&bytes);
    let look_ups = of(|point| &point.grown)?;
    let inserts = of(|point| &point.inserts)?;
    let line = variation(drive.line.iter().filter(|(bytes, _)| is_large(*bytes)).map(|(_, us)| *us));
    Some(format!(
        "From {} to {} the look-ups of the Bε-tree vary {look_ups:.2} times and its inserts {inserts:.2} times{}.",
        size(least),
        size(most),
        line.map_or(String::new(), |times| format!(
            "; the line through the look-ups of the B+-tree, which has no such nodes, grows {times:.2} times"
        ))
    ))
}

/// The columns of both trees: tree and question.
fn columns(drive: &OnDrive) -> Vec<(Tree, Asked)> {
    let both = Tree::ALL.into_iter().flat_map(|tree| ASKED.map(|asked| (tree, asked)));
    both.filter(|(tree, (_, of))| of_tree(drive, *tree).any(|point| of(point).is_some())).collect()
}

/// A row for each size of nodes, with `cell` for each kind of operation of each tree.
fn by_node(drive: &OnDrive, cell: impl Fn(&Operations) -> String) -> Table {
    let columns = columns(drive);
    let titles: Vec<String> =
        columns.iter().map(|(tree, (name, _))| format!("{}: {name}", tree.name())).collect();
    let mut all = vec![("nodes", Kind::Label)];
    all.extend(titles.iter().map(|title| (title.as_str(), Kind::Number)));
    let mut table = Table::new(&all);
    let mut sizes: Vec<u64> = drive.points.iter().map(|point| point.node_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for node_bytes in sizes {
        let cells = columns.iter().map(|(tree, (_, of))| {
            let point = of_tree(drive, *tree).find(|point| point.node_bytes == node_bytes);
            point.and_then(of).map_or("–".to_owned(), &cell)
        });
        table.push(std::iter::once(size(node_bytes)).chain(cells).map(Cell::from));
    }
    table
}

fn times(drive: &OnDrive) -> Table {
    by_node(drive, |operations| {
        let predicted = operations.predicted.us.map_or("–".into(), unit::micros);
        format!("{} ({predicted})", unit::micros(operations.measured.mean_us()))
    })
}

fn accesses(drive: &OnDrive) -> Table {
    by_node(drive, |operations| {
        let (measured, predicted) = (&operations.measured, &operations.predicted);
        let reads = format!("{:.3} ({:.3})", measured.reads_each, predicted.reads);
        if predicted.written_bytes == 0.0 {
            return reads;
        }
        let written = |bytes: f64| unit::bytes(bytes.round());
        format!("{reads}, {} ({})", written(measured.written_bytes_each), written(predicted.written_bytes))
    })
}

/// Scans of loaded trees, whose leaves lie in order, and of grown ones, whose leaves lie anywhere. The random
/// share of a loaded tree's steps is the one between both predictions, where each step of the grown tree is a
/// random access.
fn scans(drive: &OnDrive) -> Table {
    let titles = ["loaded", "grown", "grown over loaded", "random share of leaf steps, loaded"];
    let mut columns = vec![("nodes", Kind::Label)];
    columns.extend(titles.map(|title| (title, Kind::Number)));
    let mut table = Table::new(&columns);
    for point in of_tree(drive, Tree::BPlus) {
        let (Some(loaded), Some(grown)) = (&point.loaded_scans, &point.grown_scans) else { continue };
        let shown = |us: Option<f64>| us.map_or("–".into(), unit::micros);
        let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"));
        let (loaded_us, grown_us) = (loaded.measured.mean_us(), grown.measured.mean_us());
        let (in_order, anywhere) = (loaded.predicted.us, grown.predicted.us);
        let share = in_order.map(|in_order| (loaded_us - in_order) / (grown_us - in_order));
        let cells = [
            size(point.node_bytes),
            format!("{} ({})", unit::micros(loaded_us), shown(in_order)),
            format!("{} ({})", unit::micros(grown_us), shown(anywhere)),
            format!(
                "{:.2} ({})",
                grown_us / loaded_us,
                ratio(anywhere.zip(in_order).map(|(anywhere, in_order)| anywhere / in_order))
            ),
            format!("{} (0)", ratio(share)),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}

/// Parts after all inserts, in the mean over all levels of them.
fn parts(drive: &OnDrive, fanout: u32) -> Table {
    let mut columns = vec![("nodes", Kind::Label)];
    columns.extend(
        ["B/F", "page", "its messages", "its pivots", "a read in the mean"]
            .map(|title| (title, Kind::Number)),
    );
    let mut table = Table::new(&columns);
    for point in of_tree(drive, Tree::BEpsilon) {
        let Some(stats) = &point.be_tree else { continue };
        let parts = stats.levels.get(1..).unwrap_or_default();
        let sum = |of: fn(&BeTreeLevelStats) -> u64| parts.iter().map(of).sum::<u64>() as f64;
        let pages = sum(|level| level.pages).max(1.0);
        let mean = |of: fn(&BeTreeLevelStats) -> u64| unit::bytes((sum(of) / pages).round());
        let Measured { reads_each, read_bytes_each, .. } = point.grown.measured;
        let read = (reads_each > 0.0).then(|| unit::bytes((read_bytes_each / reads_each).round()));
        let cells = [
            size(point.node_bytes),
            size(point.node_bytes / u64::from(fanout)),
            mean(|level| level.page_bytes),
            mean(|level| level.buffered_bytes),
            mean(|level| level.pivot_bytes),
            read.unwrap_or_else(|| "–".into()),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}

fn optima(drive: &OnDrive) -> Table {
    let columns = [("", Kind::Label), ("measured", Kind::Number), ("predicted", Kind::Number)];
    let mut table = Table::new(&columns);
    for (tree, (name, of)) in self::columns(drive) {
        let best = |us: fn(&Operations) -> Option<f64>| {
            let costs = of_tree(drive, tree).filter_map(|point| Some((point.node_bytes, us(of(point)?)?)));
            costs.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(bytes, _)| bytes)
        };
        let cell = |bytes: Option<u64>| bytes.map_or("–".into(), size);
        let measured = best(|operations| Some(operations.measured.mean_us()));
        let predicted = best(|operations| operations.predicted.us);
        let cells = [format!("{}: {name}", tree.name()), cell(measured), cell(predicted)];
        table.push(cells.map(Cell::from));
    }
    table
}
