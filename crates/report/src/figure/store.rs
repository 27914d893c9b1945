//! The store on the drive: its rates as shares of those that the drive allows, and the use of the processors.

use flashgrain_profile::DeviceProfile;
use flashgrain_profile::schema::StoreOperation;

use super::{Drawn, Figure, Key};
use crate::facts::{no_store, operation_name, share_of_raw};
use crate::svg::{Axis, Bar, Growth, bars, colour};
use crate::unit::{self, Unit};

/// Measured and predicted rates as shares of the raw device's, and next to them the processors' use.
pub(crate) fn store(profile: &DeviceProfile) -> Drawn {
    let store = profile.store.as_ref().ok_or_else(|| no_store(profile))?;
    let rows: Vec<Bar> = store.operations.iter().filter_map(of_raw).collect();
    if rows.is_empty() {
        return Err("the raw device was not measured".into());
    }
    let title = "The store, measured and predicted".to_owned();
    let reached = rows.iter().flat_map(|bar| [Some(bar.value), bar.dot]).flatten().chain([1.0]);
    let axis = Axis::over("share of the raw device", Unit::Share, Growth::Linear, reached);
    let mut panels = vec![bars(&title, "Of the raw device (100 %)", &axis, &rows)];
    let busy: Vec<Bar> = store.operations.iter().filter_map(of_processors).collect();
    if !busy.is_empty() {
        let axis = Axis::exactly("share of the time", Unit::Share, 0.0, 1.0);
        panels.push(bars(&title, "Processors busy", &axis, &busy));
    }
    let look_ups = store.operations.iter().find(|operation| operation.operation == "random look-ups");
    let caption = look_ups.and_then(in_words).unwrap_or_else(|| {
        "Rates of the store as shares of the raw device's for the same requests.".to_owned()
    });
    let drawn = |colour: &str| rows.iter().any(|row| row.colour == colour);
    let kinds = [("reads", colour::READS), ("reads and writes", colour::MIXED), ("writes", colour::WRITES)];
    let mut legend: Vec<Key> = kinds
        .iter()
        .filter(|(_, colour)| drawn(colour))
        .map(|(label, colour)| Key::bar(label, colour))
        .collect();
    if rows.iter().any(|row| row.dot.is_some()) {
        legend.push(Key::mark("predicted", "ring"));
    }
    Ok(Figure { id: "fig-store".into(), title, caption, legend, panels })
}

fn in_words(look_ups: &StoreOperation) -> Option<String> {
    let share = share_of_raw(look_ups)?;
    let predicted = look_ups
        .predicted_per_second
        .map_or_else(String::new, |predicted| format!("; predicted were {}", unit::count(predicted)));
    Some(format!(
        "Look-ups out of memory: {} per second, {} of the raw device's {}{predicted}.",
        unit::count(look_ups.measured_per_second),
        unit::share(share),
        unit::count(look_ups.raw_per_second?)
    ))
}

fn of_raw(operation: &StoreOperation) -> Option<Bar> {
    let (raw, value) = (operation.raw_per_second?, share_of_raw(operation)?);
    let in_words = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), unit::count);
    Some(Bar {
        label: short_name(operation),
        value,
        dot: operation.predicted_per_second.map(|predicted| predicted / raw),
        whisker: None,
        shown: unit::share(value),
        colour: colour_of(operation).into(),
        tip: format!(
            "{}: {} per second, predicted {}, raw device {}",
            operation_name(operation),
            unit::count(operation.measured_per_second),
            in_words(operation.predicted_per_second),
            in_words(operation.raw_per_second)
        ),
    })
}

fn of_processors(operation: &StoreOperation) -> Option<Bar> {
    let busy = operation.cpu_busy_share?;
    let each = operation.cpu_us_per_operation?;
    Some(Bar {
        label: short_name(operation),
        value: busy,
        dot: None,
        whisker: None,
        shown: unit::share(busy),
        colour: colour_of(operation).into(),
        tip: format!("{}: {} of processor time each", operation_name(operation), unit::micros(each)),
    })
}

/// `look-ups × 64`.
fn short_name(operation: &StoreOperation) -> String {
    let kind = operation.operation.trim_start_matches("random ").trim_start_matches("durable ");
    let kind = kind.split(' ').next().unwrap_or_default();
    format!("{kind} × {}", operation.concurrency)
}

fn colour_of(operation: &StoreOperation) -> &'static str {
    match (operation.reads_per_operation > 0.1, operation.written_bytes_per_operation > 0.5) {
        (true, false) => colour::READS,
        (true, true) => colour::MIXED,
        (false, _) => colour::WRITES,
    }
}
