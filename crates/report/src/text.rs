//! Text from outside, made harmless.

/// Replaces characters that would steer a terminal or turn the reading direction: nothing from a drive or a
/// path needs them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if is_harmless(character) { character } else { '\u{fffd}' }).collect()
}

fn is_harmless(character: char) -> bool {
    let turns_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !turns_direction
}

/// Keeps numbers and their units, and both sides of an equals sign, on one line where text flows.
pub(crate) fn unbroken(text: &str) -> String {
    const UNITS: [&str; 21] = [
        "B", "KiB", "MiB", "GiB", "TiB", "B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "kB/s", "MB/s", "GB/s",
        "k/s", "ns", "µs", "ms", "s", "%", "k", "M",
    ];
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    for (index, word) in text.split(' ').enumerate() {
        let bare = word.trim_end_matches([',', ';', '.', ':', ')']);
        let ends_with_digit = before.ends_with(|last: char| last.is_ascii_digit() || last == ')');
        let belongs =
            (ends_with_digit && UNITS.contains(&bare)) || bare == "=" || before == "=" || before == "R²";
        if index > 0 {
            out.push(if belongs { '\u{a0}' } else { ' ' });
        }
        out.push_str(word);
        before = word;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stay_with_their_numbers() {
        assert_eq!(
            unbroken("with P = 5.4 at 64 KiB, or 3 times"),
            "with P\u{a0}=\u{a0}5.4 at 64\u{a0}KiB, or 3 times"
        );
        assert_eq!(unbroken("(107 – 124) KiB a b"), "(107 – 124)\u{a0}KiB a b");
        assert_eq!(unbroken(""), "");
    }

    #[test]
    fn escape_sequences_and_direction_marks_are_replaced() {
        assert_eq!(printable("a\u{1b}[2J\r\u{202e}µ²"), "a\u{fffd}[2J\u{fffd}\u{fffd}µ²");
    }
}
