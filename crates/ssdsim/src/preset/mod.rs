//! Drives of the papers, as far as their numbers are published. Each file says which values are calibrated
//! and which are assumed.

use crate::config::SimConfig;
use crate::error::Error;

/// Name and text of every preset, in the order of lists: flash, 3D XPoint, disks.
const PRESETS: &[(&str, &str)] = &[
    ("960evo", include_str!("960evo.toml")),
    ("xg5", include_str!("xg5.toml")),
    ("m500", include_str!("m500.toml")),
    ("sandisk-ultra-ii", include_str!("sandisk-ultra-ii.toml")),
    ("860evo", include_str!("860evo.toml")),
    ("970evo", include_str!("970evo.toml")),
    ("980pro", include_str!("980pro.toml")),
    ("990pro", include_str!("990pro.toml")),
    ("990pro-cached", include_str!("990pro-cached.toml")),
    ("t700", include_str!("t700.toml")),
    ("cs1030", include_str!("cs1030.toml")),
    ("pm1733", include_str!("pm1733.toml")),
    ("intel-530", include_str!("intel-530.toml")),
    ("intel-750", include_str!("intel-750.toml")),
    ("905p", include_str!("905p.toml")),
    ("900p", include_str!("900p.toml")),
    ("seagate-250gb-2006", include_str!("seagate-250gb-2006.toml")),
    ("hitachi-1tb-2009", include_str!("hitachi-1tb-2009.toml")),
    ("wd-black-1tb-2011", include_str!("wd-black-1tb-2011.toml")),
    ("seagate-2tb-2012", include_str!("seagate-2tb-2012.toml")),
    ("wd-red-6tb-2018", include_str!("wd-red-6tb-2018.toml")),
];

/// Drives in a stripe set, at most (see [`find`]).
const DRIVES_MAX: u32 = 1024;

/// Names of all presets.
pub fn names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// The TOML text of a preset as it is kept, comments included; `name` as for [`find`], without a number of
/// drives.
///
/// # Errors
/// [`Error::UnknownPreset`].
pub fn text(name: &str) -> Result<&'static str, Error> {
    let wanted = essence(name);
    let found = PRESETS.iter().find(|(name, _)| essence(name) == wanted);
    found.map(|(_, text)| *text).ok_or_else(|| unknown(name))
}

/// The preset called `name`. Case, spaces, hyphens and underscores do not matter; `8xNAME` is a stripe set of
/// eight.
///
/// # Errors
/// [`Error::UnknownPreset`] naming the presets, and the one that may have been meant.
pub fn find(name: &str) -> Result<SimConfig, Error> {
    let unknown = match text(name) {
        Ok(text) => return parse(name, text),
        Err(unknown) => unknown,
    };
    let Some((drives, one)) = stripe_set(name) else { return Err(unknown) };
    let config = parse(name, text(one).map_err(|_| unknown)?)?;
    let drives = drives * config.drives;
    Ok(SimConfig { name: format!("{drives} x {}", config.name), drives, ..config })
}

fn parse(name: &str, text: &str) -> Result<SimConfig, Error> {
    SimConfig::from_toml(text, &format!("preset {name}"))
}

/// Number of drives and name of one of them, if `name` is of the form `8xNAME`.
fn stripe_set(name: &str) -> Option<(u32, &str)> {
    let (drives, one) = name.split_once(['x', 'X'])?;
    let drives: u32 = drives.trim().parse().ok()?;
    (1..=DRIVES_MAX).contains(&drives).then_some((drives, one))
}

/// The characters of a name that count: letters and digits, in lower case.
fn essence(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn unknown(name: &str) -> Error {
    let wanted = essence(name);
    let length = wanted.chars().count();
    let part = names().into_iter().find(|known| length >= 3 && essence(known).contains(&wanted));
    let distance = |known: &str| edits(&wanted, &essence(known));
    let nearest = names().into_iter().min_by_key(|known| distance(known));
    // A very different name is no misspelling.
    let nearest = nearest.filter(|known| distance(known) * 2 < length.max(2));
    let hint = part.or(nearest).map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
    Error::UnknownPreset { name: name.to_owned(), hint, known: names().join(", ") }
}

/// Characters to insert, remove or replace to come from one to the other (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, from) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (character, above) in to.iter().zip(row.iter_mut().skip(1)) {
            let cost = diagonal + usize::from(from != *character);
            diagonal = *above;
            left = cost.min(left + 1).min(*above + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_makes_a_drive_and_says_where_its_numbers_come_from() {
        for name in names() {
            let config = find(name).unwrap();
            config.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!config.about.summary.is_empty(), "{name}");
            assert!(!config.about.calibrated.is_empty() && !config.about.assumed.is_empty(), "{name}");
        }
    }

    #[test]
    fn names_are_read_leniently() {
        let drive = find("905p").unwrap();
        for name in ["905P", " 905 p", "905-P", "905_p"] {
            assert_eq!(find(name).unwrap(), drive, "{name}");
        }
        assert_eq!(find("WD Red 6TB 2018").unwrap(), find("wd-red-6tb-2018").unwrap());
    }

    #[test]
    fn no_two_presets_share_a_name() {
        let mut essences: Vec<String> = names().into_iter().map(essence).collect();
        essences.sort_unstable();
        essences.dedup();
        assert_eq!(essences.len(), names().len());
    }

    #[test]
    fn a_number_in_front_makes_a_stripe_set() {
        let set = find("8x905P").unwrap();
        assert_eq!((set.drives, set.name.as_str()), (8, "8 x Intel Optane 905P 480 GB"));
        assert_eq!(SimConfig { drives: 1, name: find("905p").unwrap().name, ..set }, find("905p").unwrap());
        for name in ["0x905p", "100000x905p", "-1x905p"] {
            assert!(find(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_lists_what_there_is_and_suggests_the_nearest() {
        let text = find("906p").unwrap_err().to_string();
        assert!(text.contains("'906p'") && text.contains("did you mean '905p'?"), "{text}");

        let text = find("wd-read-6tb-2018").unwrap_err().to_string();
        assert!(text.contains("did you mean 'wd-red-6tb-2018'?"), "{text}");
        let text = find("hitachi").unwrap_err().to_string();
        assert!(text.contains("did you mean 'hitachi-1tb-2009'?"), "{text}");
        let text = find("floppy").unwrap_err().to_string();
        assert!(!text.contains("did you mean"), "{text}");
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in [("", "", 0), ("", "ab", 2), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!(edits(from, to), count, "{from} {to}");
            assert_eq!(edits(to, from), count, "{to} {from}");
        }
    }
}
