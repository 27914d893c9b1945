//! Compiles the peers that are written in C, those whose features are on.

#[cfg(feature = "c-peers")]
mod c {
    /// Feature, source, library.
    const PEERS: [(&str, &str, &str); 5] = [
        ("ROCKSDB", "rocksdb", "rocksdb"),
        ("WIREDTIGER", "wiredtiger", "wiredtiger"),
        ("LMDB", "lmdb", "lmdb"),
        ("SQLITE", "sqlite", "sqlite3"),
        ("BERKELEYDB", "berkeleydb", "db-5.3"),
    ];

    pub fn compile() {
        let mut build = cc::Build::new();
        build.include("peers").std("gnu11").warnings(true).extra_warnings(true).opt_level(2);
        let bundled = bundled_rocksdb();
        build.includes(&bundled);
        if let Some(version) = rocksdb_version(bundled.as_deref()) {
            build.define("PEER_ROCKSDB_VERSION", format!("\"{version}\"").as_str());
        }
        println!("cargo:rerun-if-changed=peers");
        let mut libraries = Vec::new();
        for (feature, source, library) in PEERS {
            if std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some() {
                build.file(format!("peers/{source}.c"));
                // That of the crate is linked with it.
                if bundled.is_none() || library != "rocksdb" {
                    libraries.push(library);
                }
            }
        }
        if let Err(error) = build.try_compile("flashgrain_bench_peers") {
            eprintln!(
                "{error}\nThe peers need their libraries: run scripts/install-peers.sh, or turn the features off."
            );
            std::process::exit(1);
        }
        // Behind the archive: it needs them.
        for library in libraries {
            println!("cargo:rustc-link-lib={library}");
        }
    }

    /// Headers of the RocksDB within the crate librocksdb-sys, if that is the one to link.
    fn bundled_rocksdb() -> Option<String> {
        std::env::var_os("CARGO_FEATURE_ROCKSDB_BUNDLED")?;
        let folder = std::env::var("DEP_ROCKSDB_CARGO_MANIFEST_DIR").ok()?;
        Some(format!("{folder}/rocksdb/include"))
    }

    /// Its header is for C++ alone, and the library does not tell.
    fn rocksdb_version(bundled: Option<&str>) -> Option<String> {
        let header = bundled
            .into_iter()
            .chain(["/usr/local/include", "/usr/include"])
            .find_map(|folder| std::fs::read_to_string(format!("{folder}/rocksdb/version.h")).ok())?;
        let part = |name: &str| {
            header
                .lines()
                .find_map(|line| line.strip_prefix(&format!("#define ROCKSDB_{name} ")))
                .map(str::trim)
        };
        Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
    }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "c-peers")]
    c::compile();
}
