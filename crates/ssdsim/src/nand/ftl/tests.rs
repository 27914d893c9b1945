//! Tests of the translation layer above the real array.

mod amplification;
pub(in crate::nand::ftl) mod harness;
mod reads;
mod writes;
