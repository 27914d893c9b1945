#!/usr/bin/env bash
# Measures advice for RocksDB: scripts/verify-advice.sh PROFILE DIR [reads%] [records] [memory MiB] [clients] [rounds]
#
# Fills two databases in DIR with db_bench, one with RocksDB's defaults and one with what `flashgrain advise --for rocksdb` says, and runs
# the same mix of reads and updates on both in rounds that take turns (A B B A ...), in a control group with the memory of the workload,
# page cache included. Prints the predicted gain beside the measured one. Both databases are removed at the end. Needs root, db_bench
# (scripts/install-peers.sh --engines) and a memory controller of control groups, version 1 or 2. Compression is off in both, since the
# profile knows nothing of it; writes wait for the log.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
profile=$1 dir=$2 reads=${3:-95} records=${4:-1000000} memory=${5:-256} clients=${6:-16} rounds=${7:-4}
flashgrain=${FLASHGRAIN:-target/release/flashgrain}
key=24 value=1000 seconds=${SECONDS_PER_ROUND:-20}
command -v db_bench >/dev/null || { echo "verify-advice.sh: there is no db_bench: scripts/install-peers.sh --engines" >&2; exit 1; }

work=$(mktemp -d "$dir/flashgrain-verify.XXXXXX")
group=
if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
  group=/sys/fs/cgroup/memory/$(basename "$work") limit=memory.limit_in_bytes
elif [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/$(basename "$work") limit=memory.max
else
  echo "verify-advice.sh: there is no memory controller below /sys/fs/cgroup" >&2; exit 1
fi
cleanup() { rm -rf "$work"; [ ! -d "$group" ] || rmdir "$group" 2>/dev/null || true; }
trap cleanup EXIT
mkdir "$group"
# db_bench itself needs some beside the engine.
echo $(((memory + 64) << 20)) >"$group/$limit"

cat >"$work/workload.toml" <<TOML
name = "$reads % reads, the rest updates"
memory_bytes = "${memory}MiB"
clients = $clients
[operations]
point_hits = $(awk "BEGIN { print $reads / 100 }")
updates = $(awk "BEGIN { print 1 - $reads / 100 }")
[records]
count = $records
key_bytes = $key
value_bytes = $value
TOML
"$flashgrain" -q advise --profile "$profile" --workload "$work/workload.toml" --for rocksdb --output "$work/advised" >/dev/null
"$flashgrain" -q advise --profile "$profile" --workload "$work/workload.toml" --for rocksdb --json >"$work/advice.json"
cat >"$work/default" <<'OPTIONS'
[Version]
rocksdb_version=7.8.3
options_file_version=1.1

[DBOptions]

[CFOptions "default"]

[TableOptions/BlockBasedTable "default"]
OPTIONS
for name in default advised; do
  sed -i '/^\[CFOptions/a compression=kNoCompression' "$work/$name"
done
# db_bench makes its own cache, which replaces that of the options.
cache() { sed -n 's/^block_cache=//p' "$work/$1" | grep . || echo 8388608; }

bench() {
  local name=$1 benchmarks=$2
  shift 2
  (
    echo $BASHPID >"$group/cgroup.procs"
    exec db_bench --options_file="$work/$name" --db="$work/$name.db" --benchmarks="$benchmarks" --num="$records" --key_size=$key \
      --value_size=$value --cache_size="$(cache "$name")" --seed=1 "$@" 2>>"$work/log"
  )
}

for name in default advised; do
  bench "$name" fillrandom,waitforcompaction --threads=1 >/dev/null
done
: >"$work/results"
run() {
  local rate
  rate=$(bench "$1" readrandomwriterandom --use_existing_db --readwritepercent="$reads" --threads="$clients" --duration="$seconds" --sync |
    sed -n 's/^readrandomwriterandom.* micros\/op \([0-9]*\) ops\/sec.*/\1/p')
  echo "$1 $rate" | tee -a "$work/results"
}
for round in $(seq "$rounds"); do
  if [ $((round % 2)) = 1 ]; then run default; run advised; else run advised; run default; fi
done

median() { awk -v name="$1" '$1 == name { print $2 }' "$work/results" | sort -n | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }
python3 - "$work/advice.json" "$(median default)" "$(median advised)" <<'PYTHON'
import json, sys
engine = json.load(open(sys.argv[1]))["engines"][0]
default, advised = map(float, sys.argv[2:])
gain = engine["gain"]
print(f"defaults  predicted {engine['default_rate_per_second']['value']:.0f}/s, measured {default:.0f}/s")
print(f"advised   predicted {engine['advised_rate_per_second']['value']:.0f}/s, measured {advised:.0f}/s")
print(f"gain      predicted {gain['value']:.2f} ({gain['low']:.2f} to {gain['high']:.2f}), measured {advised / default:.2f}")
PYTHON
