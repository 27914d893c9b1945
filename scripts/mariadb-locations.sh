#!/usr/bin/env bash
# The settings that put InnoDB's pages at a drive's hot locations (hidden-parameters paper, section 4.1): InnoDB's system
# calls under half selects and half updates, recorded for each size of pages with and without doublewrite, and judged for
# the paper's SSD-S (sim:960evo) on partitions that begin at a stripe and at a hot location, and for SSD-T (sim:xg5).
#
# usage: scripts/mariadb-locations.sh [FOLDER]    the traces go there; without it they are removed
#
# Needs mariadb-server, strace, python3, and the flashgrain command (FLASHGRAIN; by default that of the release build).
# The server listens on a socket in a temporary folder alone. ROWS, OPERATIONS, PAGE_SIZES and POOL make it smaller or
# larger. About three minutes.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
flashgrain=${FLASHGRAIN:-$root/target/release/flashgrain}
PATH=$PATH:/usr/sbin:/sbin
for program in "$flashgrain" mariadbd mariadb-install-db mariadb mariadb-admin strace python3; do
  command -v "$program" > /dev/null || {
    echo "mariadb-locations: there is no $program: apt-get install mariadb-server mariadb-client strace python3, and" \
      "cargo build --release (or set FLASHGRAIN)" >&2
    exit 77
  }
done
flashgrain=$(realpath "$flashgrain")
rows=${ROWS:-60000} operations=${OPERATIONS:-2000} page_sizes=${PAGE_SIZES:-4k 8k 16k 64k} pool=${POOL:-24M}
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2> /dev/null; rm -rf "$folder"' EXIT
traces=${1:-$folder/traces}
mkdir -p "$traces"
traces=$(realpath "$traces")
cd "$folder"
fail() { echo "mariadb-locations: $*" >&2; tail -20 server.log recorder.log >&2 || true; exit 1; }
ask() { mariadb --no-defaults --socket="$folder/socket" --user=root -N -B "$@"; }

for drive in 960evo xg5; do
  "$flashgrain" profile "sim:$drive" --only request-size,location --out "$folder/$drive" --quiet > /dev/null \
    || fail "no profile of sim:$drive"
done
# Keys are skewed to the lowest ones, which the product with a prime strews over the table.
awk -v operations="$operations" -v rows="$rows" 'BEGIN {
  srand(1)
  for (i = 0; i < operations; i++) {
    key = int(rows * rand() ^ 3) * 15485863 % rows
    print i % 2 ? "SELECT v FROM f.t WHERE k = " key ";" : "UPDATE f.t SET v = RANDOM_BYTES(1000) WHERE k = " key ";"
  }
}' > operations.sql

start() { # the size of pages, doublewrite
  mariadbd --no-defaults --datadir="$folder/data" --socket="$folder/socket" --skip-networking --user="$(id -un)" \
    --innodb-page-size="$1" --innodb-doublewrite="$2" --innodb-buffer-pool-size="$pool" --innodb-flush-method=O_DIRECT \
    --innodb-use-native-aio=OFF --innodb-buffer-pool-load-at-startup=OFF --innodb-buffer-pool-dump-at-shutdown=OFF \
    >> server.log 2>&1 &
  pid=$!
  for _ in $(seq 600); do
    ask -e 'select 1' > /dev/null 2>&1 && return
    kill -0 "$pid" 2> /dev/null || fail "the server has ended"
    sleep 0.1
  done
  fail "the server does not answer"
}
stop() { mariadb-admin --no-defaults --socket="$folder/socket" --user=root shutdown; wait "$pid"; pid=; }

record() { # the size of pages, doublewrite, the trace
  rm -rf data
  mariadb-install-db --no-defaults --datadir="$folder/data" --user="$(id -un)" --innodb-page-size="$1" \
    --auth-root-authentication-method=normal --skip-test-db > install.log 2>&1 || { cat install.log >&2; fail "no data folder"; }
  start "$1" "$2"
  ask -e "CREATE DATABASE f; USE f; CREATE TABLE t (k BIGINT PRIMARY KEY, v BLOB NOT NULL) ENGINE = InnoDB;
    INSERT INTO t SELECT seq, RANDOM_BYTES(1000) FROM seq_0_to_$((rows - 1))"
  stop
  start "$1" "$2"
  # It ends with the server.
  timeout 300 "$flashgrain" trace record --no-blocks --pid "$pid" -o "$3" > recorder.log 2>&1 &
  local recorder=$!
  sleep 2
  kill -0 "$recorder" 2> /dev/null || fail "nothing is recorded"
  ask < operations.sql > /dev/null
  stop
  wait "$recorder" || fail "the recording has failed"
}

echo "| pages | doublewrite | file | reads | writes | SSD-S, partition at a stripe: reads at hot locations | rules 2, 3, 4 broken |" \
  "the same at a hot location: reads | rules 2, 3, 4 broken | SSD-T: reads at hot locations | rules 2, 3, 4 broken |"
echo "| --- | --- | --- | ---: | ---: | ---: | --- | ---: | --- | ---: | --- |"
for page_size in $page_sizes; do
  for doublewrite in 1 0; do
    trace=$traces/$page_size-doublewrite-$doublewrite.trace
    record "$page_size" "$doublewrite" "$trace"
    for judged in 960evo:0 960evo:32KiB xg5:0; do
      "$flashgrain" trace check "$trace" --by-file --begin "${judged#*:}" --profile "$folder/${judged%:*}" --json > "${judged%:*}-${judged#*:}.json"
    done
    python3 "$root/scripts/mariadb_locations.py" "$page_size" "$doublewrite" 960evo-0.json 960evo-32KiB.json xg5-0.json
  done
done
