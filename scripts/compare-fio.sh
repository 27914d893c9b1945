#!/usr/bin/env bash
# The I/O path beside fio's: 4 KiB random reads of the same file with the same backend, alternating, medians.
#
#   scripts/compare-fio.sh [DIR] [--seconds N] [--rounds N] [--file-size BYTES] [--backend io_uring|libaio|sync]
#
# Prints IOPS, CPU time per read and median latency of both and their ratios at depth 1, 32 and 128. Installs fio with
# apt-get if it is missing. The file is made in DIR (default: the current directory) and removed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=. seconds=3 rounds=8 file_bytes=$((1 << 30)) backend=io_uring
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --file-size) file_bytes=$2; shift 2 ;;
    --backend) backend=$2; shift 2 ;;
    -*) echo "usage: $0 [DIR] [--seconds N] [--rounds N] [--file-size BYTES] [--backend NAME]" >&2; exit 2 ;;
    *) dir=$1; shift ;;
  esac
done
case "$backend" in
  io_uring | libaio) fio_engine=$backend ;;
  sync) fio_engine=psync ;;
  *) echo "unknown backend $backend: use io_uring, libaio or sync" >&2; exit 2 ;;
esac

command -v fio >/dev/null || { apt-get update -qq && apt-get install -y -qq fio; } >/dev/null
command -v python3 >/dev/null || { apt-get update -qq && apt-get install -y -qq python3; } >/dev/null
cargo build --quiet --release

work=$(mktemp -d "$dir/compare-fio.XXXXXX")
trap 'rm -rf "$work"' EXIT
file=$work/data
# Written, not just reserved: unwritten extents never reach the drive.
fio --name=lay-out --filename="$file" --size="$file_bytes" --rw=write --bs=1M --direct=1 --iodepth=8 \
  --ioengine="$fio_engine" --end_fsync=1 --output=/dev/null

run_flashgrain() {
  target/release/flashgrain io "$file" --pattern rand --block-size 4KiB --depth "$1" --seconds "$seconds" \
    --backend "$backend" --seed "$2" --quiet --json >"$work/flashgrain-$1-$2.json"
}
run_fio() {
  fio --name=read --filename="$file" --rw=randread --bs=4k --direct=1 --ioengine="$fio_engine" --iodepth="$1" \
    --runtime="$seconds" --time_based --lat_percentiles=1 --clat_percentiles=0 --randseed="$2" --output-format=json --output="$work/fio-$1-$2.json"
}
# Who goes first changes from round to round: a shared machine's speed drifts.
for round in $(seq "$rounds"); do
  for depth in 1 32 128; do
    echo "round $round of $rounds, depth $depth" >&2
    if ((round % 2)); then
      run_flashgrain "$depth" "$round"; run_fio "$depth" "$round"
    else
      run_fio "$depth" "$round"; run_flashgrain "$depth" "$round"
    fi
  done
done

python3 - "$work" "$rounds" <<'PYTHON'
import json, statistics, sys

work, rounds = sys.argv[1], range(1, int(sys.argv[2]) + 1)

def load(name):
    with open(f"{work}/{name}.json") as file:
        return json.load(file)

def flashgrain(depth, round):
    result = load(f"flashgrain-{depth}-{round}")
    return result["read"]["requests_per_s"], result["cpu_us_per_request"], result["read"]["latency"]["p50_us"]

def fio(depth, round):
    job = load(f"fio-{depth}-{round}")["jobs"][0]
    cpu_us = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1000 / job["read"]["total_ios"]
    return job["read"]["iops"], cpu_us, job["read"]["lat_ns"]["percentile"]["50.000000"] / 1000

print(f"{'':7} {'IOPS':^26} {'CPU per read, us':^24} {'median latency, us':^22}")
print(f"{'depth':>5}   {'flashgrain':>10} {'fio':>8} {'ratio':>6}  {'flashgrain':>10} {'fio':>6} {'ratio':>6}  {'flashgrain':>10} {'fio':>8}")
for depth in (1, 32, 128):
    pairs = [(flashgrain(depth, round), fio(depth, round)) for round in rounds]
    def median(index, side): return statistics.median(pair[side][index] for pair in pairs)
    def ratio(index): return statistics.median(ours[index] / theirs[index] for ours, theirs in pairs)
    print(f"{depth:>5}   {median(0, 0):>10.0f} {median(0, 1):>8.0f} {ratio(0):>6.3f}  "
          f"{median(1, 0):>10.2f} {median(1, 1):>6.2f} {ratio(1):>6.3f}  {median(2, 0):>10.1f} {median(2, 1):>8.1f}")
print(f"medians of {len(rounds)} rounds; ratios are medians over the rounds' pairs")
PYTHON
