//! Whole simulated drives.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod affine;
mod cap;
mod capped;
mod common;
mod digests;
mod disk;
mod durability;
mod faults;
mod host;
mod learned;
mod mqsim;
mod mqssd;
mod nvme;
mod oracles;
mod power_cut;
mod random_drives;
mod rates;
mod repeat;
mod score;
mod short;
mod steady;
mod valid_data;
mod writes;
mod xpoint;
