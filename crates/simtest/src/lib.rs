//! Campaigns against the store's contract, on simulated drives, from seeds.
//!
//! **The contract.** With k commits acknowledged as durable and n submitted, recovery yields the state after
//! exactly j of them, in order, k <= j <= n; or, only where the medium itself failed, a typed error that
//! names the damage. Never a wrong value, never a panic, never a refused open after a mere crash.

pub mod campaign;
pub mod isolation;
pub mod media;
pub mod swarm;
pub mod tokens;
pub mod world;
