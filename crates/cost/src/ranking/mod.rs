//! Compares the designs of storage engines for one workload on one drive.
//!
//! 1. A [`Workload`] and the [`DriveCosts`] are the input.
//! 2. [`Designs`] are families of designs with the parameters that are tried.
//! 3. [`price`] puts the requests of a design on the drive and names its bottleneck.
//! 4. The best of each family by predicted rate stands for it; it is priced at all ends of the drive's
//!    intervals: the [`Standing`].
//! 5. A [`Question`] is a workload on a drive that differs from the profiled one by [`Factors`].
//!
//! Reports ask the same code, as WebAssembly. Its fields are therefore texts, and it is compiled without
//! anything that a page lacks.

mod designs;
mod drive;
mod price;
mod standing;
mod what_if;
mod workload;

pub use designs::Family;
pub use drive::{CostsOfKind, DriveCosts, Ends, Requests};
pub use price::{Asked, Bound, Engine, Priced, ProcessorTimes, asked, price, situation};
pub use standing::{Designs, Row, Standing, WARRANTY_YEARS};
pub use what_if::{Factors, Question};
pub use workload::{Durability, Lifetime, Operations, Records, Workload};
