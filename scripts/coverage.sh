#!/usr/bin/env bash
# Coverage of the store (crates/store/src, without tests and planted bugs), lines and ways out after an error: scripts/coverage.sh [--report-only]
#
# Runs the store's tests, those of queues that fail, and short campaigns of flashgrain-simtest, all instrumented, in a target directory of their own (target/coverage), and prints a table of files, every place where an error is handled that was
# never reached (those that no failing request leads to, by coverage_beyond.txt, apart from the others), and the sums. COVERAGE_CASES (default 2000) is the length of a campaign, COVERAGE_LINES_MIN (default 90) the
# percentage of lines under which it fails. With `--report-only`, what an earlier run has measured is printed again. Needs python3 and llvm-profdata and llvm-cov of the LLVM that rustc has: `rustup component add llvm-tools`.
set -euo pipefail
cd "$(dirname "$0")/.."

report_only=false
case "${1-}" in
    "") ;;
    --report-only) report_only=true ;;
    *) echo "usage: scripts/coverage.sh [--report-only]" >&2; exit 2 ;;
esac
for program in cargo rustc python3; do
    command -v "$program" >/dev/null || { echo "coverage.sh: $program is missing: install it" >&2; exit 1; }
done

# The tools that come with the compiler, or Debian's of the same major version: the format of profiles changes with it.
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
tool() {
    local own
    own="$(rustc --print sysroot)/lib/rustlib/$host/bin/$1"
    if [ -x "$own" ]; then
        echo "$own"
    elif command -v "$1-$llvm" >/dev/null; then
        command -v "$1-$llvm"
    else
        echo "coverage.sh: $1 of LLVM $llvm is missing: run 'rustup component add llvm-tools', or install Debian's llvm-$llvm" >&2
        return 1
    fi
}
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

target=$PWD/target/coverage
profiles=$target/profiles
mkdir -p "$target"
export CARGO_TARGET_DIR=$target

# Only the workspace's own crates are instrumented: what others wrote is not the question.
wrapper=$target/rustc.sh
printf '#!/bin/sh\nexec "$@" -C instrument-coverage\n' >"$wrapper.new"
chmod +x "$wrapper.new"
cmp -s "$wrapper" "$wrapper.new" && rm "$wrapper.new" || mv "$wrapper.new" "$wrapper"
export RUSTC_WORKSPACE_WRAPPER=$wrapper

# The programs that a build makes, so that their maps of the source can be read.
executables() {
    cargo "$@" --locked --message-format=json 2>/dev/null |
        python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {}
    if message.get("executable"):
        print(message["executable"])'
}

if ! $report_only; then
    rm -rf "$profiles"
    # A profile for each program and not for each process: programs merge theirs when they end.
    export LLVM_PROFILE_FILE=$profiles/%m.profraw
    # Built first, so that nothing but tests is measured and a failed build is seen.
    cargo test --locked --quiet -p flashgrain --features testing --no-run
    cargo build --locked --quiet -p flashgrain_simtest
    cargo test --locked --quiet -p flashgrain_simtest --test queues --no-run
    cargo test --locked -p flashgrain --features testing --lib --tests
    cargo test --locked -p flashgrain_simtest --test queues
    cases=${COVERAGE_CASES:-2000}
    simtest=$target/debug/flashgrain-simtest
    "$simtest" crash --cases "$cases"
    # Each request of a life fails, in four ways: a life is about a thousand cases.
    "$simtest" nth --cases "$((cases * 3))"
    "$simtest" inside --cases "$((cases * 2))"
    "$simtest" errors --cases "$((cases / 10))"
    # One bit of so many in each of two thousand sectors, and fewer cases of each of many kinds.
    "$simtest" rot --every 1009 --cases "$cases"
    "$simtest" faults --cases "$((cases / 20))"
fi

"$profdata" merge --sparse "$profiles"/*.profraw -o "$target/coverage.profdata"
objects=()
while read -r program; do
    objects+=(--object "$program")
done < <(executables test -p flashgrain --features testing --lib --tests --no-run; executables build -p flashgrain_simtest; executables test -p flashgrain_simtest --test queues --no-run)
# `llvm-cov` wants the first program without the option.
export_as() { "$cov" export "--format=$1" --instr-profile "$target/coverage.profdata" "${objects[@]:1}" --sources "$PWD/crates/store/src"; }
export_as lcov >"$target/coverage.lcov"
export_as text >"$target/coverage.json"
exec python3 scripts/coverage_report.py "$target/coverage.lcov" "$target/coverage.json" "${COVERAGE_LINES_MIN:-90}"
