#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flashgrain_fuzz_targets::run("part", input));
