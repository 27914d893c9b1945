#!/usr/bin/env bash
# Coverage-guided fuzzing of one decoder: scripts/fuzz.sh TARGET SECONDS
#
# Begins with the committed corpus (fuzz/corpus/TARGET); what it adds is in fuzz/found/TARGET, inputs that fail are in fuzz/artifacts/TARGET. With `--merge` instead of SECONDS, the inputs of both
# that reach anything new are copied to fuzz/merged/TARGET, and nothing else is done. Needs Rust (stable) and a C++ compiler; libFuzzer itself comes from crates.io.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -ne 2 ]; then
    echo "usage: scripts/fuzz.sh TARGET SECONDS|--merge" >&2
    echo "targets: $(cd fuzz/corpus && echo *)" >&2
    exit 2
fi
target=$1
if [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
    echo "fuzz.sh: there is no target '$target'; there are: $(cd fuzz/corpus && echo *)" >&2
    exit 2
fi
for program in cargo rustc; do
    command -v "$program" >/dev/null || { echo "fuzz.sh: $program is missing: install Rust from https://rustup.rs" >&2; exit 1; }
done
if ! command -v "${CXX:-c++}" >/dev/null; then
    echo "fuzz.sh: a C++ compiler is missing, with which libFuzzer is built: install g++ or clang++, or name one in CXX" >&2
    exit 1
fi

# What `cargo fuzz` asks of the compiler, without the sanitizers that only nightly has; `cargo +nightly fuzz run TARGET` works as well.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$host" --bin "$target"
program="fuzz/target/$host/release/$target"

mkdir -p "fuzz/found/$target" "fuzz/artifacts/$target"
if [ "$2" = --merge ]; then
    rm -rf "fuzz/merged/$target"
    mkdir -p "fuzz/merged/$target"
    exec "$program" -merge=1 "fuzz/merged/$target" "fuzz/corpus/$target" "fuzz/found/$target"
fi
exec "$program" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" \
    "fuzz/found/$target" "fuzz/corpus/$target"
