//! Makes the corpora of the store's decoders: `cargo test -p flashgrain_fuzz_targets --test store corpus --
//! --ignored`.

use std::collections::BTreeMap;
use std::fs;

use flashgrain_device::Device;
use flashgrain_fuzz_targets::{TARGETS, corpus_folder};

use super::find::{Kind, find, record_starts, word};
use super::world::{Left, drive, image};

/// Inputs of each target from each store, at most.
const INPUTS: usize = 6;

#[test]
#[ignore = "writes into the repository"]
fn corpus_of_real_stores() {
    let mut all: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for left in [Left::Closed, Left::Abandoned] {
        let (image, mut bytes) = (image(left), vec![0; drive().capacity_bytes() as usize]);
        image.read(0, &mut bytes);
        for (name, mut inputs) in from_store(&bytes) {
            // From the first to the last, at equal distances.
            let step = inputs.len().div_ceil(INPUTS).max(1);
            inputs.sort_by_key(Vec::len);
            all.entry(name).or_default().extend(inputs.into_iter().rev().step_by(step));
        }
    }
    for (name, inputs) in all {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let folder = corpus_folder(name);
        fs::create_dir_all(&folder).unwrap();
        for (number, mut input) in inputs.into_iter().enumerate() {
            input.truncate(target.input_bytes_max);
            fs::write(folder.join(format!("store-{number:02}")), input).unwrap();
        }
    }
}

fn from_store(bytes: &[u8]) -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let mut found: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    let mut add = |name, input: &[u8]| found.entry(name).or_default().push(input.to_vec());
    for structure in find(bytes) {
        let own = &bytes[structure.bytes.clone()];
        match structure.kind {
            Kind::Superblock => add("superblock", own),
            Kind::Label => add("label", own),
            Kind::DurableMark => add("durable_mark", own),
            Kind::Node => {
                add("image", own);
                add("node", &[&[7, own.len() as u8], own].concat());
                // References and entries are values in leaves.
                for part in own.windows(16).step_by(4).filter(|part| part[..4] == [1, 1, 0, 0]) {
                    add("catalog_entry", part);
                }
            }
            Kind::Overflow => {
                add("image", own);
                add("overflow", own);
            }
            Kind::Map => add("map", own),
            Kind::LogBlock => {
                add("log_block", own);
                // In blocks of another size, as if it were their records.
                add("log_stream", own);
                for start in record_starts(own) {
                    let length = word(own, start) as usize;
                    let Some(record) = own.get(start + 4..start + 4 + length) else { continue };
                    add("log_record", record);
                    // Kind, tree, length of the key, key, length of the reference.
                    if record[0] == 3 {
                        let behind = 3 + usize::from(record[2]);
                        add("reference", &record[behind + if record[behind] < 128 { 1 } else { 2 }..]);
                    }
                }
            }
        }
    }
    found
}
