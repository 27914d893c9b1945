//! Parses the place of a store: one path, or several with commas between them.

use std::path::PathBuf;

use crate::output::Context;

/// The members of a striped device, or the one of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(pub Vec<PathBuf>);

/// Takes a list apart at its commas. A comma that belongs to a name follows a backslash; it also belongs to
/// one if a file of that name exists, or a directory that it would be made in.
pub fn parse_members(text: &str) -> Result<Members, String> {
    let whole = PathBuf::from(text);
    let apart = split(text);
    if apart.iter().any(String::is_empty) {
        return Err("expected a path, or several with commas between them".into());
    }
    let members: Vec<PathBuf> = apart.into_iter().map(PathBuf::from).collect();
    if members.len() == 1 {
        return Ok(Members(members));
    }
    let has_parent =
        || whole.parent().is_some_and(|parent| parent.display().to_string().contains(',') && parent.is_dir());
    if !(whole.exists() || has_parent()) {
        return Ok(Members(members));
    }
    if members.iter().all(|member| member.exists()) {
        return Err(format!(
            "there is something of this name, and of each of its parts: write {:?} for the whole, or ./ before the first part of a list",
            text.replace(',', "\\,")
        ));
    }
    Ok(Members(vec![whole]))
}

/// The parts between commas that follow no backslash.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = character == '\\' && characters.peek() == Some(&',');
        match (character, parts.last_mut()) {
            (',', _) => parts.push(String::new()),
            (_, Some(part)) => part.push(if escaped { characters.next().unwrap_or(',') } else { character }),
            (_, None) => {}
        }
    }
    parts
}

impl Members {
    /// Announces how a list was split, as a comma may have been meant for a part of a name.
    pub fn announce(&self, what: &str, context: &Context) {
        if let [_, _, ..] = &self.0[..] {
            let names: Vec<_> = self.0.iter().map(|member| member.display().to_string()).collect();
            let (count, names) = (names.len(), names.join(", "));
            context.note(&format!("{what} is striped over {count} places: {names}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<String> {
        parse_members(text).unwrap().0.iter().map(|member| member.display().to_string()).collect()
    }

    #[test]
    fn commas_divide_unless_they_are_part_of_a_name() {
        assert_eq!(members("one,two"), ["one", "two"]);
        assert_eq!(members("one\\,two,three\\four"), ["one,two", "three\\four"]);
        assert!(parse_members("one,,two").is_err() && parse_members("").is_err());
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(at("a,b")).unwrap();
        assert_eq!(members(&at("a,b")), [at("a,b")]);
        assert_eq!(members(&at("a,b/new")), [at("a,b/new")]);
        let listed = format!("{},{}", at("x"), at("y"));
        assert_eq!(members(&listed), [at("x"), at("y")]);
    }
}
