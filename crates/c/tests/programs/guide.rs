//! The example of docs/c.md.

use std::fs;

use crate::compile::{Linked, root, run};

#[test]
fn the_example_of_the_guide_runs() {
    let guide = fs::read_to_string(root().join("../../docs/c.md")).unwrap();
    let block = |language: &str| {
        let rest = guide.split(&format!("```{language}\n")).nth(1).unwrap();
        rest.split("```").next().unwrap().to_owned()
    };
    assert_eq!(run(&block("c"), Linked::Shared), block("text"));
}
