//! Whole simulated drives.

mod affine;
mod common;
mod learned;
mod nvme;
mod random_drives;
mod score;
