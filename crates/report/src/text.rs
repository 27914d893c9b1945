//! Text from outside, made harmless.

/// Replaces characters that would steer a terminal or turn the reading direction: nothing from a drive or a path needs them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if is_harmless(character) { character } else { '\u{fffd}' }).collect()
}

fn is_harmless(character: char) -> bool {
    let turns_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !turns_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_are_replaced() {
        assert_eq!(printable("a\u{1b}[2J\r\u{202e}µ²"), "a\u{fffd}[2J\u{fffd}\u{fffd}µ²");
    }
}
