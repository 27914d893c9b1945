//! Tests of the translation layer above the real array.

pub(in crate::nand::ftl) mod harness;
mod reads;
