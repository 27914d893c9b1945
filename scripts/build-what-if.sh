#!/usr/bin/env bash
# Compiles the ranking that the report's page asks (crates/what-if) to crates/report/templates/what_if.wasm. The
# module is committed, so that building Flashgrain needs no other target; after a change of a formula in
# crates/cost it is built again. crates/report/tests/what_if.rs holds it to its source.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
if ! [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
    rustup target add "$target"
fi
# Flags for this machine's linker mean nothing to another; no path of this machine belongs into the module.
export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$PWD=flashgrain"
unset CARGO_ENCODED_RUSTFLAGS
cargo build --quiet --locked --package flashgrain_what_if --target "$target" --profile what-if
built=${CARGO_TARGET_DIR:-target}/$target/what-if/flashgrain_what_if.wasm
install -m 644 "$built" crates/report/templates/what_if.wasm
echo "crates/report/templates/what_if.wasm: $(stat -c %s "$built") bytes"
