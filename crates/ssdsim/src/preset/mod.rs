//! Drives of the papers, as far as their numbers are published. Each file says what is calibrated and what is assumed.

use crate::config::SimConfig;
use crate::error::Error;

/// Name and text of every preset, in the order in which they are listed: flash, 3D XPoint, disks.
const PRESETS: &[(&str, &str)] = &[("905p", include_str!("905p.toml")), ("900p", include_str!("900p.toml"))];

/// Drives in a stripe set, at most (see [`find`]).
const MOST_DRIVES: u32 = 1024;

/// Names of all presets.
pub fn names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// The TOML text of a preset as it is kept, comments included; `name` as for [`find`], without a number of drives.
///
/// # Errors
/// [`Error::UnknownPreset`].
pub fn text(name: &str) -> Result<&'static str, Error> {
    let wanted = essence(name);
    let found = PRESETS.iter().find(|(name, _)| essence(name) == wanted);
    found.map(|(_, text)| *text).ok_or_else(|| unknown(name))
}

/// The preset called `name`. Case, spaces, hyphens and underscores do not matter; `8xNAME` is a stripe set of eight.
///
/// # Errors
/// [`Error::UnknownPreset`] naming what there is, and what may have been meant.
pub fn find(name: &str) -> Result<SimConfig, Error> {
    if let Some((drives, one)) = stripe_set(name)
        && let Ok(one) = text(one)
    {
        let config = parse(name, one)?;
        let drives = drives * config.drives;
        return Ok(SimConfig { name: format!("{drives} x {}", config.name), drives, ..config });
    }
    parse(name, text(name)?)
}

fn parse(name: &str, text: &str) -> Result<SimConfig, Error> {
    SimConfig::from_toml(text, &format!("preset {name}"))
}

/// Number of drives and name of one of them, if `name` is of the form `8xNAME`.
fn stripe_set(name: &str) -> Option<(u32, &str)> {
    let (drives, one) = name.split_once(['x', 'X'])?;
    let drives: u32 = drives.trim().parse().ok()?;
    (1..=MOST_DRIVES).contains(&drives).then_some((drives, one))
}

/// What of a name counts.
fn essence(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn unknown(name: &str) -> Error {
    let wanted = essence(name);
    let distance = |known: &str| edits(&wanted, &essence(known));
    let nearest = names().into_iter().min_by_key(|known| distance(known));
    // Something else entirely is nobody's misspelling.
    let near = nearest.filter(|known| distance(known) * 2 < wanted.chars().count().max(2));
    let hint = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
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

        let text = find("900").unwrap_err().to_string();
        assert!(text.contains("did you mean '900p'?"), "{text}");
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
