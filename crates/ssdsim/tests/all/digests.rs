//! The digests of small drives and some presets, kept, so that no machine and no build differs unseen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use flashgrain_ssdsim::preset;

use crate::repeat::{drives, load};

/// Presets whose digests are kept, too: one of each medium.
const PRESETS: [&str; 3] = ["960evo", "905p", "wd-black-1tb-2011"];

/// The digests that every machine and every build must come to. After a change that is meant to change
/// timings or the order of events, `FLASHGRAIN_WRITE_DIGESTS=1 cargo test -p flashgrain_ssdsim --test all
/// digests` writes the file anew; the commit says why. A run of the test with `--release` shows that the
/// optimiser makes no difference.
#[test]
fn digests_are_the_same_everywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/digests.txt");
    let presets = PRESETS.iter().map(|name| (*name, preset::find(name).unwrap()));
    let now: BTreeMap<String, String> = drives()
        .into_iter()
        .chain(presets)
        .map(|(name, drive)| (name.to_owned(), format!("{:016x}", load(&drive, 1, 1, 400).0)))
        .collect();
    if std::env::var_os("FLASHGRAIN_WRITE_DIGESTS").is_some() {
        let mut text = String::new();
        for (name, digest) in &now {
            writeln!(text, "{name} {digest}").unwrap();
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let kept: BTreeMap<String, String> = kept
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect();
    assert_eq!(now, kept, "see the test's documentation for what to do if this is meant");
}
