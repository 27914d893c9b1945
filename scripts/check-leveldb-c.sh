#!/usr/bin/env bash
# Runs LevelDB's own test of its C API, unmodified, on Flashgrain: db/c_test.c of the sources of LevelDB 1.23 that
# Debian 12 distributes, compiled with our header and linked with our library. Nothing of LevelDB is built.
#
# usage: scripts/check-leveldb-c.sh          with the sources by apt-get; skipped if they cannot be had
#        LEVELDB_SOURCES=/path/to/leveldb_1.23.orig.tar.gz scripts/check-leveldb-c.sh
set -euo pipefail
cd "$(dirname "$0")/.."

archive=leveldb_1.23.orig.tar.gz
checksum=9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# By apt-get from where this system's packages come from, without a change of its lists.
fetch() {
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/sources"
    local list
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ -f $list ]] && sed -n 's/^deb /deb-src /p' "$list" >> "$work/sources/all.list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [[ -f $list ]] && sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/sources/$(basename "$list")"
    done
    local options=(
        -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources"
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root
    )
    apt-get "${options[@]}" --quiet=2 update
    (cd "$work" && apt-get "${options[@]}" --quiet=2 --download-only source leveldb)
}

if [[ -n ${LEVELDB_SOURCES:-} ]]; then
    cp "$LEVELDB_SOURCES" "$work/$archive"
elif ! command -v apt-get > /dev/null || ! fetch > "$work/log" 2>&1 || ! [[ -f $work/$archive ]]; then
    [[ -f $work/log ]] && tail -n 3 "$work/log" >&2
    echo "skipped: the sources of LevelDB 1.23 cannot be had by apt-get; name them in LEVELDB_SOURCES" >&2
    exit 0
fi
if ! sha256sum --check --status <<< "$checksum  $work/$archive"; then
    echo "$archive is not that of Debian 12: $(sha256sum "$work/$archive")" >&2
    exit 1
fi
tar -xzf "$work/$archive" -C "$work" --strip-components=1 leveldb-1.23/db/c_test.c
scripts/install-c.sh "$work/prefix" dev > "$work/log"
cc -I "$work/prefix/include/flashgrain" -o "$work/c_test" "$work/db/c_test.c" \
    -L "$work/prefix/lib" -lflashgrain_c -Wl,-rpath,"$work/prefix/lib"
mkdir "$work/data"
TEST_TMPDIR=$work/data/c_test "$work/c_test"
