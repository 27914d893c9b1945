#!/usr/bin/env bash
# Makes a tarball of the command for any Linux on this kind of processor: a static, stripped binary, manual pages,
# completions, licences and documentation. Needs Rust, a C compiler and musl's (Debian: musl-tools); changes no tracked file.
set -eu
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-musl"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
name="flashgrain-$version-$target"
build="${CARGO_TARGET_DIR:-target}"
bytes_max=25000000

if ! command -v musl-gcc > /dev/null; then
    echo "dist.sh: musl-gcc is missing: install musl's C compiler (Debian: apt-get install musl-tools)" >&2
    exit 1
fi
rustup target add "$target"

export CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_RELEASE_STRIP=symbols
export CC_x86_64_unknown_linux_musl=musl-gcc CC_aarch64_unknown_linux_musl=musl-gcc
cargo build --release --locked --target "$target" -p flashgrain_cli

binary="$build/$target/release/flashgrain"
bytes="$(stat -c %s "$binary")"
if ((bytes > bytes_max)); then
    echo "dist.sh: $binary has $bytes bytes; at most $bytes_max are wanted" >&2
    exit 1
fi

folder="$build/dist/$name"
rm -rf "$folder"
mkdir -p "$folder/completions"
cp "$binary" LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder"
cp scripts/dist-readme.md "$folder/README.md"
cp -r docs "$folder/docs"
"$binary" man --out "$folder/man" > /dev/null
for shell in bash zsh fish; do
    "$binary" completions "$shell" > "$folder/completions/flashgrain.$shell"
done
# The same tree makes the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
    -C "$build/dist" -cf - "$name" | gzip -n > "$build/dist/$name.tar.gz"
(cd "$build/dist" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "$build/dist/$name.tar.gz: $(stat -c %s "$build/dist/$name.tar.gz") bytes, the command $bytes"
