//! The fitted costs: MQSSD's by concurrency, the other models' constants.

use flashgrain_model::{Access, CostPart, Estimate, FittedModel, Models, Mqssd, Parameter};

use super::models::determination;
use super::{estimate_cell, kind_name};
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::{self, Unit};

/// One of MQSSD's four costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    ReadSetup,
    ReadTransfer,
    WriteSetup,
    WriteTransfer,
}

impl Cost {
    pub(crate) const ALL: [Self; 4] =
        [Self::ReadSetup, Self::ReadTransfer, Self::WriteSetup, Self::WriteTransfer];

    /// The paper's symbol.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::ReadSetup => "t(k)",
            Self::ReadTransfer => "α(k)",
            Self::WriteSetup => "s(k)",
            Self::WriteTransfer => "β(k)",
        }
    }

    fn part_of(self) -> (Access, CostPart) {
        match self {
            Self::ReadSetup => (Access::Read, CostPart::Setup),
            Self::ReadTransfer => (Access::Read, CostPart::Transfer),
            Self::WriteSetup => (Access::Write, CostPart::Setup),
            Self::WriteTransfer => (Access::Write, CostPart::Transfer),
        }
    }

    /// The kind in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::ReadSetup => "read setup",
            Self::ReadTransfer => "read transfer",
            Self::WriteSetup => "write setup",
            Self::WriteTransfer => "write transfer",
        }
    }
}

/// MQSSD's estimates of one cost, by rising concurrency.
pub(crate) fn costs_of(parameters: &[Parameter], cost: Cost) -> Vec<(f64, &Parameter)> {
    let mut found: Vec<(f64, &Parameter)> = parameters
        .iter()
        .filter(|parameter| parameter.symbol == cost.symbol())
        .filter_map(|parameter| parameter.at_concurrency.map(|concurrency| (concurrency, parameter)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// MQSSD's setup and transfer costs, one row per concurrency. `None` if it was not fitted.
pub(crate) fn cost_table(models: &Models) -> Option<Table> {
    let mqssd = models.mqssd.as_ref()?;
    let parameters = mqssd.parameters();
    let costs: Vec<(Cost, Vec<(f64, &Parameter)>)> = Cost::ALL
        .into_iter()
        .map(|cost| (cost, costs_of(&parameters, cost)))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    let mut concurrencies: Vec<f64> =
        costs.iter().flat_map(|(_, found)| found.iter().map(|(concurrency, _)| *concurrency)).collect();
    concurrencies.sort_by(f64::total_cmp);
    concurrencies.dedup();
    if concurrencies.is_empty() {
        return None;
    }
    let titles: Vec<String> = costs
        .iter()
        .map(|(cost, found)| {
            let unit = found.first().map_or("", |(_, parameter)| parameter.unit.as_str());
            format!("{} {}, {unit}", cost.words(), cost.symbol())
        })
        .collect();
    let mut columns = vec![("k", Kind::Number)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Kind::Number)));
    let mut table = Table::new(&columns);
    for concurrency in concurrencies {
        let mut row = vec![Cell::toned(unit::count(concurrency), Tone::Quiet)];
        row.extend(costs.iter().map(|(_, found)| match found.iter().find(|(at, _)| *at == concurrency) {
            Some((_, parameter)) => estimate_cell(&parameter.estimate, Unit::Plain, Tone::Plain),
            None => Cell::toned("–", Tone::Quiet),
        }));
        table.push(row);
    }
    Some(table)
}

/// R² of the regression at each concurrency, as in the MQSSD paper's Table 2: a column per concurrency.
/// `None` if it was not fitted, and of files that are older than it.
pub(crate) fn regression_table(models: &Models) -> Option<Table> {
    let mqssd = models.mqssd.as_ref()?;
    let kinds = [Access::Read, Access::Write].map(|access| (access, mqssd.regressions(access)));
    let mut concurrencies: Vec<f64> =
        kinds.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.concurrency)).collect();
    concurrencies.sort_by(f64::total_cmp);
    concurrencies.dedup();
    let titles: Vec<String> =
        concurrencies.iter().map(|concurrency| format!("k={}", unit::count(*concurrency))).collect();
    let mut columns = vec![("R²", Kind::Label)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Kind::Number)));
    let mut table = Table::new(&columns);
    for (access, rows) in kinds.iter().filter(|(_, rows)| rows.iter().any(|row| row.r_squared.is_some())) {
        let cell = |concurrency: &f64| match rows.iter().find(|row| row.concurrency == *concurrency) {
            Some(row) => determination(row.r_squared, Tone::Plain),
            None => Cell::toned("–", Tone::Quiet),
        };
        let first = Cell::toned(kind_name(Some(*access)), Tone::Quiet);
        table.push(std::iter::once(first).chain(concurrencies.iter().map(cell)));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Why costs at some concurrencies are undetermined, one sentence for each.
pub(crate) fn undetermined_costs(models: &Models) -> Vec<String> {
    let parameters = models.mqssd.as_ref().map(FittedModel::parameters).unwrap_or_default();
    let why = |cost: Cost| {
        costs_of(&parameters, cost).into_iter().filter_map(move |(k, parameter)| match &parameter.estimate {
            Estimate::Determined { .. } => None,
            Estimate::Undetermined { why } => {
                Some(format!("{} undetermined: {why}.", cost.symbol().replace('k', &unit::count(k))))
            }
        })
    };
    Cost::ALL.into_iter().flat_map(why).collect()
}

/// The curves through MQSSD's costs: the constants of equations 5 and 6 of its paper. `None` if it was not
/// fitted.
pub(crate) fn curve_table(models: &Models) -> Option<Table> {
    let mqssd = models.mqssd.as_ref()?;
    let mut table = Table::new(&[
        ("curve", Kind::Label),
        ("numerator c₀, c₁, …", Kind::Label),
        ("denominator d₀, d₁, …", Kind::Label),
        ("R²", Kind::Number),
        ("left out: median error", Kind::Number),
    ]);
    for cost in Cost::ALL {
        table.rows.extend(curve_row(mqssd, cost));
    }
    Some(table)
}

fn curve_row(mqssd: &Mqssd, cost: Cost) -> Option<Vec<Cell>> {
    let (access, part) = cost.part_of();
    let (numerator, denominator) = mqssd.curve(access, part)?.constants();
    let quality = mqssd.curve_quality(access, part);
    let list = |constants: &[f64]| {
        constants.iter().map(|constant| format!("{constant:.2e}")).collect::<Vec<_>>().join(", ")
    };
    let left_out = quality.and_then(|quality| quality.leave_one_out_median);
    Some(vec![
        cost.symbol().into(),
        list(&numerator).into(),
        list(&denominator).into(),
        determination(quality.and_then(|quality| quality.r_squared), Tone::Plain),
        left_out.map_or_else(|| Cell::toned("too few k", Tone::Quiet), |error| unit::share(error).into()),
    ])
}

/// Explains the constants of [`curve_table`].
pub(crate) const CURVES: &str = "Curves are in seconds per random access, t(k) and s(k), and in seconds per byte, α(k) and \
    β(k). The costs at a few k determine a curve, but none of its constants on its own, so these have no intervals; the \
    curves' values at each k have.";

/// The constants of all models that do not belong to one concurrency.
pub(crate) fn other_parameters_table(models: &Models) -> Table {
    let mut table = Table::new(&[
        ("model", Kind::Label),
        ("constant", Kind::Label),
        ("kind", Kind::Label),
        ("value (95 % interval)", Kind::Number),
        ("unit", Kind::Label),
        ("why undetermined", Kind::Prose),
    ]);
    let constants = models
        .iter()
        .flat_map(|model| model.parameters().into_iter().map(move |parameter| (model.name(), parameter)));
    for (model, parameter) in constants.filter(|(_, parameter)| parameter.at_concurrency.is_none()) {
        let why = match &parameter.estimate {
            Estimate::Determined { .. } => "",
            Estimate::Undetermined { why } => why,
        };
        // A symbol that spells the name again says nothing.
        let is_symbol = parameter.symbol.replace('_', " ") != parameter.name;
        let symbol = if is_symbol { parameter.symbol.as_str() } else { "" };
        table.push([
            model.to_string().into(),
            format!("{} {symbol}", parameter.name).trim().into(),
            Cell::toned(parameter.access.map_or("", |access| kind_name(Some(access))), Tone::Quiet),
            estimate_cell(&parameter.estimate, Unit::Plain, Tone::Plain),
            Cell::toned(parameter.unit.as_str(), Tone::Quiet),
            Cell::toned(why, Tone::Warning),
        ]);
    }
    let all_are_determined = table.rows.iter().all(|row| row.last().is_some_and(|why| why.text.is_empty()));
    if all_are_determined {
        table.remove_last_column();
    }
    table
}
