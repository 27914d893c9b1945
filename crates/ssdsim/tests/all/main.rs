//! Whole simulated drives.

mod common;
mod learned;
mod nvme;
mod random_drives;
mod score;
