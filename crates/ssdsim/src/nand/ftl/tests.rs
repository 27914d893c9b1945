//! Tests of the translation layer above the real array.

mod amplification;
mod by_address;
pub(in crate::nand::ftl) mod harness;
mod mapping_cache;
mod model;
mod reads;
mod writes;
