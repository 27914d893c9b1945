#!/usr/bin/env bash
# Measures Flashgrain beside the other stores, and makes the report: what docs/benchmarks.md calls "one command".
#
#   scripts/bench-peers.sh [--quick] [--out DIR] [--directory DIR] [suites and options of `flashgrain-bench suite`]
#
# Installs the peers if they are missing (as root, Debian 12), builds with all of them, runs the suites in interleaved rounds, and
# writes results.jsonl, results.md and results.html into --out (bench-results). Engines keep their files in --directory, a folder on
# the drive to measure (by default in --out); they are removed at the end. Ctrl-C keeps what has ended, and the same command goes on
# from there. Without names of suites all are run, which takes hours; --quick takes a few minutes and is for trying.
set -euo pipefail
from=$PWD
absolute() { case $1 in /*) echo "$1" ;; *) echo "$from/$1" ;; esac }
cd "$(dirname "$0")/.."

quick=false
out=$from/bench-results
directory=
suites=()
options=()
while (($#)); do
    case "$1" in
        --quick) quick=true ;;
        --out) out=$(absolute "${2:?--out needs a directory}"); shift ;;
        --directory) directory=$(absolute "${2:?--directory needs a directory}"); shift ;;
        --keep) options+=("$1") ;;
        --*=*) options+=("$1") ;;
        --*) options+=("$1" "${2:?$1 needs a value}"); shift ;;
        *) suites+=("$1") ;;
    esac
    shift
done
results=$out/results.jsonl
if $quick; then
    ((${#suites[@]})) || suites=(quick)
    results=$out/quick.jsonl
    options=(--records 1000000 --warehouses 1 --seconds 2 --warmup 1 --rounds 1 "${options[@]}")
fi
((${#suites[@]})) || suites=(lookups writes memory ycsb db-bench tail mixed commits tpcc)

scripts/install-peers.sh
cargo build --release -p flashgrain_bench --features peers
bench=target/release/flashgrain-bench

directory=${directory:-$out/stores}
mkdir -p "$out" "$directory"
# A run that fails, and Ctrl-C, leave results to show all the same.
ended=0
$bench suite "${suites[@]}" --directory "$directory" --results "$results" "${options[@]}" || ended=$?
rmdir "$directory" 2>/dev/null || true
[[ -s $results ]] || exit "$ended"
$bench compare "$results" --out "${results%.jsonl}.html" | tee "${results%.jsonl}.md"
exit "$ended"
