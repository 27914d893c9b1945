//! Versions of engines that are crates.

/// The version of a crate, as Cargo.lock pins it: crates do not tell.
pub(super) fn locked_version(name: &str) -> String {
    let mut lines = include_str!("../../../../Cargo.lock").lines();
    let name = format!("name = \"{name}\"");
    lines
        .find(|line| *line == name)
        .and_then(|_| lines.next()?.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("unknown")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert_eq!(locked_version("flashgrain_bench"), env!("CARGO_PKG_VERSION"));
        assert_eq!(locked_version("no such crate"), "unknown");
    }
}
