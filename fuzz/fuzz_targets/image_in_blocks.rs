#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| flashgrain_fuzz_targets::run("image_in_blocks", input));
