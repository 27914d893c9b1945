#!/usr/bin/env bash
# Mutates the store at places that a seed draws, one mutant at a time, and says which ones neither its unit tests nor the
# campaigns find. Takes two to four minutes for each mutant; nothing in this folder is changed.
#
#   scripts/mutants.sh [--seed N] [--one-in N] [--out DIR]
#
# One in so many of all mutants is tried (default 180, which leaves about 25); the seed says which.
set -eu
cd "$(dirname "$0")/.."

seed=0 one_in=180 out=target/mutants
while [ $# -gt 0 ]; do
    case "$1" in
    --seed) seed=$2 ;;
    --one-in) one_in=$2 ;;
    --out) out=$2 ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked
echo "seed $seed, one in $one_in, results in $out"
mkdir -p "$out"

# Folders in which a mistake can lose or invent data.
where=()
for folder in txn log checkpoint segment btree pool; do
    where+=(--file "crates/store/src/$folder/**/*.rs")
done
mutate() {
    cargo mutants --package flashgrain "${where[@]}" --exclude '**/tests.rs' --exclude '**/tests/**' \
        --shard "$((seed % one_in))/$one_in" --sharding round-robin --baseline skip --jobs 1 --output "$out" "$@" || true
}

echo "unit tests"
mutate --timeout 240 --test-package flashgrain -- --lib
echo "campaigns, on what the unit tests did not find"
mutate --iterate --timeout 900 --test-package flashgrain_simtest
echo "not found:"
cat "$out/mutants.out/missed.txt"
