//! Makes the fuzzer's first inputs: `cargo test -p flashgrain_sqlite_vfs --test vfs corpus -- --ignored`.

use std::fs;
use std::path::Path;

use flashgrain_device::OpenOptions;
use flashgrain_sqlite_vfs::{VolumeOptions, create_files};

use crate::support::{LAYOUTS, Mounted, beside, create, fill, open, pragma};

fn keep(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
}

#[test]
#[ignore = "writes into the repository"]
fn corpus_of_real_volumes_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let made = create_files(
        std::slice::from_ref(&path),
        64 << 20,
        &OpenOptions::default(),
        VolumeOptions::default(),
    );
    let volume = Mounted::mount("corpus", made.unwrap());
    for mode in ["delete", "wal"] {
        let connection = open(&volume.path(mode), LAYOUTS[0]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        fill(&connection, 0..3000);
        let bytes = fs::read(&path).unwrap();
        for slot in 0..2 {
            let slot_bytes = &bytes[slot * (512 << 10)..];
            let length = u64::from_le_bytes(*slot_bytes[32..].first_chunk().unwrap());
            keep("volume_directory", &format!("{mode}-{slot}"), &slot_bytes[..length as usize]);
        }
        keep("volume_directory", "label", &bytes[1 << 20..][..52]);
    }
    for (name, layout) in [("aligned", LAYOUTS[3]), ("large", "hot:4096:0+log:65536")] {
        let database = folder.path().join(name);
        let connection = open(&database, layout);
        pragma::<String>(&connection, "journal_mode = wal");
        create(&connection);
        fill(&connection, 0..10);
        let log = fs::read(beside(&database, "-grainwal")).unwrap();
        keep("log_statement", name, &log[..64]);
    }
}
