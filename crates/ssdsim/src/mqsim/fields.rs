//! Elements of MQSim's files, read by name and with suspicion.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use roxmltree::{Document, Node};

use crate::error::Error;

/// A field that MQSim knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// As the documentation or the newest reader spells it, mistakes included.
    pub name: &'static str,
    /// Other spellings: of older versions, of the shipped files, of the documentation.
    pub also: &'static [&'static str],
    /// MQSim's value if the field is missing.
    pub default: &'static str,
    /// Why it has no effect here; `None` if it has one.
    pub ignored: Option<&'static str>,
}

/// A field with an effect.
pub(super) const fn used(name: &'static str, default: &'static str) -> Field {
    Field { name, also: &[], default, ignored: None }
}

/// A field without one.
pub(super) const fn ignored(name: &'static str, default: &'static str, why: &'static str) -> Field {
    Field { name, also: &[], default, ignored: Some(why) }
}

impl Field {
    pub(super) const fn also(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.also.contains(&name)
    }
}

/// One element with its fields.
#[derive(Debug)]
pub(super) struct Section {
    /// Its tag.
    tag: &'static str,
    fields: &'static [Field],
    given: BTreeMap<&'static str, String>,
}

/// Whether the text is the mark that stands in a file instead of XML for MQSim's own values.
pub(super) fn is_internal(text: &str) -> bool {
    text.trim() == "USE_INTERNAL_PARAMS"
}

/// Parses a file. `root` is the tag that everything is in.
pub(super) fn parse<'a>(text: &'a str, origin: &str, root: &str) -> Result<Document<'a>, Error> {
    // MQSim's parser passes over space before the declaration.
    let document = Document::parse(text.trim_start()).map_err(|error| syntax(origin, error.to_string()))?;
    let found = document.root_element().tag_name().name();
    if found != root {
        return Err(syntax(origin, format!("the file begins with <{found}>: expected MQSim's <{root}>")));
    }
    Ok(document)
}

pub(super) fn syntax(origin: &str, problem: String) -> Error {
    Error::Syntax { origin: origin.to_owned(), problem }
}

/// The line that a node begins in, for messages.
pub(super) fn line(node: &Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

/// The elements in `node`.
pub(super) fn children<'a, 'input>(node: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(Node::is_element)
}

impl Section {
    /// A section without given fields.
    pub(super) fn empty(tag: &'static str, fields: &'static [Field]) -> Self {
        Self { tag, fields, given: BTreeMap::new() }
    }

    /// Reads the fields of `node`; elements in `nested` are left to the caller.
    pub(super) fn read(
        node: Node<'_, '_>,
        tag: &'static str,
        fields: &'static [Field],
        nested: &[&str],
        origin: &str,
    ) -> Result<Self, Error> {
        let mut section = Self::empty(tag, fields);
        for child in children(node) {
            let name = child.tag_name().name();
            if nested.contains(&name) {
                continue;
            }
            let Some(field) = fields.iter().find(|field| field.is_called(name)) else {
                let known: Vec<&str> =
                    fields.iter().map(|field| field.name).chain(nested.iter().copied()).collect();
                return Err(syntax(
                    origin,
                    format!(
                        "line {}: unknown field {name} (value {:?}) in {tag}; there are {}",
                        line(&child),
                        child.text().unwrap_or_default().trim(),
                        known.join(", ")
                    ),
                ));
            };
            // As in MQSim, the last one counts.
            section.given.insert(field.name, child.text().unwrap_or_default().trim().to_owned());
        }
        Ok(section)
    }

    /// The text of a field, or its default.
    pub(super) fn text(&self, name: &str) -> &str {
        let default =
            || self.fields.iter().find(|field| field.name == name).map_or("", |field| field.default);
        self.given.get(name).map_or_else(default, String::as_str)
    }

    /// A number within `range`.
    pub(super) fn number<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<T, Error> {
        let number = self.text(name).parse::<T>().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.wrong(name, format!("a number from {} to {}", range.start(), range.end())))
    }

    /// As MQSim reads truth: everything is true but `false`, in whatever case.
    pub(super) fn flag(&self, name: &str) -> bool {
        !self.text(name).eq_ignore_ascii_case("false")
    }

    /// One of a few words, in whatever case.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Error> {
        let text = self.text(name);
        let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, value)| *value).ok_or_else(|| self.wrong(name, format!("one of {}", words())))
    }

    /// A field has a value that it cannot have.
    pub(super) fn wrong(&self, name: &str, allowed: String) -> Error {
        Error::Config { field: format!("{}.{name}", self.tag), value: self.text(name).to_owned(), allowed }
    }

    /// Lists fields that are given without having an effect, and fields that have an effect and are missing.
    pub(super) fn notes(&self) -> Vec<String> {
        let given = |field: &&Field| self.given.contains_key(field.name);
        let without_effect = self.fields.iter().filter(given).filter_map(|field| {
            Some(format!("ignored {} = {}: {}", field.name, self.text(field.name), field.ignored?))
        });
        let missing = self.fields.iter().filter(|field| field.ignored.is_none() && !given(field));
        without_effect
            .chain(missing.map(|field| {
                format!("{} is missing: MQSim's default {} is taken", field.name, field.default)
            }))
            .collect()
    }
}
