//! Help, completions and manual pages come from one definition and agree.

use std::collections::BTreeSet;

use crate::support::{flashgrain, folder, stdout};

fn commands() -> BTreeSet<String> {
    let help = stdout(&flashgrain().arg("--help").assert().success());
    let section = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

#[test]
fn help_fits_a_hundred_columns() {
    for command in commands() {
        let help = stdout(&flashgrain().args([&command, "--help"]).assert().success());
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&flashgrain().args(["completions", shell]).assert().success());
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not complete {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder();
    flashgrain().args(["man", "--out"]).arg(folder.path().join("man1")).assert().success();
    for command in commands() {
        let page =
            std::fs::read_to_string(folder.path().join(format!("man1/flashgrain-{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("EXIT STATUS"), "{command}");
    }
    let page = stdout(&flashgrain().arg("man").assert().success());
    assert!(page.contains("flashgrain"), "{page}");
}
