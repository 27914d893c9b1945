#!/usr/bin/env bash
# Installs the stores that Flashgrain is measured beside, as Debian 12 packages them: scripts/install-peers.sh [--engines] [--list]
#
# With --engines it installs the programs that settings are written for instead (flashgrain advise --for ...): db_bench, mariadbd, sysbench,
# sqlite3 and wt. Tests of the crate flashgrain_advisor load the settings into those that are there.
#
# RocksDB, WiredTiger, LMDB, SQLite and Berkeley DB with their headers, and a C compiler. fjall and redb are crates: cargo fetches them.
# With --list it only says what it would install. Then: cargo build --release -p flashgrain_bench --features peers
set -euo pipefail

engines=(rocksdb-tools mariadb-server sysbench sqlite3 wiredtiger)
packages=(gcc libc6-dev librocksdb-dev libwiredtiger-dev liblmdb-dev libsqlite3-dev libdb5.3-dev)

then="Build with: cargo build --release -p flashgrain_bench --features peers"
if [ "${1-}" = --engines ]; then
  packages=("${engines[@]}")
  then="Try them with: cargo test -p flashgrain_advisor --test engines"
  shift
fi
case "${1-}" in
  '') ;;
  --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
  *) echo "usage: $0 [--engines] [--list]" >&2; exit 2 ;;
esac

elsewhere() {
  echo "install-peers.sh: $1. Install RocksDB 7.8, WiredTiger 3.2, LMDB 0.9, SQLite 3.40 and Berkeley DB 5.3 with their headers" \
    "yourself, or build with the features of those that you have (cargo build -p flashgrain_bench --features lmdb,sqlite)." >&2
  exit 1
}

command -v apt-get >/dev/null || elsewhere "this is not Debian: there is no apt-get"
missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  echo "All are installed already: ${packages[*]}"
  exit 0
fi
[ "$(id -u)" = 0 ] || { echo "install-peers.sh: run it as root, it installs packages: ${missing[*]}" >&2; exit 1; }

echo "Installing ${missing[*]}"
apt-get update -qq
for package in "${missing[@]}"; do
  apt-cache show --no-all-versions "$package" >/dev/null 2>&1 || elsewhere "this system has no package $package"
done
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "Installed. $then"
