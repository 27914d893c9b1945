#!/usr/bin/env bash
# Compiles the published crates and the command with the oldest compiler that Cargo.toml promises. Needs rustup.
#
#   scripts/check-msrv.sh [--if-available]    says so and succeeds where that compiler cannot be had
set -eu
cd "$(dirname "$0")/.."

version="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
if ! { command -v rustup && rustup toolchain install "$version" --profile minimal; } > /dev/null; then
    echo "check-msrv.sh: rustup cannot install Rust $version here, so it was not tried" >&2
    [[ "${1:-}" == --if-available ]] && exit 0
    exit 1
fi
packages="$(grep -l '^publish = true' crates/*/Cargo.toml | xargs sed -n 's/^name = "\(flashgrain[a-z_]*\)"/-p \1/p' | sort -u)"
# shellcheck disable=SC2086 # Words of their own.
cargo "+$version" check --locked $packages -p flashgrain_cli --features flashgrain/profile,flashgrain/zstd
echo "Rust $version compiles what is published, and the command"
