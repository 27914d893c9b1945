#!/usr/bin/env bash
# Runs SQLite's own tests, `veryquick`, in one build of Debian's source package: with SQLite's VFS as the default one,
# with `flashgrain` and plain databases, and with databases in layouts. Fails if a test fails with `flashgrain` only.
#
#   scripts/sqlite-veryquick.sh FOLDER [PATTERN [LAYOUT...]]
#
# FOLDER keeps the source and the build; PATTERN restricts the files of tests, as `wal*.test`. Needs dpkg-dev, gcc,
# make, tcl-dev and python3. In layouts, each file of tests runs in a process of its own (`sqlite_layouts.py`), tests
# that look at files find the database where it is (`sqlite_layouts.tcl`), and new databases reserve the bytes that the
# layout needs, for which a line of the source is changed. A layout takes some ten minutes.
set -eu
here="$(cd "$(dirname "$0")/.." && pwd)"
folder="${1:?name a folder for the source and the build}"
pattern="${2:-}"
shift $(($# < 2 ? $# : 2))
layouts=("$@")
[ ${#layouts[@]} -gt 0 ] || layouts=(hot:65536:32768 hot:4096:0+log:16384 hot:4096:0+checksums
    hot:65536:32768+log:16384+checksums)
mkdir -p "$folder" && cd "$folder"

cargo build --release --locked -p flashgrain_sqlite_vfs --manifest-path "$here/Cargo.toml"
extension="$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/Cargo.toml" |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/libflashgrain_sqlite_vfs.so"

source_folder="$(find . -maxdepth 1 -type d -name 'sqlite3-3*' | head -1)"
if [ -z "$source_folder" ]; then
    # Lists of their own, so that the system's are as they were.
    mkdir -p lists
    echo "deb-src http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME") main" > sources.list
    options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$PWD/lists")
    apt-get "${options[@]}" update
    apt-get "${options[@]}" source --download-only sqlite3
    tar xf sqlite3_*.orig.tar.xz
    source_folder="$(find . -maxdepth 1 -type d -name 'sqlite3-3*' | head -1)"
fi
source_folder="$(realpath "$source_folder")"

# New databases reserve what is asked for, also those that are only attached.
if ! grep -q flashgrain_reserved_bytes "$source_folder/src/btree.c"; then
    sed -i 's/^      nReserve = 0;$/      { extern int flashgrain_reserved_bytes(void); nReserve = isMemdb || isTempDb ? 0 : flashgrain_reserved_bytes(); }/' \
        "$source_folder/src/btree.c"
    grep -q flashgrain_reserved_bytes "$source_folder/src/btree.c"
    cat >> "$source_folder/test/tester.tcl" << 'TCL'

if {[info exists ::env(FLASHGRAIN_TEST_START)] && [llength [info commands flashgrain_file]]==0} {
  source $::env(FLASHGRAIN_LAYOUTS_TCL)
}
TCL
fi

cat > default_vfs.new << 'C'
/* Makes the VFS `flashgrain` the default one if FLASHGRAIN_EXTENSION names the extension. A connection is opened in any
   case: tests count what is allocated while SQLite starts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

int flashgrain_reserved_bytes(void) {
  const char *bytes = getenv("FLASHGRAIN_TEST_RESERVE");
  return bytes ? atoi(bytes) : 0;
}

int flashgrain_default_vfs(const char *unused) {
  const char *path = getenv("FLASHGRAIN_EXTENSION");
  void *library;
  void (*entry)(void);
  sqlite3 *connection;
  int code;
  (void)unused;
  if (path) {
    library = dlopen(path, RTLD_NOW);
    *(void **)&entry = library ? dlsym(library, "sqlite3_flashgrainsqlitevfs_init") : 0;
    if (entry == 0) {
      fprintf(stderr, "%s\n", dlerror());
      return SQLITE_ERROR;
    }
    code = sqlite3_auto_extension(entry);
    if (code != SQLITE_OK) return code;
  }
  code = sqlite3_open_v2(":memory:", &connection, SQLITE_OPEN_READWRITE, 0);
  sqlite3_close(connection);
  sqlite3_reset_auto_extension();
  /* Tests have memory run out here, too. */
  if (code != SQLITE_OK || path == 0) return code;
  if (sqlite3_vfs_find("flashgrain") == 0) return SQLITE_NOMEM;
  return sqlite3_vfs_register(sqlite3_vfs_find("flashgrain"), 1);
}
C
cmp -s default_vfs.new default_vfs.c || cp default_vfs.new default_vfs.c

mkdir -p build && cd build
if [ ! -x testfixture ] || [ ../default_vfs.c -nt testfixture ]; then
    rm -f testfixture
    CFLAGS="-O2 -DSQLITE_EXTRA_INIT=flashgrain_default_vfs" "$source_folder/configure" > configure.log
    make sqlite3.h > make.log 2>&1
    gcc -O2 -I. -c ../default_vfs.c -o default_vfs.o
    make testfixture LIBTCL="$PWD/default_vfs.o $(. /usr/lib/tcl8.6/tclConfig.sh && echo "$TCL_LIB_SPEC") -ldl -lm -lpthread -lz" >> make.log 2>&1
fi

# SQLite's tests refuse to run as root.
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
cp "$extension" .
extension="$PWD/$(basename "$extension")"

run() {
    rm -rf "$1" && mkdir "$1"
    [ ${#as[@]} = 0 ] || chown nobody:nogroup "$1"
    ( cd "$1" && HOME="$PWD" TMPDIR="$PWD" "${as[@]}" "$PWD/../testfixture" "$source_folder/test/permutations.test" \
        veryquick ${pattern:+"$pattern"} ) > "$1.log" 2>&1 || true
    grep -a '^! ' "$1.log" | sed 's/ .*expected.*//' | awk '{print $2}' | sort -u > "$1.failed"
    grep -a 'errors out of' "$1.log" || { echo "$1: the tests did not end; see $PWD/$1.log"; exit 1; }
}

run unix
FLASHGRAIN_EXTENSION="$extension" run flashgrain
if comm -13 unix.failed flashgrain.failed | grep .; then
    echo "These fail with flashgrain only; see $PWD/flashgrain.log"
    exit 1
fi

# Where a database begins in its file, and bytes that its pages reserve, of hot:CHUNK:OFFSET+log:STRIPE+checksums.
start_of() {
    local chunk offset
    IFS=: read -r _ chunk offset <<< "${1%%+*}"
    while [ "$offset" -lt 4096 ]; do offset=$((offset + chunk)); done
    echo "$offset"
}
reserve_of() {
    case "$1" in *+log:*) echo 24 ;; *+checksums*) echo 8 ;; *) echo 0 ;; esac
}
grep -a '^Time:' unix.log | awk '{print $2}' | sort -u > names
# The user of the tests may not look into the repository.
cp "$here/scripts/sqlite_layouts.tcl" .
export FLASHGRAIN_LAYOUTS_TCL="$PWD/sqlite_layouts.tcl"
bad=0
for layout in "${layouts[@]}"; do
    python3 "$here/scripts/sqlite_layouts.py" --testfixture testfixture --source "$source_folder" --names names \
        --folder "layout-$layout" --extension "$extension" --layout "$layout" --start "$(start_of "$layout")" \
        --reserve "$(reserve_of "$layout")" ${as:+--user nobody:nogroup} || bad=1
done
[ $bad = 0 ] || { echo "See the logs in $PWD/layout-*"; exit 1; }
echo "Nothing fails with flashgrain that does not fail with SQLite's own VFS."
