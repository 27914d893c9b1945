//! Compiles the peers that are written in C, those whose features are on.

#[cfg(any(
    feature = "rocksdb",
    feature = "wiredtiger",
    feature = "lmdb",
    feature = "sqlite",
    feature = "berkeleydb"
))]
fn compile() {
    /// Feature, source, library.
    const PEERS: [(&str, &str, &str); 5] = [
        ("ROCKSDB", "rocksdb", "rocksdb"),
        ("WIREDTIGER", "wiredtiger", "wiredtiger"),
        ("LMDB", "lmdb", "lmdb"),
        ("SQLITE", "sqlite", "sqlite3"),
        ("BERKELEYDB", "berkeleydb", "db-5.3"),
    ];
    let mut build = cc::Build::new();
    build.include("peers").std("gnu11").warnings(true).extra_warnings(true).opt_level(2);
    println!("cargo:rerun-if-changed=peers");
    for (feature, source, library) in PEERS {
        if std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some() {
            build.file(format!("peers/{source}.c"));
            println!("cargo:rustc-link-lib={library}");
        }
    }
    build.compile("flashgrain_bench_peers");
}

fn main() {
    #[cfg(any(
        feature = "rocksdb",
        feature = "wiredtiger",
        feature = "lmdb",
        feature = "sqlite",
        feature = "berkeleydb"
    ))]
    compile();
}
