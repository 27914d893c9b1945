//! The multi-queue SSD model (MQSSD paper §4.2): setup and transfer costs that depend on the concurrency k
//! and differ between reads, t(k) and α(k), and writes, s(k) and β(k).

mod costs;
mod curve;
mod interference;
mod rational;
mod search;

pub use curve::{CostCurve, CurveQuality};

pub(crate) use costs::REGRESSION_WORKLOADS_MIN;

use costs::{Costs, Row};
use interference::{Interference, Mixed};
use serde::{Deserialize, Serialize};

use crate::bootstrap::generator;
use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::{Access, Error, Estimate, FittedModel, IoModel, ModelName, Parameter, Workload};

/// Costs over concurrency, with a term for mixed reads and writes.
///
/// Beyond the measured concurrencies, the costs stay constant at those of the nearest. The parameters are the
/// costs at each k measured: one from the regression at that k alone, and one (`fitted`) from the curve
/// through all of them, which predictions use. The curves' constants c₀, d₁, … are no parameters, since eight
/// values of k do not determine each of them but only the curve: see [`Mqssd::curve`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mqssd {
    page_bytes: f64,
    costs: PerAccess<Costs>,
    interference: Interference,
    parameters: Vec<Parameter>,
}

/// How well the regression at one concurrency fits: a line of the MQSSD paper's Table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regression {
    /// The paper's k.
    pub concurrency: f64,
    /// R² of the time per byte over the random accesses per byte. `None` if the times do not vary, and in
    /// older files.
    pub r_squared: Option<f64>,
}

/// The two parts of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostPart {
    /// Per random access: t(k) of reads, s(k) of writes.
    Setup,
    /// Per page moved: α(k) of reads, β(k) of writes.
    Transfer,
}

impl CostPart {
    /// Symbol of the paper.
    pub fn symbol(self, access: Access) -> &'static str {
        match (self, access) {
            (Self::Setup, Access::Read) => "t(k)",
            (Self::Transfer, Access::Read) => "α(k)",
            (Self::Setup, Access::Write) => "s(k)",
            (Self::Transfer, Access::Write) => "β(k)",
        }
    }
}

/// Symbol of the interference term.
const GAMMA: &str = "γ";

const ACCESS_UNIT: &str = "µs per random access";

/// Degree of the rational functions; the paper's, which gives β(k) one more for garbage collection.
const DEGREE: usize = 2;
const WRITE_TRANSFER_DEGREE: usize = 3;

/// Costs of an MQSSD drive at one concurrency: a line of the MQSSD paper's Table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MqssdCosts {
    /// k.
    pub concurrency: f64,
    /// s(k) of writes or t(k) of reads, in seconds per random access; positive. The paper's table has
    /// microseconds for each percent of random pages of 1 GB: one of its units is 1e-6 / 2621.44 of these.
    pub setup_seconds: f64,
    /// β(k) of writes or α(k) of reads, in seconds per page; positive.
    pub page_seconds: f64,
}

impl Mqssd {
    /// A model of known costs at some concurrencies, with the same curves through them as a fitted one; reads
    /// and writes add up. It has no parameters with intervals, since no samples were fitted.
    ///
    /// # Errors
    /// [`Error::Samples`] if there are no costs of reads or of writes, or one is not positive.
    pub fn from_costs(page_bytes: f64, reads: &[MqssdCosts], writes: &[MqssdCosts]) -> Result<Self, Error> {
        let costs = PerAccess::of_both(
            Costs::from_known(page_bytes, reads, DEGREE)?,
            Costs::from_known(page_bytes, writes, WRITE_TRANSFER_DEGREE)?,
        );
        let interference =
            Interference::None { why: "the costs are known ones, of reads and writes apart".into() };
        Ok(Self { page_bytes, costs, interference, parameters: Vec::new() })
    }

    /// Seconds per random access at a concurrency.
    pub fn setup_seconds(&self, access: Access, concurrency: f64) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.setup.at(concurrency))
    }

    /// Seconds per byte moved at a concurrency.
    pub fn transfer_seconds_per_byte(&self, access: Access, concurrency: f64) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.transfer.at(concurrency))
    }

    /// The fitted curve of a cost: in seconds per random access or in seconds per byte.
    pub fn curve(&self, access: Access, part: CostPart) -> Option<&CostCurve> {
        let costs = self.costs.get(access)?;
        Some(match part {
            CostPart::Setup => &costs.setup,
            CostPart::Transfer => &costs.transfer,
        })
    }

    /// How well that curve fits the costs measured at each k.
    pub fn curve_quality(&self, access: Access, part: CostPart) -> Option<CurveQuality> {
        let costs = self.costs.get(access)?;
        match part {
            CostPart::Setup => costs.setup_quality,
            CostPart::Transfer => costs.transfer_quality,
        }
    }

    /// The regressions of one kind, by rising concurrency.
    pub fn regressions(&self, access: Access) -> Vec<Regression> {
        let rows = self.costs.get(access).map(|costs| costs.rows.as_slice()).unwrap_or_default();
        rows.iter().map(|row| Regression { concurrency: row.concurrency, r_squared: row.r_squared }).collect()
    }

    /// γ: the relative change of the time of a mixed workload whose reads and writes take equal time, of all
    /// concurrencies together; `None` if the term was not kept (its parameter says why).
    pub fn interference(&self) -> Option<f64> {
        self.interference.gamma()
    }

    /// γ at each concurrency; none if it does not depend on that.
    pub fn interference_by_concurrency(&self) -> &[(f64, f64)] {
        self.interference.by_concurrency()
    }

    pub(crate) fn judge_curves(&mut self) {
        self.costs.iter_mut().for_each(Costs::judge);
    }

    /// Time of the reads and of the writes in a byte of the workload.
    fn parts(costs: &PerAccess<Costs>, workload: &Workload) -> Option<(f64, f64)> {
        let accesses = workload.random_accesses_per_byte();
        costs.parts(workload, |costs| costs.seconds_per_byte(accesses, workload.concurrency))
    }

    fn mixed(costs: &PerAccess<Costs>, points: &[Point]) -> Vec<Mixed> {
        let mixed = |point: &Point| {
            let (reads, writes) = Self::parts(costs, &point.workload)?;
            let concurrency = point.workload.concurrency;
            Some(Mixed { concurrency, reads, writes, measured: point.seconds_per_byte })
        };
        points.iter().filter_map(mixed).collect()
    }
}

impl IoModel for Mqssd {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        let (reads, writes) = Self::parts(&self.costs, workload)?;
        Some(self.interference.seconds_per_byte(reads, writes, workload.concurrency))
    }

    fn seconds_together(&self, read_seconds: f64, write_seconds: f64) -> f64 {
        self.interference.seconds_together(read_seconds, write_seconds)
    }
}

impl FittedModel for Mqssd {
    fn name(&self) -> ModelName {
        ModelName::Mqssd
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn constants(&self, access: Option<Access>) -> usize {
        let of_each = self.interference.by_concurrency().len();
        let of_mixed = usize::from(self.interference().is_some()).max(of_each);
        let interference = if access.is_none() { of_mixed } else { 0 };
        let curves = |costs: &Costs| costs.setup.constant_count() + costs.transfer.constant_count();
        self.costs.count(access, curves) + interference
    }
}

impl Fit for Mqssd {
    fn fit(points: &Points, options: &FitOptions) -> Option<Self> {
        let costs = PerAccess::fit(points, |access, points| {
            let transfer_degree = if access == Access::Write { WRITE_TRANSFER_DEGREE } else { DEGREE };
            Costs::fit(points, transfer_degree, &mut generator(options.seed))
        })?;
        let interference = Interference::fit(&Self::mixed(&costs, &points.mixed));
        Some(Self { page_bytes: options.page_bytes, costs, interference, parameters: Vec::new() })
    }

    fn refit(&self, points: &Points) -> Option<Self> {
        let costs = PerAccess::fit(points, |access, points| self.costs.get(access)?.refit(points))?;
        let interference = self.interference.refit(&Self::mixed(&costs, &points.mixed));
        Some(Self { page_bytes: self.page_bytes, costs, interference, parameters: Vec::new() })
    }

    fn numbers(&self) -> Vec<Number> {
        let mut numbers: Vec<Number> = self
            .costs
            .iter()
            .flat_map(|(access, costs)| cost_numbers(access, costs, self.page_bytes))
            .collect();
        numbers.push(Number {
            name: "interference of reads and writes".into(),
            symbol: GAMMA.into(),
            unit: String::new(),
            at_concurrency: None,
            access: None,
            value: self.interference().unwrap_or(0.0),
            doubt: match &self.interference {
                Interference::Kept { .. } => None,
                Interference::None { why } => Some(why.clone()),
            },
        });
        numbers
    }

    fn set_parameters(&mut self, parameters: Vec<Parameter>) {
        // A term whose interval includes zero is not used either.
        let gamma = parameters
            .iter()
            .find(|parameter| parameter.symbol == GAMMA)
            .map(|parameter| &parameter.estimate);
        let is_one = self.interference.by_concurrency().is_empty();
        if let (true, Interference::Kept { .. }, Some(Estimate::Undetermined { why })) =
            (is_one, &self.interference, gamma)
        {
            self.interference = Interference::None { why: why.clone() };
        }
        self.parameters = parameters;
    }
}

/// Setup and transfer at each k: as its regression has them, and as the curve through all of them has them.
fn cost_numbers(access: Access, costs: &Costs, page_bytes: f64) -> Vec<Number> {
    let page = microseconds_per_page(page_bytes);
    let number = |part: CostPart, fitted: bool, row: &Row| {
        let (name, unit, value) = match (part, fitted) {
            (CostPart::Setup, false) => ("setup", ACCESS_UNIT, row.costs.setup_if_any()),
            (CostPart::Setup, true) => ("setup, fitted curve", ACCESS_UNIT, costs.setup.at(row.concurrency)),
            (CostPart::Transfer, false) => {
                ("transfer", page.as_str(), page_bytes * row.costs.transfer_if_any())
            }
            (CostPart::Transfer, true) => {
                ("transfer, fitted curve", page.as_str(), page_bytes * costs.transfer.at(row.concurrency))
            }
        };
        let symbol = part.symbol(access);
        Number {
            name: name.into(),
            symbol: if fitted { format!("{symbol} fitted") } else { symbol.into() },
            unit: unit.into(),
            at_concurrency: Some(row.concurrency),
            access: Some(access),
            value: value * 1e6,
            doubt: None,
        }
    };
    let mut numbers = Vec::new();
    for part in [CostPart::Setup, CostPart::Transfer] {
        for fitted in [false, true] {
            numbers.extend(costs.rows.iter().map(|row| number(part, fitted, row)));
        }
    }
    numbers
}
