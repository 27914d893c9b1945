//! Compiles the peers that are written in C and C++, those whose features are on.

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
            build.define("PEER_ROCKSDB_MAJOR", version.split('.').next());
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
        // A build with LeanStore alone has no peer in C.
        if build.get_files().next().is_none() {
            return;
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

/// LeanStore is neither a crate nor a package: the user names its sources, and the folder of its library.
#[cfg(feature = "leanstore")]
mod leanstore {
    use std::path::{Path, PathBuf};
    use std::process::exit;

    const SOURCES: &str = "LEANSTORE_DIR";
    const LIBRARIES: &str = "LEANSTORE_LIB_DIR";

    /// Headers that no other branch has together.
    const HEADERS: [&str; 3] =
        ["concurrency/Mean.hpp", "io/impl/LiburingImpl.hpp", "storage/btree/BTreeLL.hpp"];

    /// Libraries that its own is linked with, on the system.
    const NEEDED: [&str; 8] = ["gflags", "boost_context", "uring", "aio", "nvme", "tbb", "atomic", "stdc++"];

    pub fn compile() {
        println!("cargo:rerun-if-env-changed={SOURCES}");
        println!("cargo:rerun-if-env-changed={LIBRARIES}");
        let (sources, library) = folders().unwrap_or_else(|error| stop(&error));
        let mut build = cc::Build::new();
        build.cpp(true).cpp_link_stdlib(None).std("c++17").opt_level(2).warnings(false);
        build.include("peers").include(sources.join("shared-headers")).file("peers/leanstore.cpp");
        build.flag("-isystem").flag(sources.join("backend"));
        // As its own build has them: sizes of its classes depend on the second.
        build.flag("-mcx16").define("NDEBUG", None).flag("-pthread");
        if let Err(error) = build.try_compile("flashgrain_bench_leanstore") {
            stop(&format!(
                "{error}\nThe headers of {SOURCES} need those of Boost, gflags, libaio and oneTBB"
            ));
        }
        println!("cargo:rustc-link-search=native={}", library.display());
        println!("cargo:rustc-link-lib=static=leanstore");
        NEEDED.iter().for_each(|library| println!("cargo:rustc-link-lib={library}"));
    }

    /// Its sources, and where its library is.
    fn folders() -> Result<(PathBuf, PathBuf), String> {
        let sources = folder_of(SOURCES).ok_or_else(|| {
            format!("The feature leanstore needs {SOURCES}, the folder of LeanStore's sources (branch io)")
        })?;
        for header in HEADERS.map(|header| sources.join("backend/leanstore").join(header)) {
            if !header.is_file() {
                return Err(format!(
                    "{SOURCES} is no LeanStore of branch io: there is no {}",
                    header.display()
                ));
            }
        }
        let library = folder_of(LIBRARIES).unwrap_or_else(|| sources.join("build/backend"));
        let file: &Path = &library.join("libleanstore.a");
        if !file.is_file() {
            return Err(format!(
                "There is no {}: build LeanStore, or name its folder in {LIBRARIES}",
                file.display()
            ));
        }
        println!("cargo:rerun-if-changed={}", file.display());
        Ok((sources, library))
    }

    fn folder_of(variable: &str) -> Option<PathBuf> {
        std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from)
    }

    fn stop(error: &str) -> ! {
        eprintln!("{error} (docs/benchmarks.md, LeanStore)");
        exit(1)
    }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "c-peers")]
    c::compile();
    #[cfg(feature = "leanstore")]
    leanstore::compile();
}
