//! Compiling and running a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that a program is linked with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    Shared,
    Static,
}

/// The crate's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder in which cargo puts the libraries, next to the tests.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The output of a program that is run with a directory of its own.
pub fn run(source: &str, linked: Linked) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (code, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&code, source).unwrap();
    let libraries = libraries();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-overlength-strings", "-I"]);
    compiler.arg(root().join("include")).arg("-I").arg(root().join("tests/c"));
    compiler.arg("-o").arg(&program).arg(&code);
    match linked {
        Linked::Shared => {
            compiler.arg("-L").arg(&libraries).arg("-lflashgrain_c");
            compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        Linked::Static => {
            compiler.arg(libraries.join("libflashgrain_c.a")).args(["-lpthread", "-ldl", "-lm"]);
        }
    }
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    // Cargo's path of libraries may have an older build of this one, and comes before the program's.
    let mut program = Command::new(&program);
    let ran = program.arg(&data).env("TEST_TMPDIR", &data).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(ran.status.success(), "{:?}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}
