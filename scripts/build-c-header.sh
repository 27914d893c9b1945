#!/usr/bin/env bash
# Makes crates/c/include/flashgrain.h of the functions in crates/c/src/abi. The header is committed, so that building
# the library needs no cbindgen; crates/c/tests/headers.rs holds its functions to the source.
#
# usage: scripts/build-c-header.sh            with cbindgen, or CBINDGEN=/path/to/cbindgen
set -euo pipefail
cd "$(dirname "$0")/.."

cbindgen=${CBINDGEN:-cbindgen}
if ! command -v "$cbindgen" > /dev/null; then
    echo "cbindgen is missing: cargo install cbindgen --version 0.29.0 --locked" >&2
    exit 1
fi
config=$(mktemp)
trap 'rm -f "$config"' EXIT
# LevelDB's functions have a header of their own.
names=$(grep -rhoE 'extern "C" fn leveldb_[a-z_]+' crates/c/src/leveldb | sed 's/.* fn //' | sort || true)
excluded=$(sed 's/.*/"&"/' <<< "$names" | paste -sd,)
sed "s/^\[export\]\$/[export]\nexclude = [${excluded//\"\"/}]/" crates/c/cbindgen.toml > "$config"
"$cbindgen" --quiet --config "$config" --crate flashgrain_c --output crates/c/include/flashgrain.h crates/c
echo "crates/c/include/flashgrain.h: $(grep -c '^[a-z].* \*\?fg_[a-z_]*(' crates/c/include/flashgrain.h) functions"
