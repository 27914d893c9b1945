//! The pages that users read, their blocks of code, and the command lines in blocks and within sentences.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Page {
    /// Its path below the root of the repository.
    pub name: String,
    pub text: String,
}

pub struct Block {
    /// What stands after the opening fence.
    pub language: String,
    pub code: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README, guides, and the pages of crates and of the Python package; no decision notes and no old results.
pub fn pages() -> Vec<Page> {
    let files = |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let crates = files("crates").map(|folder| folder.join("README.md")).filter(|path| path.exists());
    let mut paths: Vec<_> =
        files("docs").chain(files("docs/studies")).filter(is_page).chain(crates).collect();
    paths.extend(["README.md", "python/README.md"].map(|path| root().join(path)));
    paths.sort();
    let page = |path: PathBuf| Page {
        name: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(path).unwrap(),
    };
    paths.into_iter().map(page).collect()
}

impl Page {
    pub fn blocks(&self) -> Vec<Block> {
        let is_fence = |line: &&str| line.trim_start().starts_with("```");
        let (mut blocks, mut lines) = (Vec::new(), self.text.lines());
        while let Some(fence) = lines.by_ref().find(is_fence) {
            let code = lines.by_ref().take_while(|line| !is_fence(line)).map(|line| format!("{line}\n"));
            let language = fence.trim_start().trim_start_matches('`').to_owned();
            blocks.push(Block { language, code: code.collect() });
        }
        blocks
    }

    /// The lines of blocks of commands.
    pub fn lines(&self) -> Vec<String> {
        let blocks = self.blocks().into_iter().filter(|block| block.language == "sh");
        blocks.flat_map(|block| block.code.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// The spans of code within sentences, without those that leave something out.
    pub fn spans(&self) -> Vec<String> {
        let outside = self.text.split("```").step_by(2);
        let spans = outside.flat_map(|text| text.split('`').skip(1).step_by(2));
        spans.filter(|span| !span.contains("...") && !span.contains('…')).map(str::to_owned).collect()
    }
}

/// The words of the first command of a line, as a shell takes them apart: without comment, redirections and
/// the variables that are set for it.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for mark in line.chars() {
        match (quote, mark) {
            (Some(open), _) if mark == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(mark);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '>' | '<' | '|' | ';' | '&') => break,
            (None, ' ' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(mark),
        }
    }
    words.extend(word);
    let is_name = |name: &str| name.chars().all(|mark| mark.is_ascii_uppercase() || mark == '_');
    let sets = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let set = words.iter().take_while(sets).count();
    words.split_off(set)
}
