#!/usr/bin/env bash
# Compiles what is published, and the command, with the oldest compiler that Cargo.toml promises. Needs rustup.
set -eu
cd "$(dirname "$0")/.."

version="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
if ! command -v rustup > /dev/null; then
    echo "check-msrv.sh: rustup is missing, so Rust $version was not tried" >&2
    exit 1
fi
rustup toolchain install "$version" --profile minimal > /dev/null
packages="$(grep -l '^publish = true' crates/*/Cargo.toml | xargs sed -n 's/^name = "\(flashgrain[a-z_]*\)"/-p \1/p' | sort -u)"
# shellcheck disable=SC2086 # Words of their own.
cargo "+$version" check --locked $packages -p flashgrain_cli --features flashgrain/profile,flashgrain/zstd
echo "Rust $version compiles what is published, and the command"
