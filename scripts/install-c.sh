#!/usr/bin/env bash
# Builds the library for C and installs it: headers, the shared and the static library, and files for pkg-config.
#
# usage: scripts/install-c.sh PREFIX [PROFILE OF CARGO]
#
#   PREFIX/include/flashgrain.h
#   PREFIX/include/flashgrain/leveldb/c.h      LevelDB's C API; LevelDB's own header is not overwritten
#   PREFIX/lib/libflashgrain_c.so.VERSION, a link to it for linkers, libflashgrain_c.a
#   PREFIX/lib/pkgconfig/flashgrain.pc, flashgrain-leveldb.pc
set -euo pipefail

if [[ $# -lt 1 || $# -gt 2 || $1 == -* ]]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
prefix=$(realpath -m "$1")
profile=${2:-release}
cd "$(dirname "$0")/.."

version=$(sed -n '/^\[workspace.package\]/,/^version/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Each version below 1.0 may change the ABI, so that programs ask for theirs.
name=libflashgrain_c.so.$version
cargo build --quiet --locked --package flashgrain_c --profile "$profile"
cargo rustc --quiet --locked --package flashgrain_c --profile "$profile" --lib --crate-type cdylib -- \
    -C "link-arg=-Wl,-soname,$name"
folder=$profile
if [[ $profile == dev ]]; then
    folder=debug
fi
built=${CARGO_TARGET_DIR:-target}/$folder
install -D -m 644 crates/c/include/flashgrain.h "$prefix/include/flashgrain.h"
install -D -m 644 crates/c/include/leveldb/c.h "$prefix/include/flashgrain/leveldb/c.h"
install -D -m 755 "$built/libflashgrain_c.so" "$prefix/lib/$name"
ln -sf "$name" "$prefix/lib/libflashgrain_c.so"
install -D -m 644 "$built/libflashgrain_c.a" "$prefix/lib/libflashgrain_c.a"
mkdir -p "$prefix/lib/pkgconfig"
for name in flashgrain flashgrain-leveldb; do
    sed "s|@prefix@|$prefix|; s|@version@|$version|" "crates/c/$name.pc.in" > "$prefix/lib/pkgconfig/$name.pc"
done
echo "$prefix: flashgrain $version"
