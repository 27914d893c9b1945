#!/usr/bin/env bash
# MariaDB with the preloaded library, killed several times, and without it after the way back of docs/binary-log.md.
# Needs mariadb-server, whose files may also be below the folder MARIADB; FLASHGRAIN and LIB are what was built.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=${MARIADB:-}
flashgrain=$(realpath "${FLASHGRAIN:-$root/target/release/flashgrain}")
library=$(realpath "${LIB:-$root/target/release/libflashgrain_preload.so}")
server=$prefix/usr/sbin/mariadbd
[ -x "$server" ] || { echo "check-binary-log: there is no $server; apt-get install mariadb-server, or set MARIADB"; exit 77; }
export LD_LIBRARY_PATH=$prefix/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid"; rm -rf "$folder"' EXIT
cd "$folder"
with=(env "LD_PRELOAD=$library" 'FLASHGRAIN_RECORD_FILES=*-bin.[0-9]*' FLASHGRAIN_FLASH_PAGE=4096)
"$prefix/usr/bin/mariadb-install-db" --no-defaults --basedir="$prefix/usr" --datadir="$folder/data" --user="$(id -un)" \
  --auth-root-authentication-method=normal --skip-test-db > install.log 2>&1 || { cat install.log; exit 1; }

ask() { "$prefix/usr/bin/mariadb" --no-defaults --socket="$folder/socket" -uroot -N -B -e "$1"; }
start() { # the command before the server's, or nothing
  "$@" "$server" --no-defaults --basedir="$prefix/usr" --lc-messages-dir="$prefix/usr/share/mysql" --datadir="$folder/data" \
    --socket="$folder/socket" --skip-networking --user="$(id -un)" --log-bin=host-bin --sync-binlog=1 \
    --binlog-format=row --innodb-flush-log-at-trx-commit=1 >> server.log 2>&1 &
  pid=$!
  for _ in $(seq 300); do ask 'select 1' > /dev/null 2>&1 && return; kill -0 "$pid" 2> /dev/null || return 1; sleep 0.1; done
  return 1
}
stop() { "$prefix/usr/bin/mariadb-admin" --no-defaults --socket="$folder/socket" -uroot shutdown; wait "$pid"; pid=; }
fail() { echo "check-binary-log: $*"; tail -40 server.log; exit 1; }
insert() { seq "$1" "$2" | sed 's/.*/insert into s.t values (&, repeat("x", 20 + & % 80));/' | "$prefix/usr/bin/mariadb" --no-defaults --socket="$folder/socket" -uroot; }
events() { # what the logs say, without the bytes that a crash has left unfinished
  (cd data && for log in host-bin.[0-9]*; do "$@" "$prefix/usr/bin/mariadb-binlog" --no-defaults --verify-binlog-checksum --base64-output=decode-rows -v "$log"; done)
}

start "${with[@]}" || fail "no start with the library"
ask 'create database s; create table s.t (a int primary key, b varchar(200)) engine=innodb'
insert 1 500
for round in 1 2 3; do
  insert $((round * 10000)) $((round * 10000 + 9000)) > /dev/null 2>&1 &
  writer=$!
  sleep 1
  kill -9 "$pid"
  wait "$pid" 2> /dev/null || true
  wait "$writer" || true
  start "${with[@]}" || fail "no start with the library after kill $round"
  rows=$(ask 'select count(*) from s.t')
  logged=$(events "${with[@]}" | grep -c '^### INSERT INTO')
  echo "kill $round: $rows rows, $logged in the logs"
  [ "$rows" = "$logged" ] || fail "rows and logs differ"
done
ask 'flush binary logs; show binary logs' | tail -3
rows=$(ask 'select count(*) from s.t')
stop
events "${with[@]}" > with.txt
head -c 15 data/host-bin.000001 | grep -q 'Flashgrain file' || fail "the log has no layout"
if start; then fail "a server without the library accepts logs with a layout"; fi
pid=
"$flashgrain" unpack data/host-bin.[0-9]*
events > without.txt
cmp with.txt without.txt || fail "the logs differ after unpacking"
start || fail "no start without the library after unpacking"
[ "$(ask 'select count(*) from s.t')" = "$rows" ] || fail "rows are missing"
insert 100000 100100
ask 'show binary logs' | tail -2
stop
start "${with[@]}" || fail "no start with the library beside plain logs"
insert 200000 200100
stop
last=$(tail -1 data/host-bin.index)
head -c 15 "data/$last" | grep -q 'Flashgrain file' || fail "$last has no layout"
head -c 4 data/host-bin.000001 | grep -q bin || fail "host-bin.000001 has changed"
[ "$(events "${with[@]}" | grep -c '^### INSERT INTO')" = $((rows + 202)) ] || fail "events are missing"
echo "check-binary-log: $rows rows with the library, the same without it after unpacking"
